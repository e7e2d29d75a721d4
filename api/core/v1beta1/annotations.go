package v1beta1

// Annotations on objects of the management cluster.
const (
	// PausedAnnotation stops controllers from acting on the object; presence counts, whatever the value.
	PausedAnnotation = "cluster.x-k8s.io/paused"

	// ManagedByAnnotation on an infrastructure cluster says that something other than its provider's controller
	// manages it; presence counts.
	ManagedByAnnotation = "cluster.x-k8s.io/managed-by"

	// ReplicasManagedByAnnotation on a MachinePool says that something else decides its replicas, unless the value is
	// "false".
	ReplicasManagedByAnnotation = "cluster.x-k8s.io/replicas-managed-by"

	// AutoscalerMinSizeAnnotation is the least number of replicas an autoscaler may choose; used for defaulting.
	AutoscalerMinSizeAnnotation = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size"

	// AutoscalerMaxSizeAnnotation is the greatest number of replicas an autoscaler may choose; used for defaulting.
	AutoscalerMaxSizeAnnotation = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"

	// TemplateClonedFromNameAnnotation is the name of the template an object was cloned from.
	TemplateClonedFromNameAnnotation = "cluster.x-k8s.io/cloned-from-name"

	// TemplateClonedFromGroupKindAnnotation is the kind of the template an object was cloned from, as Kind.group.
	TemplateClonedFromGroupKindAnnotation = "cluster.x-k8s.io/cloned-from-groupkind"

	// ConversionDataAnnotation keeps, as JSON, what an older API version of the object cannot express.
	ConversionDataAnnotation = "cluster.x-k8s.io/conversion-data"

	// MachineSkipRemediationAnnotation keeps health checks from remediating the Machine; presence counts.
	MachineSkipRemediationAnnotation = "cluster.x-k8s.io/skip-remediation"

	// RemediateMachineAnnotation makes health checks take the Machine for unhealthy at once; presence counts.
	RemediateMachineAnnotation = "cluster.x-k8s.io/remediate-machine"

	// DeleteMachineAnnotation makes the Machine the first to go when its owner shrinks; presence counts.
	DeleteMachineAnnotation = "cluster.x-k8s.io/delete-machine"

	// DisableMachineCreateAnnotation, with value "true", keeps a MachineSet from making Machines. Set on the old
	// MachineSets of a MachineDeployment with strategy OnDelete.
	DisableMachineCreateAnnotation = "cluster.x-k8s.io/disable-machine-create"

	// MachineCertificatesExpiryDateAnnotation is when the certificates of a control plane Machine run out, in RFC 3339;
	// on the Machine or, with less weight, on its bootstrap configuration.
	MachineCertificatesExpiryDateAnnotation = "machine.cluster.x-k8s.io/certificates-expiry"

	// ExcludeNodeDrainingAnnotation skips draining the Node when the Machine is deleted; presence counts.
	ExcludeNodeDrainingAnnotation = "machine.cluster.x-k8s.io/exclude-node-draining"

	// ExcludeWaitForNodeVolumeDetachAnnotation skips the wait for volumes when the Machine is deleted; presence counts.
	ExcludeWaitForNodeVolumeDetachAnnotation = "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach"

	// PreDrainDeleteHookAnnotationPrefix starts annotations that hold up the deletion of a Machine before its Node is
	// drained, as long as there is one.
	PreDrainDeleteHookAnnotationPrefix = "pre-drain.delete.hook.machine.cluster.x-k8s.io"

	// PreTerminateDeleteHookAnnotationPrefix starts annotations that hold up the deletion of a Machine before its
	// infrastructure is deleted, as long as there is one.
	PreTerminateDeleteHookAnnotationPrefix = "pre-terminate.delete.hook.machine.cluster.x-k8s.io"

	// MachineSetSkipPreflightChecksAnnotation is a comma-separated list of MachineSetPreflightChecks not to make; on a
	// MachineSet, or on a MachineDeployment to be passed on to its MachineSets.
	MachineSetSkipPreflightChecksAnnotation = "machineset.cluster.x-k8s.io/skip-preflight-checks"

	// RevisionAnnotation is the revision of a MachineSet within its MachineDeployment, and on the MachineDeployment the
	// latest one; a number counting up from 1.
	RevisionAnnotation = "machinedeployment.clusters.x-k8s.io/revision"

	// RevisionHistoryAnnotation lists, separated by commas, the earlier revisions of a MachineSet that was gone back
	// to.
	RevisionHistoryAnnotation = "machinedeployment.clusters.x-k8s.io/revision-history"

	// DesiredReplicasAnnotation is, on a MachineSet, the replicas of its MachineDeployment when it was last scaled.
	DesiredReplicasAnnotation = "machinedeployment.clusters.x-k8s.io/desired-replicas"

	// MaxReplicasAnnotation is, on a MachineSet, the most machines its MachineDeployment may have, surge included.
	MaxReplicasAnnotation = "machinedeployment.clusters.x-k8s.io/max-replicas"
)

