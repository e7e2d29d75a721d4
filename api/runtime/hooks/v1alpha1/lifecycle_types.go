package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
)

var _ RequestObject = &BeforeClusterCreateRequest{}

// +kubebuilder:object:root=true

// BeforeClusterCreateRequest is the request of the hook BeforeClusterCreate.
type BeforeClusterCreateRequest struct {
	metav1.TypeMeta `json:",inline"`
	// CommonRequest are the fields of all requests.
	CommonRequest `json:",inline"`

	// cluster is the Cluster.
	Cluster clusterv1.Cluster `json:"cluster"`
}

var _ RetryResponseObject = &BeforeClusterCreateResponse{}

// +kubebuilder:object:root=true

// BeforeClusterCreateResponse is the response of the hook BeforeClusterCreate.
type BeforeClusterCreateResponse struct {
	metav1.TypeMeta `json:",inline"`
	// CommonRetryResponse are the fields of responses of hooks that can block.
	CommonRetryResponse `json:",inline"`
}

// BeforeClusterCreate is called before the objects of a Cluster's topology are created. It can block.
func BeforeClusterCreate(*BeforeClusterCreateRequest, *BeforeClusterCreateResponse) {}

var _ RequestObject = &AfterControlPlaneInitializedRequest{}

// +kubebuilder:object:root=true

// AfterControlPlaneInitializedRequest is the request of the hook AfterControlPlaneInitialized.
type AfterControlPlaneInitializedRequest struct {
	metav1.TypeMeta `json:",inline"`
	// CommonRequest are the fields of all requests.
	CommonRequest `json:",inline"`

	// cluster is the Cluster.
	Cluster clusterv1.Cluster `json:"cluster"`
}

var _ ResponseObject = &AfterControlPlaneInitializedResponse{}

// +kubebuilder:object:root=true

// AfterControlPlaneInitializedResponse is the response of the hook AfterControlPlaneInitialized.
type AfterControlPlaneInitializedResponse struct {
	metav1.TypeMeta `json:",inline"`
	// CommonResponse are the fields of all responses.
	CommonResponse `json:",inline"`
}

// AfterControlPlaneInitialized is called once the control plane accepts requests. It does not block.
func AfterControlPlaneInitialized(*AfterControlPlaneInitializedRequest, *AfterControlPlaneInitializedResponse) {
}

var _ RequestObject = &BeforeClusterUpgradeRequest{}

// +kubebuilder:object:root=true

// BeforeClusterUpgradeRequest is the request of the hook BeforeClusterUpgrade.
type BeforeClusterUpgradeRequest struct {
	metav1.TypeMeta `json:",inline"`
	// CommonRequest are the fields of all requests.
	CommonRequest `json:",inline"`

	// cluster is the Cluster.
	Cluster clusterv1.Cluster `json:"cluster"`

	// fromKubernetesVersion is the current version of the control plane.
	FromKubernetesVersion string `json:"fromKubernetesVersion"`

	// toKubernetesVersion is the version to upgrade to.
	ToKubernetesVersion string `json:"toKubernetesVersion"`

	// controlPlaneUpgrades are the versions that the control plane is still to be upgraded to, in order.
	// +optional
	ControlPlaneUpgrades []UpgradeStepInfo `json:"controlPlaneUpgrades,omitempty"`

	// workersUpgrades are the versions that workers are still to be upgraded to, in order.
	// +optional
	WorkersUpgrades []UpgradeStepInfo `json:"workersUpgrades,omitempty"`
}

var _ RetryResponseObject = &BeforeClusterUpgradeResponse{}

// +kubebuilder:object:root=true

// BeforeClusterUpgradeResponse is the response of the hook BeforeClusterUpgrade.
type BeforeClusterUpgradeResponse struct {
	metav1.TypeMeta `json:",inline"`
	// CommonRetryResponse are the fields of responses of hooks that can block.
	CommonRetryResponse `json:",inline"`
}

// BeforeClusterUpgrade is called before the control plane gets a new version. It can block.
func BeforeClusterUpgrade(*BeforeClusterUpgradeRequest, *BeforeClusterUpgradeResponse) {}

var _ RequestObject = &AfterControlPlaneUpgradeRequest{}

// +kubebuilder:object:root=true

// AfterControlPlaneUpgradeRequest is the request of the hook AfterControlPlaneUpgrade.
type AfterControlPlaneUpgradeRequest struct {
	metav1.TypeMeta `json:",inline"`
	// CommonRequest are the fields of all requests.
	CommonRequest `json:",inline"`

	// cluster is the Cluster.
	Cluster clusterv1.Cluster `json:"cluster"`

	// kubernetesVersion is the version of the control plane after the upgrade.
	KubernetesVersion string `json:"kubernetesVersion"`

	// controlPlaneUpgrades are the versions that the control plane is still to be upgraded to, in order.
	// +optional
	ControlPlaneUpgrades []UpgradeStepInfo `json:"controlPlaneUpgrades,omitempty"`

	// workersUpgrades are the versions that workers are still to be upgraded to, in order.
	// +optional
	WorkersUpgrades []UpgradeStepInfo `json:"workersUpgrades,omitempty"`
}

