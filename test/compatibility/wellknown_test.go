package compatibility

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// wellKnown returns the labels, annotations, finalizers and taints of the ecosystem. They are literals here, so that a change
// of a constant is noticed.
func wellKnown() []string {
	return []string{
		// Labels.
		"cluster.x-k8s.io/cluster-name", "cluster.x-k8s.io/provider", "cluster.x-k8s.io/watch-filter", "cluster.x-k8s.io/interruptible",
		"cluster.x-k8s.io/control-plane", "cluster.x-k8s.io/control-plane-name", "cluster.x-k8s.io/set-name",
		"cluster.x-k8s.io/deployment-name", "cluster.x-k8s.io/pool-name", "machine-template-hash", "topology.cluster.x-k8s.io/owned",
		"topology.cluster.x-k8s.io/deployment-name", "topology.cluster.x-k8s.io/pool-name", "clusterctl.cluster.x-k8s.io",
		"clusterctl.cluster.x-k8s.io/core", "clusterctl.cluster.x-k8s.io/move", "clusterctl.cluster.x-k8s.io/move-hierarchy",
		"cluster.x-k8s.io/aggregate-to-manager", "cluster.x-k8s.io/v1beta1", "docker.cluster.x-k8s.io/machine-pool",
		// Annotations.
		"cluster.x-k8s.io/paused", "cluster.x-k8s.io/conversion-data",
		"cluster.x-k8s.io/delete-machine", "cluster.x-k8s.io/disable-machine-create", "cluster.x-k8s.io/managed-by",
		"cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size",
		"cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size", "cluster.x-k8s.io/cloned-from-name",
		"cluster.x-k8s.io/cloned-from-groupkind", "cluster.x-k8s.io/cluster-namespace", "cluster.x-k8s.io/machine",
		"cluster.x-k8s.io/owner-kind", "cluster.x-k8s.io/owner-name", "cluster.x-k8s.io/labels-from-machine",
		"machine.cluster.x-k8s.io/certificates-expiry", "machine.cluster.x-k8s.io/exclude-node-draining",
		"machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach", "pre-drain.delete.hook.machine.cluster.x-k8s.io",
		"pre-terminate.delete.hook.machine.cluster.x-k8s.io", "machineset.cluster.x-k8s.io/skip-preflight-checks",
		"machinedeployment.clusters.x-k8s.io/revision", "machinedeployment.clusters.x-k8s.io/revision-history",
		"machinedeployment.clusters.x-k8s.io/desired-replicas", "machinedeployment.clusters.x-k8s.io/max-replicas",
		"topology.cluster.x-k8s.io/defer-upgrade", "topology.cluster.x-k8s.io/hold-upgrade-sequence",
		"topology.cluster.x-k8s.io/upgrade-concurrency", "topology.cluster.x-k8s.io/dry-run",
		"unsafe.topology.cluster.x-k8s.io/disable-update-class-name-check",
		"unsafe.topology.cluster.x-k8s.io/disable-update-version-check", "controlplane.cluster.x-k8s.io/skip-coredns",
		"controlplane.cluster.x-k8s.io/skip-kube-proxy", "controlplane.cluster.x-k8s.io/kubeadm-cluster-configuration",
		"controlplane.cluster.x-k8s.io/remediation-in-progress", "controlplane.cluster.x-k8s.io/remediation-for",
		"inmemorycluster.infrastructure.cluster.x-k8s.io/listener",
		"cert-manager.clusterctl.cluster.x-k8s.io/version", "cluster.x-k8s.io/replicas-managed-by",
		"cluster.x-k8s.io/skip-remediation", "cluster.x-k8s.io/remediate-machine", "runtime.cluster.x-k8s.io/inject-ca-from-secret",
		"runtime.cluster.x-k8s.io/pending-hooks", "runtime.cluster.x-k8s.io/ok-to-delete",
		// Finalizers.
		"cluster.cluster.x-k8s.io", "machine.cluster.x-k8s.io", "machinepool.cluster.x-k8s.io", "machinedeployment.topology.cluster.x-k8s.io",
		"machineset.topology.cluster.x-k8s.io", "kubeadm.controlplane.cluster.x-k8s.io",
		"inmemorycluster.infrastructure.cluster.x-k8s.io", "inmemorymachine.infrastructure.cluster.x-k8s.io",
		"dockercluster.infrastructure.cluster.x-k8s.io", "dockermachinepool.infrastructure.cluster.x-k8s.io",
		"addons.cluster.x-k8s.io",
		// Taints.
		"node.cluster.x-k8s.io/uninitialized", "node.cluster.x-k8s.io/outdated-revision",
	}
}

