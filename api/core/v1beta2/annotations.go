package v1beta2

// Annotations on objects of the management cluster.
const (
	// PausedAnnotation stops controllers from acting on the object; presence counts, whatever the value.
	PausedAnnotation = "cluster.x-k8s.io/paused"

	// ManagedByAnnotation on an infrastructure cluster marks it as managed by something other than its provider's
	// controller; presence counts.
	ManagedByAnnotation = "cluster.x-k8s.io/managed-by"

	// ReplicasManagedByAnnotation on a MachinePool means that its replicas are managed externally, unless the value is
	// "false".
	ReplicasManagedByAnnotation = "cluster.x-k8s.io/replicas-managed-by"

	// MachinePoolRevisionAnnotation is a revision of the bootstrap config or of the infrastructure object of a MachinePool, as set by
	// the client that changes them, such as the topology controller. It is not part of Cluster API v1.7.
	MachinePoolRevisionAnnotation = "cluster.x-k8s.io/pool-revision"

	// MachinePoolBootstrapRevisionAnnotation and MachinePoolInfrastructureRevisionAnnotation on a MachinePool are the revisions of
	// its bootstrap config and of its infrastructure object that its spec belongs to. Until both objects have these revisions, and
	// the bootstrap data is that of this revision, no machine is replaced: so changes of three objects replace each machine once.
	MachinePoolBootstrapRevisionAnnotation      = "cluster.x-k8s.io/pool-bootstrap-revision"
	MachinePoolInfrastructureRevisionAnnotation = "cluster.x-k8s.io/pool-infrastructure-revision"

	// MachinePoolDataRevisionAnnotation on a MachinePool is the revision of the bootstrap config that the Secret in
	// spec.template.spec.bootstrap.dataSecretName was generated from. The MachinePool controller sets it together with the name.
	MachinePoolDataRevisionAnnotation = "cluster.x-k8s.io/pool-data-revision"

	// AutoscalerMinSizeAnnotation is the autoscaler's minimum number of replicas; used for defaulting.
	AutoscalerMinSizeAnnotation = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size"

	// AutoscalerMaxSizeAnnotation is the autoscaler's maximum number of replicas; used for defaulting.
	AutoscalerMaxSizeAnnotation = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"

	// TemplateClonedFromNameAnnotation is the name of the template an object was cloned from.
	TemplateClonedFromNameAnnotation = "cluster.x-k8s.io/cloned-from-name"

	// TemplateClonedFromGroupKindAnnotation is the kind of the template an object was cloned from, as Kind.group.
	TemplateClonedFromGroupKindAnnotation = "cluster.x-k8s.io/cloned-from-groupkind"

	// RestoredAnnotation is when the object was restored from a backup of the whole management cluster, with its UID, in RFC 3339. It is on
	// objects that machines are named by: names of new Machines derive from it, too, because machines may have the names that would be next
	// otherwise. It stays. It is not part of Cluster API v1.7.
	RestoredAnnotation = "cluster.x-k8s.io/restored"

	// PausedByRestoreAnnotation on a Cluster is when the backup was made that it was restored from, in RFC 3339. It was paused by the
	// restore, and is resumed as soon as its Machines match the Nodes of the workload cluster, or by users. It is not part of Cluster API
	// v1.7.
	PausedByRestoreAnnotation = "cluster.x-k8s.io/paused-by-restore"

	// ConversionDataAnnotation holds, as JSON, what an older API version of the object cannot represent.
	ConversionDataAnnotation = "cluster.x-k8s.io/conversion-data"

	// MachineSkipRemediationAnnotation prevents health checks from remediating the Machine; presence counts.
	MachineSkipRemediationAnnotation = "cluster.x-k8s.io/skip-remediation"

	// RemediateMachineAnnotation makes health checks consider the Machine unhealthy immediately; presence counts.
	RemediateMachineAnnotation = "cluster.x-k8s.io/remediate-machine"

	// DeleteMachineAnnotation makes the Machine the first to be deleted when its owner is scaled down; presence counts.
	DeleteMachineAnnotation = "cluster.x-k8s.io/delete-machine"

	// DisableMachineCreateAnnotation, with value "true", prevents a MachineSet from creating Machines. Set on the old
	// MachineSets of a MachineDeployment with strategy OnDelete.
	DisableMachineCreateAnnotation = "cluster.x-k8s.io/disable-machine-create"

	// MachineCertificatesExpiryDateAnnotation is when the certificates of a control plane Machine expire, in RFC 3339; on
	// the Machine or, with lower precedence, on its bootstrap configuration.
	MachineCertificatesExpiryDateAnnotation = "machine.cluster.x-k8s.io/certificates-expiry"

	// ExcludeNodeDrainingAnnotation skips draining the Node when the Machine is deleted; presence counts.
	ExcludeNodeDrainingAnnotation = "machine.cluster.x-k8s.io/exclude-node-draining"

	// ExcludeWaitForNodeVolumeDetachAnnotation skips the wait for volumes when the Machine is deleted; presence counts.
	ExcludeWaitForNodeVolumeDetachAnnotation = "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach"

	// PreDrainDeleteHookAnnotationPrefix is the prefix of annotations that block the deletion of a Machine before its
	// Node is drained.
	PreDrainDeleteHookAnnotationPrefix = "pre-drain.delete.hook.machine.cluster.x-k8s.io"

	// PreTerminateDeleteHookAnnotationPrefix is the prefix of annotations that block the deletion of a Machine before its
	// infrastructure is deleted.
	PreTerminateDeleteHookAnnotationPrefix = "pre-terminate.delete.hook.machine.cluster.x-k8s.io"

	// MachineSetSkipPreflightChecksAnnotation is a comma-separated list of MachineSetPreflightChecks to skip; on a
	// MachineSet, or on a MachineDeployment, which propagates it to its MachineSets.
	MachineSetSkipPreflightChecksAnnotation = "machineset.cluster.x-k8s.io/skip-preflight-checks"

	// MachineSetSpreadAnnotation spreads new Machines over failure domains, and removes surplus ones where there are most: a
	// comma-separated list of failure domains, or nothing for all that the Cluster reports. On a MachineSet, or on a MachineDeployment,
	// which propagates it to its MachineSets. spec.template.spec.failureDomain precedes it. Cluster API has nothing like it.
	MachineSetSpreadAnnotation = "machineset.cluster.x-k8s.io/spread-over-failure-domains"

	// RevisionAnnotation is the revision of a MachineSet within its MachineDeployment, and on the MachineDeployment the
	// latest one; a number that starts at 1.
	RevisionAnnotation = "machinedeployment.clusters.x-k8s.io/revision"

	// RevisionHistoryAnnotation lists, separated by commas, the earlier revisions of a MachineSet that was rolled back
	// to.
	RevisionHistoryAnnotation = "machinedeployment.clusters.x-k8s.io/revision-history"

	// DesiredReplicasAnnotation is, on a MachineSet, the replicas of its MachineDeployment when it was last scaled.
	DesiredReplicasAnnotation = "machinedeployment.clusters.x-k8s.io/desired-replicas"

	// MaxReplicasAnnotation is, on a MachineSet, the maximum number of machines of its MachineDeployment, including
	// surge.
	MaxReplicasAnnotation = "machinedeployment.clusters.x-k8s.io/max-replicas"
)