var _ RetryResponseObject = &AfterControlPlaneUpgradeResponse{}

// +kubebuilder:object:root=true

// AfterControlPlaneUpgradeResponse is the response of the hook AfterControlPlaneUpgrade.
type AfterControlPlaneUpgradeResponse struct {
	metav1.TypeMeta `json:",inline"`
	// CommonRetryResponse are the fields of responses of hooks that can block.
	CommonRetryResponse `json:",inline"`
}

// AfterControlPlaneUpgrade is called after the control plane was upgraded, before the workers are. It can block.
func AfterControlPlaneUpgrade(*AfterControlPlaneUpgradeRequest, *AfterControlPlaneUpgradeResponse) {}

var _ RequestObject = &AfterClusterUpgradeRequest{}

// +kubebuilder:object:root=true

// AfterClusterUpgradeRequest is the request of the hook AfterClusterUpgrade.
type AfterClusterUpgradeRequest struct {
	metav1.TypeMeta `json:",inline"`
	// CommonRequest are the fields of all requests.
	CommonRequest `json:",inline"`

	// cluster is the Cluster.
	Cluster clusterv1.Cluster `json:"cluster"`

	// kubernetesVersion is the version of the Cluster after the upgrade.
	KubernetesVersion string `json:"kubernetesVersion"`
}

var _ RetryResponseObject = &AfterClusterUpgradeResponse{}

// +kubebuilder:object:root=true

// AfterClusterUpgradeResponse is the response of the hook AfterClusterUpgrade.
type AfterClusterUpgradeResponse struct {
	metav1.TypeMeta `json:",inline"`
	// CommonRetryResponse are the fields of responses of hooks that can block.
	CommonRetryResponse `json:",inline"`
}

// AfterClusterUpgrade is called after control plane and workers were upgraded. It can block.
func AfterClusterUpgrade(*AfterClusterUpgradeRequest, *AfterClusterUpgradeResponse) {}

var _ RequestObject = &BeforeClusterDeleteRequest{}

// +kubebuilder:object:root=true

// BeforeClusterDeleteRequest is the request of the hook BeforeClusterDelete.
type BeforeClusterDeleteRequest struct {
	metav1.TypeMeta `json:",inline"`
	// CommonRequest are the fields of all requests.
	CommonRequest `json:",inline"`

	// cluster is the Cluster.
	Cluster clusterv1.Cluster `json:"cluster"`
}

var _ RetryResponseObject = &BeforeClusterDeleteResponse{}

// +kubebuilder:object:root=true

// BeforeClusterDeleteResponse is the response of the hook BeforeClusterDelete.
type BeforeClusterDeleteResponse struct {
	metav1.TypeMeta `json:",inline"`
	// CommonRetryResponse are the fields of responses of hooks that can block.
	CommonRetryResponse `json:",inline"`
}

// BeforeClusterDelete is called after the deletion of a Cluster was requested, before any of its objects is deleted. It can block.
func BeforeClusterDelete(*BeforeClusterDeleteRequest, *BeforeClusterDeleteResponse) {}

func registerLifecycleHooks(b *runtimecatalog.Builder) {
	register := func(hook runtimecatalog.Hook, summary, description string) {
		b.RegisterHook(hook, &runtimecatalog.HookMeta{
			Tags: []string{"Lifecycle Hooks"}, Summary: summary, Description: description, PayloadVersion: clusterv1.GroupVersion.Version,
		})
	}
	register(BeforeClusterCreate, "Called before the objects of a Cluster's topology are created",
		"Called for Clusters with a managed topology only. While the response has a non-zero retryAfterSeconds, no object is created. "+
			"It may be called again after it stopped blocking, until the Cluster refers to its objects.")
	register(AfterControlPlaneInitialized, "Called after the control plane is initialized",
		"Called for Clusters with a managed topology only, once the control plane accepts requests. It does not block.")
	register(BeforeClusterUpgrade, "Called before a Cluster is upgraded",
		"Called for Clusters with a managed topology only, before an upgrade begins. While the response has a "+
			"non-zero retryAfterSeconds, control plane and workers keep their version.")
	register(AfterControlPlaneUpgrade, "Called after the control plane is upgraded",
		"Called for Clusters with a managed topology only, after each step of the upgrade of a control plane. While the response has a "+
			"non-zero retryAfterSeconds, workers keep their version, and the next step does not begin.")
	register(AfterClusterUpgrade, "Called after a Cluster is upgraded",
		"Called for Clusters with a managed topology only, after control plane and workers have the new version. While the response has a "+
			"non-zero retryAfterSeconds, the upgrade is not complete: the Cluster cannot get another version.")
	register(BeforeClusterDelete, "Called before a Cluster is deleted",
		"Called for Clusters with a managed topology only, after their deletion was requested. While the response has a non-zero "+
			"retryAfterSeconds, no object of the Cluster is deleted.")
}