// reasons returns the types and reasons of conditions, and the reasons of events, of the kinds that have controllers.
func reasons() []string {
	return strings.Fields(`
		ResourcesApplied ClusterMatchFailed WrongSecretType RetrievingResourceFailed RemoteClusterClientFailed ApplyFailed
		InfrastructureReady ControlPlaneReady ControlPlaneInitialized TopologyReconciled WaitingForInfrastructure
		WaitingForControlPlane WaitingForControlPlaneProviderInitialized MissingNodeRef Deleting Deleted TopologyReconcileFailed
		ClusterClassNotReconciled LifecycleHookBlocking ControlPlaneUpgradePending MachineDeploymentsUpgradePending MachineDeploymentsCreatePending
		MachineDeploymentsUpgradeDeferred
		BootstrapReady WaitingForDataSecret NodeHealthy WaitingForNodeRef NodeProvisioning NodeNotFound NodeInspectionFailed
		NodeConditionsFailed DeletionFailed PreDrainDeleteHookSucceeded PreTerminateDeleteHookSucceeded WaitingExternalHook
		DrainingSucceeded Draining DrainingFailed VolumeDetachSucceeded WaitingForVolumeDetach HealthCheckSucceeded
		OwnerRemediated WaitingForRemediation
		RemediationInProgress RemediationFailed
		HasRemediateMachineAnnotation MachineHasFailure NodeStartupTimeout UnhealthyNode DetectedUnhealthy MachineMarkedUnhealthy
		RemediationRestricted RemediationAllowed TooManyUnhealthy ExternalRemediationTemplateAvailable ExternalRemediationTemplateNotFound
		ExternalRemediationRequestAvailable ExternalRemediationRequestCreationFailed
		APIServerPodHealthy ControllerManagerPodHealthy SchedulerPodHealthy EtcdPodHealthy PodProvisioning PodMissing PodFailed
		PodInspectionFailed EtcdMemberHealthy EtcdMemberUnhealthy MemberInspectionFailed
		MachinesCreated PreflightCheckFailed BootstrapTemplateCloningFailed InfrastructureTemplateCloningFailed MachineCreationFailed
		Resized ScalingUp ScalingDown MachinesReady Available WaitingForAvailableMachines MachineSetReady WaitingForMachineSet
		VariablesReconciled VariableDiscoveryFailed RefVersionsUpToDate OutdatedRefVersions
		DataSecretAvailable WaitingForClusterInfrastructure WaitingForControlPlaneAvailable DataSecretGenerationFailed
		CertificatesAvailable CertificatesGenerationFailed CertificatesCorrupted
		MachineGenerationFailed MachinesSpecUpToDate RollingUpdateInProgress WaitingForKubeadmInit ControlPlaneComponentsHealthy
		EtcdClusterHealthy ControlPlaneComponentsUnknown EtcdClusterUnknown
		SuccessfulSetNodeRef SuccessfulDrainNode NodeVolumesDetached FailedDrainNode FailedWaitForVolumeDetach FailedDeleteNode
		SuccessfulCreate SuccessfulDelete SuccessfulAdopt FailedCreate FailedDelete FailedAdopt
		SuccessfulScale FailedScale TopologyCreate TopologyUpdate TopologyDelete
		SuccessfulSetInterruptibleNodeLabel FailedUpdate ReconcileError MachinePoolsUpgradePending MachinePoolsCreatePending
		MachinePoolsUpgradeDeferred InvalidConfiguration Discovered DiscoveryFailed
		IncorrectExternalRef ReplicasReady WaitingForReplicasReady SuccessfulSetNodeRefs FailedSetNodeRef
		VMProvisioned NodeProvisioned EtcdProvisioned APIServerProvisioned WaitingForStartupTimeout WaitingForBootstrapData
		LoadBalancerAvailable LoadBalancerProvisioningFailed ContainerProvisioned ContainerProvisioningFailed ContainerDeleted
		BootstrapExecSucceeded Bootstrapping BootstrapFailed
		FailedInitialization FailedScaleUp FailedScaleDown ControlPlaneUnhealthy AdoptionFailed`)
}

