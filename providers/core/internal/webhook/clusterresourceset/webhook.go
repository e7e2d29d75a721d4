// Package clusterresourceset defaults and validates ClusterResourceSets.
package clusterresourceset

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/webhooks"
)

// +kubebuilder:webhook:verbs=create;update,path=/mutate-addons-cluster-x-k8s-io-v1beta1-clusterresourceset,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,groups=addons.cluster.x-k8s.io,resources=clusterresourcesets,versions=v1beta1,name=default.clusterresourceset.addons.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-addons-cluster-x-k8s-io-v1beta1-clusterresourceset,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=addons.cluster.x-k8s.io,resources=clusterresourcesets,versions=v1beta1,name=validation.clusterresourceset.addons.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1

// Webhook defaults and validates ClusterResourceSets.
type Webhook struct {
	// Enabled is the feature gate ClusterResourceSet. Without it, ClusterResourceSets can be neither created nor updated.
	Enabled bool
}

// Register adds the webhooks to a manager.
func (w Webhook) Register(mgr ctrl.Manager) error {
	return webhooks.Register(mgr, &addonsv1.ClusterResourceSet{}, w, w.validator())
}

func (w Webhook) validator() webhooks.Validator[*addonsv1.ClusterResourceSet] {
	return webhooks.Check(addonsv1.GroupVersion.WithKind("ClusterResourceSet"), w.validate)
}

// Default implements Defaulter.
func (Webhook) Default(_ context.Context, set *addonsv1.ClusterResourceSet) error {
	if set.Spec.Strategy == "" {
		set.Spec.SetTypedStrategy(addonsv1.ClusterResourceSetStrategyApplyOnce)
	}
	return nil
}

// validate returns what is wrong with a ClusterResourceSet; old is nil when it is created.
func (w Webhook) validate(_ context.Context, old, set *addonsv1.ClusterResourceSet) field.ErrorList {
	spec := field.NewPath("spec")
	if !w.Enabled {
		return field.ErrorList{field.Forbidden(spec, "ClusterResourceSets require the feature gate ClusterResourceSet")}
	}
	errs := selector(set, spec.Child("clusterSelector"))
	errs = append(errs, resources(set, spec.Child("resources"))...)
	if old == nil {
		return errs
	}
	before := old.DeepCopy() // One from before the webhook was installed may lack the default.
	_ = w.Default(context.Background(), before)
	errs = append(errs, webhooks.Immutable(spec.Child("clusterSelector"), old.Spec.ClusterSelector, set.Spec.ClusterSelector)...)
	return append(errs, webhooks.Immutable(spec.Child("strategy"), before.Spec.Strategy, set.Spec.Strategy)...)
}

func selector(set *addonsv1.ClusterResourceSet, path *field.Path) field.ErrorList {
	parsed, err := metav1.LabelSelectorAsSelector(&set.Spec.ClusterSelector)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(path, set.Spec.ClusterSelector, err.Error())}
	case parsed.Empty():
		return field.ErrorList{field.Required(path, "must select the Clusters to apply the resources to")}
	}
	return nil
}

// resources validates the references to ConfigMaps and Secrets. The schema also validates kinds, and that names are not empty.
func resources(set *addonsv1.ClusterResourceSet, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[addonsv1.ResourceRef]bool{}
	kinds := []string{string(addonsv1.ConfigMapClusterResourceSetResourceKind), string(addonsv1.SecretClusterResourceSetResourceKind)}
	for i, ref := range set.Spec.Resources {
		at := path.Index(i)
		if ref.Kind != kinds[0] && ref.Kind != kinds[1] {
			errs = append(errs, field.NotSupported(at.Child("kind"), ref.Kind, kinds))
		}
		for _, message := range validation.IsDNS1123Subdomain(ref.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), ref.Name, message))
		}
		if seen[ref] {
			errs = append(errs, field.Duplicate(at, ref.Kind+" "+ref.Name))
		}
		seen[ref] = true
	}
	return errs
}
