package webhook

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/check"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/classes"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/patches"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/variables"
	"sigs.k8s.io/cluster-api/sdk/webhooks"
)

// +kubebuilder:webhook:verbs=create;update,path=/mutate-cluster-x-k8s-io-v1beta1-clusterclass,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,groups=cluster.x-k8s.io,resources=clusterclasses,versions=v1beta1;v1beta2,name=default.clusterclass.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update;delete,path=/validate-cluster-x-k8s-io-v1beta1-clusterclass,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=cluster.x-k8s.io,resources=clusterclasses,versions=v1beta1;v1beta2,name=validation.clusterclass.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1

// ClusterClass validates ClusterClasses. They have defaults in v1beta1 only.
type ClusterClass struct{ options Options }

// NewClusterClass returns a webhook without serving it.
func NewClusterClass(o Options) *ClusterClass { return &ClusterClass{options: o} }

// Default implements Defaulter.
func (w *ClusterClass) Default(context.Context, *clusterv1.ClusterClass) error { return nil }

// ValidateCreate implements Validator.
func (w *ClusterClass) ValidateCreate(ctx context.Context, class *clusterv1.ClusterClass) (admission.Warnings, error) {
	return classWarnings(nil, class), w.validate(ctx, nil, class)
}

// ValidateUpdate implements Validator.
func (w *ClusterClass) ValidateUpdate(ctx context.Context, old, class *clusterv1.ClusterClass) (admission.Warnings, error) {
	return classWarnings(old, class), w.validate(ctx, old, class)
}

// ValidateDelete implements Validator: a class that Clusters use cannot be deleted.
func (w *ClusterClass) ValidateDelete(ctx context.Context, class *clusterv1.ClusterClass) (admission.Warnings, error) {
	clusters, err := classes.Clusters(ctx, w.options.Reader, client.ObjectKeyFromObject(class))
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if err := check.Unused(clusters); err != nil {
		return nil, apierrors.NewForbidden(clusterv1.GroupVersion.WithResource("clusterclasses").GroupResource(), class.Name, err)
	}
	return nil, nil
}

// validate validates a class, and its change if there is an old one. Changes of metadata only (finalizers, labels, owners) need
// no validation: the spec was validated when it was written.
func (w *ClusterClass) validate(ctx context.Context, old, class *clusterv1.ClusterClass) error {
	if !w.options.ClusterTopology {
		return invalid("ClusterClass", class.Name, field.ErrorList{field.Forbidden(field.NewPath("spec"),
			"ClusterClasses require the feature gate ClusterTopology")})
	}
	if old != nil && equality.Semantic.DeepEqual(old.Spec, class.Spec) {
		return nil
	}
	errs := check.Class(class)
	errs = append(errs, webhooks.WithoutOld(classNumbers(old), classNumbers(class))...)
	errs = append(errs, checkTaints(w.options.MachineTaintPropagation, classTaints(old), classTaints(class))...)
	errs = append(errs, variables.ValidateDefinitions(ctx, class.Spec.Variables, field.NewPath("spec", "variables"))...)
	errs = append(errs, patches.Validate(class, w.options.RuntimeSDK)...)
	if class.Spec.Upgrade.External.GenerateUpgradePlanExtension != "" && !w.options.RuntimeSDK {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "upgrade", "external", "generateUpgradePlanExtension"),
			"requires the feature gate RuntimeSDK"))
	}
	if old != nil {
		errs = append(errs, check.CompatibleClasses(old, class)...)
		removals, err := w.removals(ctx, old, class)
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		errs = append(errs, removals...)
	}
	return invalid("ClusterClass", class.Name, errs)
}

// removals reads the Clusters of a class only if the change removes anything that they may use.
func (w *ClusterClass) removals(ctx context.Context, old, class *clusterv1.ClusterClass) (field.ErrorList, error) {
	if !check.Removes(old, class) {
		return nil, nil
	}
	clusters, err := classes.Clusters(ctx, w.options.Reader, client.ObjectKeyFromObject(class))
	if err != nil {
		return nil, err
	}
	return check.Removals(old, class, clusters), nil
}
