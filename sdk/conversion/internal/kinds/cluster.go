package kinds

import (
	"maps"
	"slices"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion/internal/lossless"
)

func cluster() *lossless.Kind {
	kind := coreKind(at[clusterv1.Cluster](clusterv1.GroupVersion, "Cluster"),
		at[clusterv1beta1.Cluster](clusterv1beta1.GroupVersion, "Cluster"))
	status := status{
		done:  [][2]string{{"infrastructureReady", "infrastructureProvisioned"}, {"controlPlaneReady", "controlPlaneInitialized"}},
		newer: []string{"controlPlane", "workers"},
	}
	kind.Up = func(o object) {
		spec := lossless.At(o, "spec")
		referenceUp(lossless.At(spec, controlPlaneRef))
		referenceUp(lossless.At(spec, infrastructureRef))
		topologyUp(lossless.At(spec, "topology"))
		failureDomainsUp(lossless.At(o, "status"))
		status.up(lossless.At(o, "status"))
	}
	kind.Down = func(o object, version lossless.VersionOf) {
		spec, namespace := lossless.At(o, "spec"), namespaceOf(o)
		referenceDown(lossless.At(spec, controlPlaneRef), namespace, version)
		referenceDown(lossless.At(spec, infrastructureRef), namespace, version)
		topologyDown(lossless.At(spec, "topology"), namespace)
		status.down(lossless.At(o, "status"))
		failureDomainsDown(lossless.At(o, "status"))
	}
	return kind
}

// topology is where the fields of a topology are.
func topology() rules {
	return rules{fields: [][2]path{{{"class"}, {"classRef", "name"}}, {{"classNamespace"}, {"classRef", "namespace"}}}}
}

// workers is where the fields of a group of workers are, and of the control plane, in topologies and classes.
func workers() rules {
	return rules{
		fields:    append(strategy(), healthCheckOf(), [2]path{{"namingStrategy"}, {"naming"}}),
		durations: deletionTimeouts(),
	}
}

// groups are the paths of the groups of Machines in topologies and classes.
func groups() []path {
	return []path{{"controlPlane"}, {"workers", "machineDeployments[]"}, {"workers", "machinePools[]"}}
}

func topologyUp(t object) {
	if t == nil {
		return
	}
	topology().up(t)
	for _, group := range groups() {
		for _, part := range lossless.Parts(t, group...) {
			groupUp(part)
		}
	}
}

func topologyDown(t object, namespace any) {
	if t == nil {
		return
	}
	topology().down(t)
	for _, group := range groups() {
		for _, part := range lossless.Parts(t, group...) {
			groupDown(part, namespace)
		}
	}
}

// groupUp converts a group of Machines. Its limit of remediations is part of the strategy in v1beta1, and of the health check in v1beta2.
func groupUp(group object) {
	limit := lossless.At(group, "strategy", "remediation")["maxInFlight"]
	delete(lossless.At(group, "strategy"), "remediation")
	healthCheckUp(lossless.At(group, "machineHealthCheck"))
	workers().up(group)
	if limit != nil {
		lossless.Put(group, limit, "healthCheck", "remediation", "maxInFlight")
	}
}

func groupDown(group object, namespace any) {
	remediation := lossless.At(group, "healthCheck", "remediation")
	limit := remediation["maxInFlight"]
	if limit != nil {
		delete(remediation, "maxInFlight")
		prune(group, "healthCheck", "remediation")
	}
	workers().down(group)
	healthCheckDown(lossless.At(group, "machineHealthCheck"), namespace)
	if limit != nil {
		lossless.Put(group, limit, "strategy", "remediation", "maxInFlight")
	}
}

// prune removes the objects at a path that are empty.
func prune(o object, path ...string) {
	for length := len(path); length > 0; length-- {
		parent := lossless.At(o, path[:length-1]...)
		if nested, ok := parent[path[length-1]].(object); !ok || len(nested) > 0 {
			return
		}
		delete(parent, path[length-1])
	}
}

// failureDomainsUp replaces the failure domains of an object, a map, by a list sorted by name.
func failureDomainsUp(o object) {
	domains := lossless.At(o, "failureDomains")
	if domains == nil {
		return
	}
	list := make([]any, 0, len(domains))
	for _, name := range slices.Sorted(maps.Keys(domains)) {
		domain, ok := domains[name].(object)
		if !ok {
			domain = object{}
		}
		if domain["controlPlane"] == false {
			delete(domain, "controlPlane") // v1beta1 cannot tell that it is unset.
		}
		domain["name"] = name
		list = append(list, domain)
	}
	o["failureDomains"] = list
}

// failureDomainsDown is the reverse of failureDomainsUp.
func failureDomainsDown(o object) {
	list, ok := o["failureDomains"].([]any)
	if !ok {
		return
	}
	domains := object{}
	for _, item := range list {
		if domain, ok := item.(object); ok {
			name, _ := domain["name"].(string)
			delete(domain, "name")
			domains[name] = domain
		}
	}
	o["failureDomains"] = domains
}
