package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
)

// UpgradeStepInfo is a step of an upgrade that is not complete.
type UpgradeStepInfo struct {
	// version is the Kubernetes version of the step.
	Version string `json:"version"`
}

// UpgradeStep is a step of the plan of an upgrade.
type UpgradeStep struct {
	// version is the Kubernetes version of the step.
	Version string `json:"version"`
}

var _ RequestObject = &BeforeControlPlaneUpgradeRequest{}

// +kubebuilder:object:root=true

// BeforeControlPlaneUpgradeRequest is the request of the hook BeforeControlPlaneUpgrade.
type BeforeControlPlaneUpgradeRequest struct {
	metav1.TypeMeta `json:",inline"`
	// CommonRequest are the fields of all requests.
	CommonRequest `json:",inline"`

	// cluster is the Cluster.
	Cluster clusterv1.Cluster `json:"cluster"`

	// fromKubernetesVersion is the current version.
	FromKubernetesVersion string `json:"fromKubernetesVersion"`

	// toKubernetesVersion is the version of this step of the upgrade.
	ToKubernetesVersion string `json:"toKubernetesVersion"`

	// controlPlaneUpgrades are the versions that the control plane is still to be upgraded to, in order.
	// +optional
	ControlPlaneUpgrades []UpgradeStepInfo `json:"controlPlaneUpgrades,omitempty"`

	// workersUpgrades are the versions that workers are still to be upgraded to, in order.
	// +optional
	WorkersUpgrades []UpgradeStepInfo `json:"workersUpgrades,omitempty"`
}

var _ RetryResponseObject = &BeforeControlPlaneUpgradeResponse{}

// +kubebuilder:object:root=true

// BeforeControlPlaneUpgradeResponse is the response of the hook BeforeControlPlaneUpgrade.
type BeforeControlPlaneUpgradeResponse struct {
	metav1.TypeMeta `json:",inline"`
	// CommonRetryResponse are the fields of responses of hooks that can block.
	CommonRetryResponse `json:",inline"`
}

// BeforeControlPlaneUpgrade is called before each step of the upgrade of a control plane. It can block.
func BeforeControlPlaneUpgrade(*BeforeControlPlaneUpgradeRequest, *BeforeControlPlaneUpgradeResponse) {
}

var _ RequestObject = &BeforeWorkersUpgradeRequest{}

// +kubebuilder:object:root=true

// BeforeWorkersUpgradeRequest is the request of the hook BeforeWorkersUpgrade.
type BeforeWorkersUpgradeRequest struct {
	metav1.TypeMeta `json:",inline"`
	// CommonRequest are the fields of all requests.
	CommonRequest `json:",inline"`

	// cluster is the Cluster.
	Cluster clusterv1.Cluster `json:"cluster"`

	// fromKubernetesVersion is the current version.
	FromKubernetesVersion string `json:"fromKubernetesVersion"`

	// toKubernetesVersion is the version of this step of the upgrade.
	ToKubernetesVersion string `json:"toKubernetesVersion"`

	// controlPlaneUpgrades are the versions that the control plane is still to be upgraded to, in order.
	// +optional
	ControlPlaneUpgrades []UpgradeStepInfo `json:"controlPlaneUpgrades,omitempty"`

	// workersUpgrades are the versions that workers are still to be upgraded to, in order.
	// +optional
	WorkersUpgrades []UpgradeStepInfo `json:"workersUpgrades,omitempty"`
}

var _ RetryResponseObject = &BeforeWorkersUpgradeResponse{}

// +kubebuilder:object:root=true

// BeforeWorkersUpgradeResponse is the response of the hook BeforeWorkersUpgrade.
type BeforeWorkersUpgradeResponse struct {
	metav1.TypeMeta `json:",inline"`
	// CommonRetryResponse are the fields of responses of hooks that can block.
	CommonRetryResponse `json:",inline"`
}

// BeforeWorkersUpgrade is called before each step of the upgrade of workers. It can block.
func BeforeWorkersUpgrade(*BeforeWorkersUpgradeRequest, *BeforeWorkersUpgradeResponse) {
}

var _ RequestObject = &AfterWorkersUpgradeRequest{}

// +kubebuilder:object:root=true

