package webhook

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/webhooks"
)

// +kubebuilder:webhook:verbs=create;update,path=/validate-cluster-x-k8s-io-v1beta1-machinedrainrule,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=cluster.x-k8s.io,resources=machinedrainrules,versions=v1beta1;v1beta2,name=validation.machinedrainrule.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1

// drainRuleValidator validates MachineDrainRules.
func drainRuleValidator() webhooks.Validator[*clusterv1.MachineDrainRule] {
	return webhooks.Check(clusterv1.GroupVersion.WithKind(clusterv1.MachineDrainRuleKind),
		func(_ context.Context, old, r *clusterv1.MachineDrainRule) field.ErrorList {
			if old == nil {
				return validateDrainRule(r)
			}
			return webhooks.WithoutOld(validateDrainRule(old), validateDrainRule(r))
		})
}

// validateDrainRule returns what is wrong with a rule.
func validateDrainRule(r *clusterv1.MachineDrainRule) field.ErrorList {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	if drain := r.Spec.Drain; drain.Order != nil && drain.Behavior != clusterv1.MachineDrainRuleDrainBehaviorDrain {
		errs = append(errs, field.Invalid(spec.Child("drain", "order"), *drain.Order,
			"must not be set: Pods with behavior "+string(drain.Behavior)+" are not evicted, so that they have no order"))
	}
	for i, m := range r.Spec.Machines {
		path := spec.Child("machines").Index(i)
		errs = append(errs, wrongSelector(m.Selector, path.Child("selector"))...)
		errs = append(errs, wrongSelector(m.ClusterSelector, path.Child("clusterSelector"))...)
	}
	for i, p := range r.Spec.Pods {
		path := spec.Child("pods").Index(i)
		errs = append(errs, wrongSelector(p.Selector, path.Child("selector"))...)
		errs = append(errs, wrongSelector(p.NamespaceSelector, path.Child("namespaceSelector"))...)
	}
	return errs
}

// wrongSelector returns what is wrong with a selector; one that is not set is valid.
func wrongSelector(s *metav1.LabelSelector, path *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	return validation.ValidateLabelSelector(s, validation.LabelSelectorValidationOptions{}, path)
}
