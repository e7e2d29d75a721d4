package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// KubeadmControlPlaneTemplateSpec wraps the template.
type KubeadmControlPlaneTemplateSpec struct {
	// template is the template of KubeadmControlPlanes; its spec is immutable.
	Template KubeadmControlPlaneTemplateResource `json:"template"`
}

// KubeadmControlPlaneTemplateResource is the template of KubeadmControlPlanes.
type KubeadmControlPlaneTemplateResource struct {
	// metadata holds the labels and annotations of every KubeadmControlPlane.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty"`

	// spec of every KubeadmControlPlane, without the fields that the Cluster's topology sets.
	Spec KubeadmControlPlaneTemplateResourceSpec `json:"spec"`
}

// KubeadmControlPlaneTemplateResourceSpec is a KubeadmControlPlaneSpec without the fields that the Cluster's topology
// sets: replicas, version and the infrastructure of Machines.
type KubeadmControlPlaneTemplateResourceSpec struct {
	// machineTemplate is the template of Machines.
	// +optional
	MachineTemplate *KubeadmControlPlaneTemplateMachineTemplate `json:"machineTemplate,omitempty"`

	// kubeadmConfigSpec is how Machines are initialized and joined.
	KubeadmConfigSpec bootstrapv1.KubeadmConfigSpec `json:"kubeadmConfigSpec"`

	// rolloutBefore replaces Machines ahead of a deadline.
	// +optional
	RolloutBefore *RolloutBefore `json:"rolloutBefore,omitempty"`

	// rolloutAfter replaces, after this time, the Machines created before it.
	// +optional
	RolloutAfter *metav1.Time `json:"rolloutAfter,omitempty"`

	// rolloutStrategy is how outdated Machines are replaced.
	// +optional
	// +kubebuilder:default={type: "RollingUpdate", rollingUpdate: {maxSurge: 1}}
	RolloutStrategy *RolloutStrategy `json:"rolloutStrategy,omitempty"`

	// remediationStrategy limits how unhealthy Machines are replaced.
	// +optional
	RemediationStrategy *RemediationStrategy `json:"remediationStrategy,omitempty"`

	// machineNamingStrategy defines the names of new Machines.
	// +optional
	MachineNamingStrategy *MachineNamingStrategy `json:"machineNamingStrategy,omitempty"`
}

// KubeadmControlPlaneTemplateMachineTemplate is a KubeadmControlPlaneMachineTemplate without the infrastructure.
type KubeadmControlPlaneTemplateMachineTemplate struct {
	// metadata holds the labels and annotations of every Machine, its infrastructure and its KubeadmConfig.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty"`

	// nodeDrainTimeout limits how long a Node is drained before its Machine is deleted anyway; zero or unset means no
	// limit.
	// +optional
	NodeDrainTimeout *metav1.Duration `json:"nodeDrainTimeout,omitempty"`

	// nodeVolumeDetachTimeout limits how long deletion waits for volumes to be detached; zero or unset means no limit.
	// +optional
	NodeVolumeDetachTimeout *metav1.Duration `json:"nodeVolumeDetachTimeout,omitempty"`

	// nodeDeletionTimeout limits how long deletion of the Node is retried, 10 seconds when unset; zero means no limit.
	// +optional
	NodeDeletionTimeout *metav1.Duration `json:"nodeDeletionTimeout,omitempty"`

	// taints are set on the Nodes. Changed in place. Requires the feature gate MachineTaintPropagation.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	Taints []clusterv1.MachineTaint `json:"taints,omitempty"`
}

// KubeadmControlPlaneTemplate is the template from which a ClusterClass creates the KubeadmControlPlane of each Cluster.
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