// AfterWorkersUpgradeRequest is the request of the hook AfterWorkersUpgrade.
type AfterWorkersUpgradeRequest struct {
	metav1.TypeMeta `json:",inline"`
	// CommonRequest are the fields of all requests.
	CommonRequest `json:",inline"`

	// cluster is the Cluster.
	Cluster clusterv1.Cluster `json:"cluster"`

	// kubernetesVersion is the version after this step of the upgrade.
	KubernetesVersion string `json:"kubernetesVersion"`

	// controlPlaneUpgrades are the versions that the control plane is still to be upgraded to, in order.
	// +optional
	ControlPlaneUpgrades []UpgradeStepInfo `json:"controlPlaneUpgrades,omitempty"`

	// workersUpgrades are the versions that workers are still to be upgraded to, in order.
	// +optional
	WorkersUpgrades []UpgradeStepInfo `json:"workersUpgrades,omitempty"`
}

var _ RetryResponseObject = &AfterWorkersUpgradeResponse{}

// +kubebuilder:object:root=true

// AfterWorkersUpgradeResponse is the response of the hook AfterWorkersUpgrade.
type AfterWorkersUpgradeResponse struct {
	metav1.TypeMeta `json:",inline"`
	// CommonRetryResponse are the fields of responses of hooks that can block.
	CommonRetryResponse `json:",inline"`
}

// AfterWorkersUpgrade is called after each step of the upgrade of workers. It can block.
func AfterWorkersUpgrade(*AfterWorkersUpgradeRequest, *AfterWorkersUpgradeResponse) {
}

var _ RequestObject = &GenerateUpgradePlanRequest{}

// +kubebuilder:object:root=true

// GenerateUpgradePlanRequest is the request of the hook GenerateUpgradePlan.
type GenerateUpgradePlanRequest struct {
	metav1.TypeMeta `json:",inline"`
	// CommonRequest are the fields of all requests.
	CommonRequest `json:",inline"`

	// cluster is the Cluster.
	Cluster clusterv1.Cluster `json:"cluster"`

	// fromControlPlaneKubernetesVersion is the current version of the control plane.
	FromControlPlaneKubernetesVersion string `json:"fromControlPlaneKubernetesVersion"`

	// fromWorkersKubernetesVersion is the lowest current version of workers. It is empty if there are none.
	// +optional
	FromWorkersKubernetesVersion string `json:"fromWorkersKubernetesVersion,omitempty"`

	// toKubernetesVersion is the version to upgrade to.
	ToKubernetesVersion string `json:"toKubernetesVersion"`
}

var _ ResponseObject = &GenerateUpgradePlanResponse{}

// +kubebuilder:object:root=true

// GenerateUpgradePlanResponse is the response of the hook GenerateUpgradePlan.
type GenerateUpgradePlanResponse struct {
	metav1.TypeMeta `json:",inline"`
	// CommonResponse are the fields of all responses.
	CommonResponse `json:",inline"`

	// controlPlaneUpgrades are the versions to upgrade the control plane to, ascending, without skipping a minor version; the last one is
	// toKubernetesVersion.
	// +optional
	ControlPlaneUpgrades []UpgradeStep `json:"controlPlaneUpgrades,omitempty"`

	// workersUpgrades are the versions to upgrade workers to: versions of the control plane, ascending. When unset, as few as the skew
	// between control plane and workers allows.
	// +optional
	WorkersUpgrades []UpgradeStep `json:"workersUpgrades,omitempty"`
}

// GenerateUpgradePlan is called for the versions between the current version of a Cluster and the one to upgrade to. Responses must be
// deterministic.
func GenerateUpgradePlan(*GenerateUpgradePlanRequest, *GenerateUpgradePlanResponse) {
}

func registerUpgradeHooks(b *runtimecatalog.Builder) {
	register := func(hook runtimecatalog.Hook, summary, description string) {
		b.RegisterHook(hook, &runtimecatalog.HookMeta{
			Tags: []string{"Chained Upgrade Hooks"}, Summary: summary, Description: description, PayloadVersion: clusterv1.GroupVersion.Version,
		})
	}
	const topology = "For Clusters with a managed topology only. "
	register(BeforeControlPlaneUpgrade, "Called before each step of the upgrade of a control plane",
		topology+"While the response has a non-zero retryAfterSeconds, the control plane keeps its version.")
	register(BeforeWorkersUpgrade, "Called before each step of the upgrade of workers",
		topology+"While the response has a non-zero retryAfterSeconds, workers keep their version.")
	register(AfterWorkersUpgrade, "Called after each step of the upgrade of workers",
		topology+"While the response has a non-zero retryAfterSeconds, the next step does not begin.")
	register(GenerateUpgradePlan, "Plans the upgrade of a Cluster by more than one minor version",
		topology+"The ClusterClass names the extension. Responses must be deterministic.")
}
