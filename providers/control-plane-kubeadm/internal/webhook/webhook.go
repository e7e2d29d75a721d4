// Package webhook defaults and validates KubeadmControlPlanes, their scale subresource, and KubeadmControlPlaneTemplates, and refuses
// to delete Machines whose etcd members are needed for the quorum. Rules for a KubeadmConfigSpec on its own are shared with the bootstrap
// provider: providers/internal/kubeadm.
//
//	controlplane.go  the control plane
//	template.go      its template
//	scale.go         the scale subresource
//	rules.go         rules for control planes and templates
//	older.go         rules for what only v1beta1 has
//	mutable.go       the fields of a control plane that may change
//	version.go       changes of versions, etcd and CoreDNS
//	etcd.go          changes of the version of etcd
//	deletion.go      the deletion of control plane Machines: which requests are checked
//	quorum.go        whether etcd could lose its quorum by one: a pure function
package webhook

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/webhooks"
)

// +kubebuilder:webhook:verbs=create;update,path=/mutate-controlplane-cluster-x-k8s-io-v1beta1-kubeadmcontrolplane,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,groups=controlplane.cluster.x-k8s.io,resources=kubeadmcontrolplanes,versions=v1beta1;v1beta2,name=default.kubeadmcontrolplane.controlplane.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-controlplane-cluster-x-k8s-io-v1beta1-kubeadmcontrolplane,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=controlplane.cluster.x-k8s.io,resources=kubeadmcontrolplanes,versions=v1beta1;v1beta2,name=validation.kubeadmcontrolplane.controlplane.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=update,path=/validate-scale-controlplane-cluster-x-k8s-io-v1beta1-kubeadmcontrolplane,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=controlplane.cluster.x-k8s.io,resources=kubeadmcontrolplanes/scale,versions=v1beta1,name=validation-scale.kubeadmcontrolplane.controlplane.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/mutate-controlplane-cluster-x-k8s-io-v1beta1-kubeadmcontrolplanetemplate,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,groups=controlplane.cluster.x-k8s.io,resources=kubeadmcontrolplanetemplates,versions=v1beta1;v1beta2,name=default.kubeadmcontrolplanetemplate.controlplane.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-controlplane-cluster-x-k8s-io-v1beta1-kubeadmcontrolplanetemplate,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=controlplane.cluster.x-k8s.io,resources=kubeadmcontrolplanetemplates,versions=v1beta1;v1beta2,name=validation.kubeadmcontrolplanetemplate.controlplane.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1

// The generator of manifests knows no selectors of objects: hack/selectors adds those of markers like this one.
// +capi:webhook:objectSelector:name=deletion.machine.controlplane.cluster.x-k8s.io,exists=cluster.x-k8s.io/control-plane
// +kubebuilder:webhook:verbs=delete,path=/validate-controlplane-cluster-x-k8s-io-v1beta1-machine-deletion,mutating=false,failurePolicy=ignore,matchPolicy=Equivalent,groups=cluster.x-k8s.io,resources=machines,versions=v1beta1;v1beta2,name=deletion.machine.controlplane.cluster.x-k8s.io,sideEffects=None,timeoutSeconds=5,admissionReviewVersions=v1;v1beta1

// deletionPath is the path of the webhook of deletions of Machines.
const deletionPath = "/validate-controlplane-cluster-x-k8s-io-v1beta1-machine-deletion"

// scalePath is the path of the webhook of the scale subresource.
const scalePath = "/validate-scale-controlplane-cluster-x-k8s-io-v1beta1-kubeadmcontrolplane"

// Gates are the feature gates that validation depends on.
type Gates struct {
	// Ignition allows the bootstrap format Ignition.
	Ignition bool
	// ClusterTopology allows templates.
	ClusterTopology bool
	// MachineTaintPropagation allows taints.
	MachineTaintPropagation bool
}

// Register serves the webhooks.
func Register(mgr ctrl.Manager, gates Gates) error {
	c := controlPlanes{ignition: gates.Ignition, taints: gates.MachineTaintPropagation}
	if err := webhooks.Register(mgr, &controlplanev1.KubeadmControlPlane{}, c, c); err != nil {
		return err
	}
	mgr.GetWebhookServer().Register(scalePath, &admission.Webhook{Handler: scales{reader: mgr.GetAPIReader()}})
	mgr.GetWebhookServer().Register(deletionPath, &admission.Webhook{Handler: &deletions{reader: mgr.GetClient(), clock: clock.RealClock{}}})
	t := templates{gates: gates}
	return webhooks.Register(mgr, &controlplanev1.KubeadmControlPlaneTemplate{}, t, t)
}

func invalid(kind, name string, all field.ErrorList) error {
	if len(all) == 0 {
		return nil
	}
	return apierrors.NewInvalid(controlplanev1.GroupVersion.WithKind(kind).GroupKind(), name, all)
}
