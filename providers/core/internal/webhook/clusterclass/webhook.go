package clusterclass

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	admission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/check"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/patches"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/usage"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/variables"
	"sigs.k8s.io/cluster-api/sdk/webhooks"
)

// +kubebuilder:webhook:verbs=create;update,path=/mutate-cluster-x-k8s-io-v1beta1-clusterclass,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,groups=cluster.x-k8s.io,resources=clusterclasses,versions=v1beta1,name=default.clusterclass.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update;delete,path=/validate-cluster-x-k8s-io-v1beta1-clusterclass,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=cluster.x-k8s.io,resources=clusterclasses,versions=v1beta1,name=validation.clusterclass.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1

// Options configure the webhook.
type Options struct {
	// Reader lists Clusters by their class: a cache indexed with usage.Index. It is used only if a class is deleted, or
	// something in it is removed.
	Reader client.Reader
	// ClusterTopology and RuntimeSDK are the feature gates with these names.
	ClusterTopology, RuntimeSDK bool
}

// SetupWithManager serves the webhooks of ClusterClass.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	w := &Webhook{options: o}
	return webhooks.Register(mgr, &clusterv1.ClusterClass{}, w, w)
}

// Webhook defaults and validates ClusterClasses.
type Webhook struct{ options Options }

// New returns a Webhook without serving it.
func New(o Options) *Webhook { return &Webhook{options: o} }

// Default implements webhooks.Defaulter. It defaults the namespace of references to that of the class.
func (w *Webhook) Default(_ context.Context, class *clusterv1.ClusterClass) error {
	spec := &class.Spec
	defaultNamespace(class.Namespace, spec.Infrastructure.Ref, spec.ControlPlane.Ref)
	if spec.ControlPlane.MachineInfrastructure != nil {
		defaultNamespace(class.Namespace, spec.ControlPlane.MachineInfrastructure.Ref)
	}
	if c := spec.ControlPlane.MachineHealthCheck; c != nil {
		defaultNamespace(class.Namespace, c.RemediationTemplate)
	}
	for i := range spec.Workers.MachineDeployments {
		md := &spec.Workers.MachineDeployments[i]
		defaultNamespace(class.Namespace, md.Template.Bootstrap.Ref, md.Template.Infrastructure.Ref)
		if md.MachineHealthCheck != nil {
			defaultNamespace(class.Namespace, md.MachineHealthCheck.RemediationTemplate)
		}
	}
	for i := range spec.Workers.MachinePools {
		mp := &spec.Workers.MachinePools[i]
		defaultNamespace(class.Namespace, mp.Template.Bootstrap.Ref, mp.Template.Infrastructure.Ref)
	}
	return nil
}

func defaultNamespace(namespace string, refs ...*corev1.ObjectReference) {
	for _, ref := range refs {
		if ref != nil && ref.Namespace == "" {
			ref.Namespace = namespace
		}
	}
}

// ValidateCreate implements webhooks.Validator.
func (w *Webhook) ValidateCreate(ctx context.Context, class *clusterv1.ClusterClass) (admission.Warnings, error) {
	return nil, w.validate(ctx, nil, class)
}

// ValidateUpdate implements webhooks.Validator.
func (w *Webhook) ValidateUpdate(ctx context.Context, old, class *clusterv1.ClusterClass) (admission.Warnings, error) {
	return nil, w.validate(ctx, old, class)
}

// ValidateDelete implements webhooks.Validator: a class that Clusters use cannot be deleted.
func (w *Webhook) ValidateDelete(ctx context.Context, class *clusterv1.ClusterClass) (admission.Warnings, error) {
	clusters, err := usage.Clusters(ctx, w.options.Reader, client.ObjectKeyFromObject(class))
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
func (w *Webhook) validate(ctx context.Context, old, class *clusterv1.ClusterClass) error {
	if !w.options.ClusterTopology {
		return invalid(class, field.ErrorList{field.Forbidden(field.NewPath("spec"),
			"ClusterClasses require the feature gate ClusterTopology")})
	}
	if old != nil && equality.Semantic.DeepEqual(old.Spec, class.Spec) {
		return nil
	}
	errs := check.Class(class)
	errs = append(errs, variables.ValidateDefinitions(ctx, class.Spec.Variables, field.NewPath("spec", "variables"))...)
	errs = append(errs, patches.Validate(class, w.options.RuntimeSDK)...)
	if old != nil {
		errs = append(errs, check.CompatibleClasses(old, class)...)
		removals, err := w.removals(ctx, old, class)
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		errs = append(errs, removals...)
	}
	return invalid(class, errs)
}

// removals reads the Clusters of a class only if the change removes anything that they may use.
func (w *Webhook) removals(ctx context.Context, old, class *clusterv1.ClusterClass) (field.ErrorList, error) {
	if !check.Removes(old, class) {
		return nil, nil
	}
	clusters, err := usage.Clusters(ctx, w.options.Reader, client.ObjectKeyFromObject(class))
	if err != nil {
		return nil, err
	}
	return check.Removals(old, class, clusters), nil
}

func invalid(class *clusterv1.ClusterClass, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(clusterv1.GroupVersion.WithKind("ClusterClass").GroupKind(), class.Name, errs)
}
