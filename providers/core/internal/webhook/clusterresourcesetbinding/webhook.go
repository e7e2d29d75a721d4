// Package clusterresourcesetbinding validates ClusterResourceSetBindings.
package clusterresourcesetbinding

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/webhooks"
)

// +kubebuilder:webhook:verbs=create;update,path=/validate-addons-cluster-x-k8s-io-v1beta1-clusterresourcesetbinding,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=addons.cluster.x-k8s.io,resources=clusterresourcesetbindings,versions=v1beta1,name=validation.clusterresourcesetbinding.addons.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1

// Webhook validates ClusterResourceSetBindings.
type Webhook struct {
	// Enabled is the feature gate ClusterResourceSet. Without it, ClusterResourceSetBindings can be neither created nor updated.
	Enabled bool
}

// Register adds the webhook to a manager.
func (w Webhook) Register(mgr ctrl.Manager) error {
	return webhooks.Register(mgr, &addonsv1.ClusterResourceSetBinding{}, nil, w.validator())
}

func (w Webhook) validator() webhooks.Validator[*addonsv1.ClusterResourceSetBinding] {
	return webhooks.Check(addonsv1.GroupVersion.WithKind("ClusterResourceSetBinding"), w.validate)
}

// validate returns what is wrong with a binding; old is nil when it is created.
func (w Webhook) validate(_ context.Context, old, b *addonsv1.ClusterResourceSetBinding) field.ErrorList {
	spec := field.NewPath("spec")
	if !w.Enabled {
		return field.ErrorList{field.Forbidden(spec, "ClusterResourceSetBindings require the feature gate ClusterResourceSet")}
	}
	if old == nil || old.Spec.ClusterName == "" {
		return nil
	}
	return webhooks.Immutable(spec.Child("clusterName"), old.Spec.ClusterName, b.Spec.ClusterName)
}
