package webhook

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/check"
	"sigs.k8s.io/cluster-api/providers/internal/taint"
	"sigs.k8s.io/cluster-api/sdk/webhooks"
)

// +kubebuilder:webhook:verbs=create;update,path=/mutate-cluster-x-k8s-io-v1beta1-machinepool,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,groups=cluster.x-k8s.io,resources=machinepools,versions=v1beta1;v1beta2,name=default.machinepool.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-cluster-x-k8s-io-v1beta1-machinepool,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=cluster.x-k8s.io,resources=machinepools,versions=v1beta1;v1beta2,name=validation.machinepool.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1

// MachinePool defaults and validates MachinePools.
type MachinePool struct {
	// Enabled is the feature gate MachinePool. Without it, MachinePools can be neither created nor updated.
	Enabled bool
	// Taints is the feature gate MachineTaintPropagation.
	Taints bool
}

// Default implements Defaulter.
func (MachinePool) Default(ctx context.Context, p *clusterv1.MachinePool) error {
	old, err := oldObject[clusterv1.MachinePool](ctx)
	if err != nil {
		return err
	}
	var before *int32
	if old != nil {
		before = old.Spec.Replicas
	}
	replicas, err := defaultReplicas(p.Spec.Replicas, before, p.Annotations)
	if err != nil {
		return err
	}
	p.Spec.Replicas = &replicas
	if !webhooks.RequestedIn(ctx, clusterv1.GroupVersion.Version) { // v1.14 has no default, either.
		defaultInt32(&p.Spec.Template.Spec.MinReadySeconds, 0)
	}
	setLabel(&p.Labels, clusterv1.ClusterNameLabel, p.Spec.ClusterName)
	defaultVersion(&p.Spec.Template.Spec.Version)
	return nil
}

// ValidateCreate implements Validator.
func (w MachinePool) ValidateCreate(_ context.Context, p *clusterv1.MachinePool) (admission.Warnings, error) {
	return nil, invalid(clusterv1.MachinePoolKind, p.Name, w.validate(nil, p))
}

// ValidateUpdate implements Validator.
func (w MachinePool) ValidateUpdate(_ context.Context, old, p *clusterv1.MachinePool) (admission.Warnings, error) {
	return nil, invalid(clusterv1.MachinePoolKind, p.Name, w.validate(old, p))
}

// ValidateDelete implements Validator.
func (MachinePool) ValidateDelete(context.Context, *clusterv1.MachinePool) (admission.Warnings, error) {
	return nil, nil
}

func (w MachinePool) validate(old, p *clusterv1.MachinePool) field.ErrorList {
	spec := field.NewPath("spec")
	if !w.Enabled {
		// Finalizers of MachinePools from before the gate was disabled can still be removed.
		if old != nil && !p.DeletionTimestamp.IsZero() {
			return nil
		}
		return field.ErrorList{field.Forbidden(spec, "MachinePools require the feature gate MachinePool")}
	}
	errs := validatePoolReference(p, spec)
	if p.DeletionTimestamp.IsZero() {
		errs = append(errs, webhooks.WithoutOld(poolNumbers(old), poolNumbers(p))...)
	}
	path := spec.Child("template")
	template := &p.Spec.Template.Spec
	errs = append(errs, validateVersion(template.Version, path.Child("spec", "version"))...)
	errs = append(errs, check.Metadata(&p.Spec.Template.ObjectMeta, path.Child("metadata"))...)
	if !template.Bootstrap.ConfigRef.IsDefined() && template.Bootstrap.DataSecretName == nil {
		errs = append(errs, field.Required(path.Child("spec", "bootstrap"), "either configRef or dataSecretName must be set"))
	}
	var taints []clusterv1.MachineTaint
	if old != nil {
		taints = old.Spec.Template.Spec.Taints
		errs = append(errs, validateClusterName(old.Spec.ClusterName, p.Spec.ClusterName)...)
	}
	return append(errs, taint.Check(w.Taints, taints, p.Spec.Template.Spec.Taints, path.Child("spec", "taints"))...)
}

// validatePoolReference requires an infrastructure, except while the MachinePool is being deleted, so that finalizers can be removed.
func validatePoolReference(p *clusterv1.MachinePool, spec *field.Path) field.ErrorList {
	ref := p.Spec.Template.Spec.InfrastructureRef
	if !p.DeletionTimestamp.IsZero() || ref.APIGroup != "" && ref.Kind != "" && ref.Name != "" {
		return nil
	}
	return field.ErrorList{field.Required(spec.Child("template", "spec", "infrastructureRef"),
		"must reference an infrastructure machine pool, with apiGroup, kind and name")}
}
