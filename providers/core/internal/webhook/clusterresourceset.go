package webhook

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/webhooks"
)

// +kubebuilder:webhook:verbs=create;update,path=/mutate-addons-cluster-x-k8s-io-v1beta1-clusterresourceset,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,groups=addons.cluster.x-k8s.io,resources=clusterresourcesets,versions=v1beta1;v1beta2,name=default.clusterresourceset.addons.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-addons-cluster-x-k8s-io-v1beta1-clusterresourceset,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=addons.cluster.x-k8s.io,resources=clusterresourcesets,versions=v1beta1;v1beta2,name=validation.clusterresourceset.addons.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1

// ClusterResourceSet defaults and validates ClusterResourceSets.
type ClusterResourceSet struct {
	// Enabled is the feature gate ClusterResourceSet. Without it, ClusterResourceSets can be neither created nor updated.
	Enabled bool
}

func (w ClusterResourceSet) validator() webhooks.Validator[*addonsv1.ClusterResourceSet] {
	return webhooks.Check(addonsv1.GroupVersion.WithKind("ClusterResourceSet"), w.validate)
}

// Default implements Defaulter.
func (ClusterResourceSet) Default(_ context.Context, set *addonsv1.ClusterResourceSet) error {
	if set.Spec.Strategy == "" {
		set.Spec.SetTypedStrategy(addonsv1.ClusterResourceSetStrategyApplyOnce)
	}
	return nil
}

// validate returns what is wrong with a ClusterResourceSet; old is nil when it is created.
func (w ClusterResourceSet) validate(_ context.Context, old, set *addonsv1.ClusterResourceSet) field.ErrorList {
	spec := field.NewPath("spec")
	if !w.Enabled {
		return field.ErrorList{field.Forbidden(spec, "ClusterResourceSets require the feature gate ClusterResourceSet")}
	}
	errs := validateClusterSelector(set, spec.Child("clusterSelector"))
	errs = append(errs, validateResources(set, spec.Child("resources"))...)
	if old == nil {
		return errs
	}
	before := old.DeepCopy() // One from before the webhook was installed may lack the default.
	_ = w.Default(context.Background(), before)
	errs = append(errs, webhooks.Immutable(spec.Child("clusterSelector"), old.Spec.ClusterSelector, set.Spec.ClusterSelector)...)
	return append(errs, webhooks.Immutable(spec.Child("strategy"), before.Spec.Strategy, set.Spec.Strategy)...)
}

func validateClusterSelector(set *addonsv1.ClusterResourceSet, path *field.Path) field.ErrorList {
	parsed, err := metav1.LabelSelectorAsSelector(&set.Spec.ClusterSelector)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(path, set.Spec.ClusterSelector, err.Error())}
	case parsed.Empty():
		return field.ErrorList{field.Required(path, "must select the Clusters to apply the resources to")}
	}
	return nil
}

// validateResources validates the references to ConfigMaps and Secrets. The schema also validates kinds, and that names are not empty.
func validateResources(set *addonsv1.ClusterResourceSet, path *field.Path) field.ErrorList {
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
