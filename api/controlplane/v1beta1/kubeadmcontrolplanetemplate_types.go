package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// KubeadmControlPlaneTemplateSpec wraps the template.
type KubeadmControlPlaneTemplateSpec struct {
	// template is what KubeadmControlPlanes are made from; its spec cannot be changed.
	Template KubeadmControlPlaneTemplateResource `json:"template"`
}

// KubeadmControlPlaneTemplateResource is what KubeadmControlPlanes are made from.
type KubeadmControlPlaneTemplateResource struct {
	// metadata holds labels and annotations that every KubeadmControlPlane gets.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty"`

	// spec of every KubeadmControlPlane, without what the Cluster's topology decides.
	Spec KubeadmControlPlaneTemplateResourceSpec `json:"spec"`
}

// KubeadmControlPlaneTemplateResourceSpec is a KubeadmControlPlaneSpec without what the Cluster's topology decides: replicas,
// version and the infrastructure of Machines.
type KubeadmControlPlaneTemplateResourceSpec struct {
	// machineTemplate says how Machines are made.
	// +optional
	MachineTemplate *KubeadmControlPlaneTemplateMachineTemplate `json:"machineTemplate,omitempty"`

	// kubeadmConfigSpec says how Machines are initialised and joined.
	KubeadmConfigSpec bootstrapv1.KubeadmConfigSpec `json:"kubeadmConfigSpec"`

	// rolloutBefore replaces Machines ahead of a deadline.
	// +optional
	RolloutBefore *RolloutBefore `json:"rolloutBefore,omitempty"`

	// rolloutAfter replaces, once this time is past, the Machines created before it.
	// +optional
	RolloutAfter *metav1.Time `json:"rolloutAfter,omitempty"`

	// rolloutStrategy says how outdated Machines are replaced.
	// +optional
	// +kubebuilder:default={type: "RollingUpdate", rollingUpdate: {maxSurge: 1}}
	RolloutStrategy *RolloutStrategy `json:"rolloutStrategy,omitempty"`

	// remediationStrategy limits how unhealthy Machines are replaced.
	// +optional
	RemediationStrategy *RemediationStrategy `json:"remediationStrategy,omitempty"`
}

// KubeadmControlPlaneTemplateMachineTemplate is a KubeadmControlPlaneMachineTemplate without the infrastructure.
type KubeadmControlPlaneTemplateMachineTemplate struct {
	// metadata holds labels and annotations that every Machine, its infrastructure and its KubeadmConfig get.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty"`

	// nodeDrainTimeout limits how long a Node is drained before its Machine is deleted anyway; zero or unset is no limit.
	// +optional
	NodeDrainTimeout *metav1.Duration `json:"nodeDrainTimeout,omitempty"`

	// nodeVolumeDetachTimeout limits how long deletion waits for volumes to be detached; zero or unset is no limit.
	// +optional
	NodeVolumeDetachTimeout *metav1.Duration `json:"nodeVolumeDetachTimeout,omitempty"`

	// nodeDeletionTimeout limits how long deletion of the Node is retried, 10 seconds when unset; zero is no limit.
	// +optional
	NodeDeletionTimeout *metav1.Duration `json:"nodeDeletionTimeout,omitempty"`
}

// KubeadmControlPlaneTemplate is what a ClusterClass makes the KubeadmControlPlane of each Cluster from.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=kubeadmcontrolplanetemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type KubeadmControlPlaneTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec KubeadmControlPlaneTemplateSpec `json:"spec,omitempty"`
}

// KubeadmControlPlaneTemplateList is a list of KubeadmControlPlaneTemplates.
//
// +kubebuilder:object:root=true
type KubeadmControlPlaneTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KubeadmControlPlaneTemplate `json:"items"`
}