// Annotations that steer topologies.
const (
	// ClusterTopologyDeferUpgradeAnnotation in a worker group's topology metadata puts off its upgrade; presence counts.
	ClusterTopologyDeferUpgradeAnnotation = "topology.cluster.x-k8s.io/defer-upgrade"

	// ClusterTopologyHoldUpgradeSequenceAnnotation in a worker group's topology metadata puts off its upgrade and that
	// of all groups after it; presence counts.
	ClusterTopologyHoldUpgradeSequenceAnnotation = "topology.cluster.x-k8s.io/hold-upgrade-sequence"

	// ClusterTopologyUpgradeConcurrencyAnnotation on a Cluster is how many worker groups may be upgraded at a time, at
	// least 1. When absent, 1.
	ClusterTopologyUpgradeConcurrencyAnnotation = "topology.cluster.x-k8s.io/upgrade-concurrency"

	// TopologyDryRunAnnotation marks dry-run requests of the topology controller, so that immutability checks of
	// templates let them pass.
	TopologyDryRunAnnotation = "topology.cluster.x-k8s.io/dry-run"

	// ClusterTopologyUnsafeUpdateClassNameAnnotation on a Cluster allows giving an existing Cluster a class; presence
	// counts.
	ClusterTopologyUnsafeUpdateClassNameAnnotation = "unsafe.topology.cluster.x-k8s.io/disable-update-class-name-check"

	// ClusterTopologyUnsafeUpdateVersionAnnotation on a Cluster skips the checks of a change of topology.version;
	// presence counts.
	ClusterTopologyUnsafeUpdateVersionAnnotation = "unsafe.topology.cluster.x-k8s.io/disable-update-version-check"
)

// Annotations on Nodes of workload clusters, written by the Machine and MachinePool controllers.
const (
	// ClusterNameAnnotation is the name of the Cluster.
	ClusterNameAnnotation = "cluster.x-k8s.io/cluster-name"

	// ClusterNamespaceAnnotation is the namespace of the Cluster.
	ClusterNamespaceAnnotation = "cluster.x-k8s.io/cluster-namespace"

	// MachineAnnotation is the name of the Machine.
	MachineAnnotation = "cluster.x-k8s.io/machine"

	// OwnerKindAnnotation is the kind of the object that controls the Machine.
	OwnerKindAnnotation = "cluster.x-k8s.io/owner-kind"

	// OwnerNameAnnotation is the name of the object that controls the Machine.
	OwnerNameAnnotation = "cluster.x-k8s.io/owner-name"

	// LabelsFromMachineAnnotation lists, separated by commas, the keys of the Node labels that came from the Machine,
	// so that those dropped there are removed here.
	LabelsFromMachineAnnotation = "cluster.x-k8s.io/labels-from-machine"
)