// Annotations for topologies.
const (
	// ClusterTopologyDeferUpgradeAnnotation in a worker group's topology metadata defers its upgrade; presence counts.
	ClusterTopologyDeferUpgradeAnnotation = "topology.cluster.x-k8s.io/defer-upgrade"

	// ClusterTopologyHoldUpgradeSequenceAnnotation in a worker group's topology metadata defers its upgrade and that of
	// all groups after it; presence counts.
	ClusterTopologyHoldUpgradeSequenceAnnotation = "topology.cluster.x-k8s.io/hold-upgrade-sequence"

	// ClusterTopologyUpgradeConcurrencyAnnotation on a Cluster is how many worker groups may be upgraded concurrently, at
	// least 1. When absent, 1.
	ClusterTopologyUpgradeConcurrencyAnnotation = "topology.cluster.x-k8s.io/upgrade-concurrency"

	// TopologyDryRunAnnotation marks dry-run requests of the topology controller, so that immutability checks of
	// templates allow them.
	TopologyDryRunAnnotation = "topology.cluster.x-k8s.io/dry-run"

	// ClusterTopologyUnsafeUpdateClassNameAnnotation on a Cluster allows setting the class of an existing Cluster;
	// presence counts.
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

	// LabelsFromMachineAnnotation lists, separated by commas, the keys of the Node labels that came from the Machine, so
	// that they are removed with those of the Machine.
	LabelsFromMachineAnnotation = "cluster.x-k8s.io/labels-from-machine"
)

