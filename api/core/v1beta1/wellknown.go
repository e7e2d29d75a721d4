package v1beta1

import (
	clusterv1beta2 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// The labels, annotations, finalizers and taints are the same in all API versions. Package v1beta2 explains them.

// Labels.
const (
	ClusterNameLabel                          = clusterv1beta2.ClusterNameLabel
	ProviderNameLabel                         = clusterv1beta2.ProviderNameLabel
	WatchLabel                                = clusterv1beta2.WatchLabel
	InterruptibleLabel                        = clusterv1beta2.InterruptibleLabel
	MachineControlPlaneLabel                  = clusterv1beta2.MachineControlPlaneLabel
	MachineControlPlaneNameLabel              = clusterv1beta2.MachineControlPlaneNameLabel
	MachineSetNameLabel                       = clusterv1beta2.MachineSetNameLabel
	MachineDeploymentNameLabel                = clusterv1beta2.MachineDeploymentNameLabel
	MachinePoolNameLabel                      = clusterv1beta2.MachinePoolNameLabel
	MachineDeploymentUniqueLabel              = clusterv1beta2.MachineDeploymentUniqueLabel
	ClusterTopologyOwnedLabel                 = clusterv1beta2.ClusterTopologyOwnedLabel
	ClusterTopologyMachineDeploymentNameLabel = clusterv1beta2.ClusterTopologyMachineDeploymentNameLabel
	ClusterTopologyMachinePoolNameLabel       = clusterv1beta2.ClusterTopologyMachinePoolNameLabel
	AggregateToManagerLabel                   = clusterv1beta2.AggregateToManagerLabel
)

// Prefixes of the labels that are kept in sync from a Machine to its Node.
const (
	NodeRoleLabelPrefix        = clusterv1beta2.NodeRoleLabelPrefix
	NodeRestrictionLabelDomain = clusterv1beta2.NodeRestrictionLabelDomain
	ManagedNodeLabelDomain     = clusterv1beta2.ManagedNodeLabelDomain
)

// Annotations on objects of the management cluster.
const (
	PausedAnnotation                            = clusterv1beta2.PausedAnnotation
	ManagedByAnnotation                         = clusterv1beta2.ManagedByAnnotation
	ReplicasManagedByAnnotation                 = clusterv1beta2.ReplicasManagedByAnnotation
	MachinePoolRevisionAnnotation               = clusterv1beta2.MachinePoolRevisionAnnotation
	MachinePoolBootstrapRevisionAnnotation      = clusterv1beta2.MachinePoolBootstrapRevisionAnnotation
	MachinePoolInfrastructureRevisionAnnotation = clusterv1beta2.MachinePoolInfrastructureRevisionAnnotation
	MachinePoolDataRevisionAnnotation           = clusterv1beta2.MachinePoolDataRevisionAnnotation
	AutoscalerMinSizeAnnotation                 = clusterv1beta2.AutoscalerMinSizeAnnotation
	AutoscalerMaxSizeAnnotation                 = clusterv1beta2.AutoscalerMaxSizeAnnotation
	TemplateClonedFromNameAnnotation            = clusterv1beta2.TemplateClonedFromNameAnnotation
	TemplateClonedFromGroupKindAnnotation       = clusterv1beta2.TemplateClonedFromGroupKindAnnotation
	ConversionDataAnnotation                    = clusterv1beta2.ConversionDataAnnotation
	MachineSkipRemediationAnnotation            = clusterv1beta2.MachineSkipRemediationAnnotation
	RemediateMachineAnnotation                  = clusterv1beta2.RemediateMachineAnnotation
	DeleteMachineAnnotation                     = clusterv1beta2.DeleteMachineAnnotation
	DisableMachineCreateAnnotation              = clusterv1beta2.DisableMachineCreateAnnotation
	MachineCertificatesExpiryDateAnnotation     = clusterv1beta2.MachineCertificatesExpiryDateAnnotation
	ExcludeNodeDrainingAnnotation               = clusterv1beta2.ExcludeNodeDrainingAnnotation
	ExcludeWaitForNodeVolumeDetachAnnotation    = clusterv1beta2.ExcludeWaitForNodeVolumeDetachAnnotation
	PreDrainDeleteHookAnnotationPrefix          = clusterv1beta2.PreDrainDeleteHookAnnotationPrefix
	PreTerminateDeleteHookAnnotationPrefix      = clusterv1beta2.PreTerminateDeleteHookAnnotationPrefix
	MachineSetSkipPreflightChecksAnnotation     = clusterv1beta2.MachineSetSkipPreflightChecksAnnotation
	RevisionAnnotation                          = clusterv1beta2.RevisionAnnotation
	RevisionHistoryAnnotation                   = clusterv1beta2.RevisionHistoryAnnotation
	DesiredReplicasAnnotation                   = clusterv1beta2.DesiredReplicasAnnotation
	MaxReplicasAnnotation                       = clusterv1beta2.MaxReplicasAnnotation
)

// Annotations for topologies.
const (
	ClusterTopologyDeferUpgradeAnnotation          = clusterv1beta2.ClusterTopologyDeferUpgradeAnnotation
	ClusterTopologyHoldUpgradeSequenceAnnotation   = clusterv1beta2.ClusterTopologyHoldUpgradeSequenceAnnotation
	ClusterTopologyUpgradeConcurrencyAnnotation    = clusterv1beta2.ClusterTopologyUpgradeConcurrencyAnnotation
	TopologyDryRunAnnotation                       = clusterv1beta2.TopologyDryRunAnnotation
	ClusterTopologyUnsafeUpdateClassNameAnnotation = clusterv1beta2.ClusterTopologyUnsafeUpdateClassNameAnnotation
	ClusterTopologyUnsafeUpdateVersionAnnotation   = clusterv1beta2.ClusterTopologyUnsafeUpdateVersionAnnotation
)

// Annotations on Nodes of workload clusters, written by the Machine and MachinePool controllers.
const (
	ClusterNameAnnotation       = clusterv1beta2.ClusterNameAnnotation
	ClusterNamespaceAnnotation  = clusterv1beta2.ClusterNamespaceAnnotation
	MachineAnnotation           = clusterv1beta2.MachineAnnotation
	OwnerKindAnnotation         = clusterv1beta2.OwnerKindAnnotation
	OwnerNameAnnotation         = clusterv1beta2.OwnerNameAnnotation
	LabelsFromMachineAnnotation = clusterv1beta2.LabelsFromMachineAnnotation
)

// Finalizers.
const (
	ClusterFinalizer                   = clusterv1beta2.ClusterFinalizer
	MachineFinalizer                   = clusterv1beta2.MachineFinalizer
	MachineSetTopologyFinalizer        = clusterv1beta2.MachineSetTopologyFinalizer
	MachineDeploymentTopologyFinalizer = clusterv1beta2.MachineDeploymentTopologyFinalizer
	MachinePoolFinalizer               = clusterv1beta2.MachinePoolFinalizer
)

// Other names.
const (
	TemplateSuffix    = clusterv1beta2.TemplateSuffix
	ClusterSecretType = clusterv1beta2.ClusterSecretType
)

// Taints of Nodes.
var (
	NodeUninitializedTaint    = clusterv1beta2.NodeUninitializedTaint
	NodeOutdatedRevisionTaint = clusterv1beta2.NodeOutdatedRevisionTaint
)
