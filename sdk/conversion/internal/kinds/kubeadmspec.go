package kinds

import (
	"slices"

	"sigs.k8s.io/cluster-api/sdk/conversion/internal/lossless"
)

// Fields that v1beta1 has elsewhere, or as a duration.
const (
	clusterConfiguration = "clusterConfiguration"
	initConfiguration    = "initConfiguration"
	joinConfiguration    = "joinConfiguration"
	healthCheckSeconds   = "controlPlaneComponentHealthCheckSeconds"
)

// specUp converts a KubeadmConfigSpec to v1beta2.
func specUp(spec object) {
	if spec == nil {
		return
	}
	delete(spec, "useExperimentalRetryJoin")
	dropEmptyItems(spec)
	cluster, initialization := lossless.At(spec, clusterConfiguration), lossless.At(spec, initConfiguration)
	for _, name := range []string{"apiVersion", "kind", "clusterName", "kubernetesVersion", "networking"} {
		delete(cluster, name)
	}
	for _, component := range componentsOf(cluster) {
		lossless.ListFromMap(component, "extraArgs")
	}
	for _, configuration := range []object{initialization, lossless.At(spec, joinConfiguration)} {
		delete(configuration, "apiVersion")
		delete(configuration, "kind")
		lossless.ListFromMap(lossless.At(configuration, "nodeRegistration"), "kubeletExtraArgs")
	}
	for _, token := range lossless.Items(initialization, "bootstrapTokens") {
		lossless.MoveDuration(token, path{"ttl"}, path{"ttlSeconds"})
	}
	for _, partition := range lossless.Items(lossless.At(spec, "diskSetup"), "partitions") {
		// v1beta1 cannot tell that layout is unset.
		if partition["diskLayout"] != nil && partition["layout"] == false {
			delete(partition, "layout")
		}
	}
	lossless.MoveDuration(spec, path{joinConfiguration, "discovery", "timeout"}, path{joinConfiguration, "timeouts", "tlsBootstrapSeconds"})
	// The timeout is of both init and join.
	from := path{clusterConfiguration, "apiServer", "timeoutForControlPlane"}
	lossless.MoveDuration(spec, from, path{initConfiguration, "timeouts", healthCheckSeconds})
	if seconds, ok := lossless.At(spec, initConfiguration, "timeouts")[healthCheckSeconds]; ok {
		lossless.Put(spec, seconds, joinConfiguration, "timeouts", healthCheckSeconds)
	}
}

// dropEmptyItems removes empty texts from lists: v1beta2 does not allow them, and manifests in v1beta1 have them, for example where a
// variable of a template is empty. The columns of mounts are the exception: their positions count.
func dropEmptyItems(fields object) {
	for name, value := range fields {
		switch value := value.(type) {
		case object:
			dropEmptyItems(value)
		case []any:
			for _, item := range value {
				if item, ok := item.(object); ok {
					dropEmptyItems(item)
				}
			}
			if !slices.Contains(value, any("")) {
				continue
			}
			left := slices.DeleteFunc(slices.Clone(value), func(item any) bool { return item == "" })
			if fields[name] = left; len(left) == 0 {
				delete(fields, name)
			}
		}
	}
}

// specDown converts a KubeadmConfigSpec to v1beta1.
func specDown(spec object) {
	if spec == nil {
		return
	}
	for _, component := range componentsOf(lossless.At(spec, clusterConfiguration)) {
		lossless.MapFromList(component, "extraArgs")
	}
	for _, name := range []string{initConfiguration, joinConfiguration} {
		lossless.MapFromList(lossless.At(spec, name, "nodeRegistration"), "kubeletExtraArgs")
	}
	for _, token := range lossless.Items(lossless.At(spec, initConfiguration), "bootstrapTokens") {
		lossless.MoveSeconds(token, path{"ttlSeconds"}, path{"ttl"})
	}
	lossless.MoveSeconds(spec, path{joinConfiguration, "timeouts", "tlsBootstrapSeconds"}, path{joinConfiguration, "discovery", "timeout"})
	// If init and join differ, that of init counts, which comes last.
	for _, name := range []string{joinConfiguration, initConfiguration} {
		to := path{clusterConfiguration, "apiServer", "timeoutForControlPlane"}
		lossless.MoveSeconds(spec, path{name, "timeouts", healthCheckSeconds}, to)
		delete(lossless.At(spec, name), "timeouts")
	}
}

// componentsOf returns the components of the control plane that have flags.
func componentsOf(cluster object) []object {
	return []object{
		lossless.At(cluster, "apiServer"), lossless.At(cluster, "controllerManager"), lossless.At(cluster, "scheduler"),
		lossless.At(cluster, "etcd", "local"),
	}
}