// TestWellKnownValues checks that each value is documented in the reference data, and used in the product's code.
func TestWellKnownValues(t *testing.T) {
	var documented strings.Builder
	for _, file := range []string{"labels-annotations-finalizers.md", "conditions.md", "controllers.md", "inmemory.md"} {
		content, err := os.ReadFile(filepath.Join(facts(t, ""), "..", file))
		if err != nil {
			t.Fatal(err)
		}
		documented.Write(content)
	}
	used := literals(t)
	for _, value := range append(wellKnown(), reasons()...) {
		if !isDocumented(documented.String(), value) {
			t.Errorf("%q is not documented", value)
		}
		if !used[value] {
			t.Errorf("%q is not in the code", value)
		}
	}
}

// TestWellKnownValuesAreComplete checks that every documented label and annotation is pinned or excused.
func TestWellKnownValuesAreComplete(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(facts(t, ""), "..", "labels-annotations-finalizers.md"))
	if err != nil {
		t.Fatal(err)
	}
	used, pinned := literals(t), map[string]bool{}
	for _, value := range wellKnown() {
		pinned[value] = true
	}
	for _, key := range slices.Sorted(maps.Keys(documentedKeys(string(content)))) {
		if reason, later := notActedOn()[key]; !pinned[key] && !later {
			t.Errorf("%s is documented, but not pinned", key)
		} else if pinned[key] && later {
			t.Errorf("%s is pinned, but listed in notActedOn (%s)", key, reason)
		} else if later && used[key] {
			t.Errorf("%s is listed in notActedOn (%s), but is in the code", key, reason)
		}
	}
}

// notActedOn returns documented keys that no controller acts on, and why.
func notActedOn() map[string]string {
	const roles = "a label of ClusterRoles, in config/"
	return map[string]string{
		"kubeadm.controlplane.cluster.x-k8s.io/aggregate-to-manager": roles,
	}
}

// key matches a label or annotation in the tables of the reference data.
var key = regexp.MustCompile(`[a-z0-9.-]*x-k8s\.io/[a-z0-9-]+[a-z0-9]`)

// documentedKeys returns the keys, without braces, in the first column of the tables of labels and annotations.
func documentedKeys(text string) map[string]bool {
	found := map[string]bool{}
	until, _, _ := strings.Cut(text, "\n## 3. ")
	for line := range strings.Lines(until) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 || strings.Contains(line, "not in v1.7") {
			continue
		}
		for _, one := range key.FindAllString(cells[1], -1) {
			found[strings.TrimSuffix(one, "-")] = true
		}
	}
	return found
}

// isDocumented reports whether a text contains a value, possibly in an abbreviated list of keys with one prefix.
func isDocumented(text, value string) bool {
	if strings.Contains(text, value) {
		return true
	}
	prefix, name, isKey := strings.Cut(value, "/")
	if !isKey {
		return false
	}
	for _, short := range []string{prefix, strings.TrimSuffix(prefix, ".x-k8s.io")} {
		if strings.Contains(text, short) && regexp.MustCompile(`[-, {…/]`+regexp.QuoteMeta(name[strings.LastIndex(name, "/")+1:])+`\b`).MatchString(text) {
			return true
		}
	}
	return strings.HasSuffix(name, "-max-size") && strings.Contains(text, "-max-size")
}
