package kinds

import (
	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion/internal/lossless"
)

// controlPlane is how KubeadmControlPlanes are converted.
func controlPlane() *lossless.Kind {
	return &lossless.Kind{
		Hub:   at[controlplanev1.KubeadmControlPlane](controlplanev1.GroupVersion, "KubeadmControlPlane"),
		Spoke: at[controlplanev1beta1.KubeadmControlPlane](controlplanev1beta1.GroupVersion, "KubeadmControlPlane"),
		Up: func(o object) {
			controlPlaneSpecUp(lossless.At(o, "spec"))
			referenceUp(lossless.At(o, "spec", "machineTemplate", "spec", infrastructureRef))
			controlPlaneStatusUp(lossless.At(o, "status"))
		},
		Down: func(o object, version lossless.VersionOf) {
			controlPlaneSpecDown(lossless.At(o, "spec"))
			referenceDown(lossless.At(o, "spec", "machineTemplate", infrastructureRef), namespaceOf(o), version)
			controlPlaneStatusDown(lossless.At(o, "status"))
		},
		Fill:     fillNamespaces,
		Present:  present(),
		Whole:    []string{infrastructureRef},
		Grouping: append(controlPlaneGrouping(), statusGrouping()...),
	}
}

// controlPlaneTemplate is how KubeadmControlPlaneTemplates are converted.
func controlPlaneTemplate() *lossless.Kind {
	return &lossless.Kind{
		Hub:   at[controlplanev1.KubeadmControlPlaneTemplate](controlplanev1.GroupVersion, "KubeadmControlPlaneTemplate"),
		Spoke: at[controlplanev1beta1.KubeadmControlPlaneTemplate](controlplanev1beta1.GroupVersion, "KubeadmControlPlaneTemplate"),
		Up:    func(o object) { controlPlaneSpecUp(lossless.At(o, "spec", "template", "spec")) },
		Down: func(o object, _ lossless.VersionOf) {
			controlPlaneSpecDown(lossless.At(o, "spec", "template", "spec"))
			fillMachineTemplate(o)
		},
		Fill:     fillMachineTemplate,
		Present:  append(present(), "machineTemplate"),
		Grouping: controlPlaneGrouping(),
	}
}

// controlPlaneGrouping are the objects in the spec of v1beta2 that v1beta1 does not have. The other one is that of machineTemplate.
func controlPlaneGrouping() []string { return append(grouping(), "rollout", "deletion", "spec") }

// controlPlaneRules is where the fields of the spec of a control plane are.
func controlPlaneRules() rules {
	return rules{
		fields: [][2]path{
			{{"rolloutBefore"}, {"rollout", "before"}},
			{{"rolloutAfter"}, {"rollout", "after"}},
			{{"rolloutStrategy"}, {"rollout", "strategy"}},
			{{"machineNamingStrategy"}, {"machineNaming"}},
			{{"machineTemplate", infrastructureRef}, {"machineTemplate", "spec", infrastructureRef}},
			{{"machineTemplate", "readinessGates"}, {"machineTemplate", "spec", "readinessGates"}},
			{{"machineTemplate", "taints"}, {"machineTemplate", "spec", "taints"}},
			{{"remediationStrategy", "maxRetry"}, {"remediation", "maxRetry"}},
		},
		durations: [][2]path{
			{{"machineTemplate", "nodeDrainTimeout"}, {"machineTemplate", "spec", "deletion", "nodeDrainTimeoutSeconds"}},
			{{"machineTemplate", "nodeVolumeDetachTimeout"}, {"machineTemplate", "spec", "deletion", "nodeVolumeDetachTimeoutSeconds"}},
			{{"machineTemplate", "nodeDeletionTimeout"}, {"machineTemplate", "spec", "deletion", "nodeDeletionTimeoutSeconds"}},
			{{"remediationStrategy", "retryPeriod"}, {"remediation", "retryPeriodSeconds"}},
			{{"remediationStrategy", "minHealthyPeriod"}, {"remediation", "minHealthyPeriodSeconds"}},
		},
	}
}

// controlPlaneSpecUp converts the spec of a control plane to v1beta2.
func controlPlaneSpecUp(spec object) {
	if spec == nil {
		return
	}
	specUp(lossless.At(spec, "kubeadmConfigSpec"))
	if seconds, ok := lossless.Seconds(lossless.At(spec, "remediationStrategy")["retryPeriod"]); ok && seconds == 0 {
		delete(lossless.At(spec, "remediationStrategy"), "retryPeriod") // v1beta1 cannot tell that it is unset.
	}
	controlPlaneRules().up(spec)
	delete(spec, "remediationStrategy")
}

// controlPlaneSpecDown converts the spec of a control plane to v1beta1, except for the version of references.
func controlPlaneSpecDown(spec object) {
	if spec == nil {
		return
	}
	specDown(lossless.At(spec, "kubeadmConfigSpec"))
	controlPlaneRules().down(spec)
	for _, name := range []string{"rollout", "remediation"} {
		delete(spec, name)
	}
	delete(lossless.At(spec, "machineTemplate"), "spec")
}

// fillMachineTemplate sets the empty template of Machines that templates of control planes have in v1beta1 if they have no other.
func fillMachineTemplate(o object) {
	if spec := lossless.At(o, "spec", "template", "spec"); spec != nil && spec["machineTemplate"] == nil {
		spec["machineTemplate"] = object{"metadata": object{}}
	}
}

// planeStatus is how the status of KubeadmControlPlanes differs.
func planeStatus() status {
	return status{
		done:     [][2]string{{"initialized", "controlPlaneInitialized"}},
		counters: []string{"readyReplicas", "updatedReplicas", "unavailableReplicas"},
		newer:    newerCounters(),
	}
}

// controlPlaneStatusUp converts the status of a control plane to v1beta2.
func controlPlaneStatusUp(status object) {
	if status == nil {
		return
	}
	delete(status, "ready")
	lossless.Move(status, path{"lastRemediation", "timestamp"}, path{"lastRemediation", "time"})
	planeStatus().up(status)
}

// controlPlaneStatusDown converts the status of a control plane to v1beta1.
func controlPlaneStatusDown(status object) {
	if status == nil {
		return
	}
	planeStatus().down(status)
	if ready, ok := status["readyReplicas"].(int64); ok && ready > 0 {
		status["ready"] = true
	}
	lossless.Move(status, path{"lastRemediation", "time"}, path{"lastRemediation", "timestamp"})
}
