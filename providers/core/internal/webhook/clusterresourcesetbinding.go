package webhook

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/webhooks"
)

// +kubebuilder:webhook:verbs=create;update,path=/validate-addons-cluster-x-k8s-io-v1beta1-clusterresourcesetbinding,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=addons.cluster.x-k8s.io,resources=clusterresourcesetbindings,versions=v1beta1;v1beta2,name=validation.clusterresourcesetbinding.addons.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1

// ClusterResourceSetBinding validates ClusterResourceSetBindings.
type ClusterResourceSetBinding struct {
	// Enabled is the feature gate ClusterResourceSet. Without it, ClusterResourceSetBindings can be neither created nor updated.
	Enabled bool
}

func (w ClusterResourceSetBinding) validator() webhooks.Validator[*addonsv1.ClusterResourceSetBinding] {
	return webhooks.Check(addonsv1.GroupVersion.WithKind("ClusterResourceSetBinding"), w.validate)
}

// validate returns what is wrong with a binding; old is nil when it is created.
func (w ClusterResourceSetBinding) validate(_ context.Context, old, b *addonsv1.ClusterResourceSetBinding) field.ErrorList {
	spec := field.NewPath("spec")
	if !w.Enabled {
		return field.ErrorList{field.Forbidden(spec, "ClusterResourceSetBindings require the feature gate ClusterResourceSet")}
	}
	if old == nil || old.Spec.ClusterName == "" {
		return nil
	}
	return webhooks.Immutable(spec.Child("clusterName"), old.Spec.ClusterName, b.Spec.ClusterName)
}