// Labels and annotations that came with Cluster API v1.8 to v1.14.
const (
	// PodDrainLabel on a Pod of a workload cluster takes precedence over MachineDrainRules. Its value is PodDrainLabelSkip or
	// PodDrainLabelWaitCompleted.
	PodDrainLabel = "cluster.x-k8s.io/drain"
	// PodDrainLabelSkip leaves the Pod on the Node.
	PodDrainLabelSkip = "skip"
	// PodDrainLabelWaitCompleted waits for the Pod to complete, and does not evict it.
	PodDrainLabelWaitCompleted = "wait-completed"

	// AnnotationsFromMachineAnnotation on a Node lists, separated by commas, the keys of the annotations that came from the Machine,
	// so that they are removed with those of the Machine.
	AnnotationsFromMachineAnnotation = "cluster.x-k8s.io/annotations-from-machine"

	// TaintsFromMachineAnnotation on a Node lists, separated by commas, the taints with propagation Always that came from the Machine,
	// as key:effect, so that they are removed with those of the Machine.
	TaintsFromMachineAnnotation = "cluster.x-k8s.io/taints-from-machine"

	// BeforeClusterUpgradeHookAnnotationPrefix is the prefix of annotations on a Cluster that block an upgrade before it begins.
	BeforeClusterUpgradeHookAnnotationPrefix = "before-upgrade.hook.cluster.cluster.x-k8s.io"

	// ClusterTopologyUpgradeStepAnnotation on a Cluster is the version of the present step of an upgrade by several minor versions.
	ClusterTopologyUpgradeStepAnnotation = "topology.internal.cluster.x-k8s.io/upgrade-step"

	// MachineSetMoveMachinesToMachineSetAnnotation on an old MachineSet is the name of the MachineSet that takes its Machines over,
	// because they can be updated in place.
	MachineSetMoveMachinesToMachineSetAnnotation = "in-place-updates.internal.cluster.x-k8s.io/move-machines-to-machineset"

	// MachineSetReceiveMachinesFromMachineSetsAnnotation on a new MachineSet lists, separated by commas, the names of the MachineSets
	// whose Machines it takes over.
	MachineSetReceiveMachinesFromMachineSetsAnnotation = "in-place-updates.internal.cluster.x-k8s.io/receive-machines-from-machinesets"

	// PendingAcknowledgeMoveAnnotation on a Machine means that it was moved to another MachineSet, whose replicas do not include it
	// yet; presence counts.
	PendingAcknowledgeMoveAnnotation = "in-place-updates.internal.cluster.x-k8s.io/pending-acknowledge-move"

	// AcknowledgedMoveAnnotation on a MachineSet lists, separated by commas, the names of the moved Machines that its replicas include.
	AcknowledgedMoveAnnotation = "in-place-updates.internal.cluster.x-k8s.io/acknowledged-move"

	// UpdateInProgressAnnotation on a Machine, its bootstrap configuration and its infrastructure object means that they are being
	// updated in place; presence counts.
	UpdateInProgressAnnotation = "in-place-updates.internal.cluster.x-k8s.io/update-in-progress"

	// CRDMigrationObservedGenerationAnnotation on a CustomResourceDefinition is its generation when all objects had been migrated to
	// the storage version.
	CRDMigrationObservedGenerationAnnotation = "crd-migration.cluster.x-k8s.io/observed-generation"
)
