package kinds

import (
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion/internal/lossless"
)

// coreKinds returns the kinds of the core group.
func coreKinds() []*lossless.Kind {
	return []*lossless.Kind{
		cluster(), clusterClass(), machine(), machineSet(), machineDeployment(), machinePool(), machineHealthCheck(),
		similar(at[clusterv1.MachineDrainRule](clusterv1.GroupVersion, "MachineDrainRule"),
			at[clusterv1beta1.MachineDrainRule](clusterv1beta1.GroupVersion, "MachineDrainRule")),
	}
}

// coreKind returns a kind with what all kinds of the core group have.
func coreKind(hub, spoke lossless.Version) *lossless.Kind {
	return &lossless.Kind{
		Hub: hub, Spoke: spoke, Fill: fillNamespaces,
		Verbatim: []string{"value", "openAPIV3Schema"},
		Whole:    append(references(), templateRef, "value"),
		Grouping: append(statusGrouping(), "rollout", "deletion", "healthCheck", "checks", "remediation", "triggerIf", "classRef", "naming",
			"machineNaming"),
	}
}

func machine() *lossless.Kind {
	kind := coreKind(at[clusterv1.Machine](clusterv1.GroupVersion, "Machine"),
		at[clusterv1beta1.Machine](clusterv1beta1.GroupVersion, "Machine"))
	status := status{done: [][2]string{
		{"infrastructureReady", "infrastructureProvisioned"}, {"bootstrapReady", "bootstrapDataSecretCreated"},
	}}
	kind.Up = func(o object) {
		machineSpecUp(lossless.At(o, "spec"))
		if node := lossless.At(o, "status", "nodeRef"); node != nil {
			name := node["name"]
			clear(node)
			node["name"] = name
		}
		status.up(lossless.At(o, "status"))
	}
	kind.Down = func(o object, version lossless.VersionOf) {
		machineSpecDown(lossless.At(o, "spec"), namespaceOf(o), version)
		s := lossless.At(o, "status")
		status.down(s)
		if node := lossless.At(s, "nodeRef"); len(node) > 0 {
			node["apiVersion"], node["kind"] = "v1", "Node"
		}
		if s["phase"] == string(clusterv1.MachinePhaseUpdating) {
			s["phase"] = string(clusterv1beta1.MachinePhaseRunning)
		}
	}
	return kind
}

// dataSecretName is the field with the name of the Secret of a Machine. An empty name, which requires none, is in v1beta2 what an empty
// source of bootstrap data is in v1beta1: v1beta2 requires a source, and its types do not write an empty one.
const dataSecretName = "dataSecretName"

// machineSpecUp converts the spec of a Machine, also that of a template.
func machineSpecUp(spec object) {
	if spec == nil {
		return
	}
	source, ok := spec["bootstrap"].(object)
	isWhole := spec["clusterName"] != "" && len(lossless.At(spec, infrastructureRef)) > 0 // Otherwise, a client applies a part.
	if ok && len(source) == 0 && isWhole {
		source[dataSecretName] = ""
	}
	referenceUp(lossless.At(spec, "bootstrap", configRef))
	referenceUp(lossless.At(spec, infrastructureRef))
	rules{durations: deletionTimeouts()}.up(spec)
}

func machineSpecDown(spec object, namespace any, version lossless.VersionOf) {
	if spec == nil {
		return
	}
	source := lossless.At(spec, "bootstrap")
	referenceDown(lossless.At(source, configRef), namespace, version)
	if source[dataSecretName] == "" && len(source) == 1 {
		delete(source, dataSecretName)
	}
	referenceDown(lossless.At(spec, infrastructureRef), namespace, version)
	rules{durations: deletionTimeouts()}.down(spec)
}

// templated converts a kind that has a template of Machines.
func templated(kind *lossless.Kind, spec rules, status status) *lossless.Kind {
	spec.fields = append(spec.fields, [2]path{{"minReadySeconds"}, {"template", "spec", "minReadySeconds"}},
		[2]path{{"machineNamingStrategy"}, {"machineNaming"}})
	status.newer = newerCounters()
	kind.Grouping = append(kind.Grouping, "template", "spec") // Always there in v1beta1, but empty if a client removes what it has.
	kind.Up = func(o object) {
		if s := lossless.At(o, "spec"); s != nil {
			machineSpecUp(lossless.At(s, "template", "spec"))
			spec.up(s)
		}
		status.up(lossless.At(o, "status"))
	}
	kind.Down = func(o object, version lossless.VersionOf) {
		if s := lossless.At(o, "spec"); s != nil {
			spec.down(s)
			machineSpecDown(lossless.At(s, "template", "spec"), namespaceOf(o), version)
		}
		status.down(lossless.At(o, "status"))
	}
	return kind
}

func machineSet() *lossless.Kind {
	return templated(
		coreKind(at[clusterv1.MachineSet](clusterv1.GroupVersion, "MachineSet"),
			at[clusterv1beta1.MachineSet](clusterv1beta1.GroupVersion, "MachineSet")),
		rules{fields: [][2]path{{{"deletePolicy"}, {"deletion", "order"}}}},
		status{counters: []string{"fullyLabeledReplicas", "readyReplicas", "availableReplicas"}})
}

func machineDeployment() *lossless.Kind {
	return templated(
		coreKind(at[clusterv1.MachineDeployment](clusterv1.GroupVersion, "MachineDeployment"),
			at[clusterv1beta1.MachineDeployment](clusterv1beta1.GroupVersion, "MachineDeployment")),
		rules{fields: append(strategy(),
			[2]path{{"rolloutAfter"}, {"rollout", "after"}}, [2]path{{"strategy", "remediation"}, {"remediation"}})},
		status{counters: []string{"readyReplicas", "updatedReplicas", "availableReplicas", "unavailableReplicas"}})
}

func machinePool() *lossless.Kind {
	return templated(
		coreKind(at[clusterv1.MachinePool](clusterv1.GroupVersion, "MachinePool"),
			at[clusterv1beta1.MachinePool](clusterv1beta1.GroupVersion, "MachinePool")),
		rules{},
		status{
			done:     [][2]string{{"infrastructureReady", "infrastructureProvisioned"}, {"bootstrapReady", "bootstrapDataSecretCreated"}},
			counters: []string{"readyReplicas", "availableReplicas", "unavailableReplicas"},
		})
}

// strategy are the fields of the strategy of a MachineDeployment, of its topology and of its class.
func strategy() [][2]path {
	return [][2]path{
		{{"strategy", "type"}, {"rollout", "strategy", "type"}},
		{{"strategy", "rollingUpdate", "maxSurge"}, {"rollout", "strategy", "rollingUpdate", "maxSurge"}},
		{{"strategy", "rollingUpdate", "maxUnavailable"}, {"rollout", "strategy", "rollingUpdate", "maxUnavailable"}},
		{{"strategy", "rollingUpdate", "deletePolicy"}, {"deletion", "order"}},
	}
}
