package webhook

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/taint"
)

// +kubebuilder:webhook:verbs=create;update,path=/mutate-cluster-x-k8s-io-v1beta1-machine,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,groups=cluster.x-k8s.io,resources=machines,versions=v1beta1;v1beta2,name=default.machine.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-cluster-x-k8s-io-v1beta1-machine,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=cluster.x-k8s.io,resources=machines,versions=v1beta1;v1beta2,name=validation.machine.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1

// defaultNodeDeletionTimeout is the default of spec.deletion.nodeDeletionTimeoutSeconds.
const defaultNodeDeletionTimeout = 10

// Machine defaults and validates Machines.
type Machine struct {
	// Taints is the feature gate MachineTaintPropagation.
	Taints bool
}

// Default implements Defaulter.
func (Machine) Default(_ context.Context, m *clusterv1.Machine) error {
	setLabel(&m.Labels, clusterv1.ClusterNameLabel, m.Spec.ClusterName)
	defaultVersion(&m.Spec.Version)
	defaultInt32(&m.Spec.Deletion.NodeDeletionTimeoutSeconds, defaultNodeDeletionTimeout)
	return nil
}

// ValidateCreate implements Validator.
func (w Machine) ValidateCreate(_ context.Context, m *clusterv1.Machine) (admission.Warnings, error) {
	return nil, invalid(clusterv1.MachineKind, m.Name, w.validate(nil, m))
}

// ValidateUpdate implements Validator.
func (w Machine) ValidateUpdate(_ context.Context, old, m *clusterv1.Machine) (admission.Warnings, error) {
	return nil, invalid(clusterv1.MachineKind, m.Name, w.validate(old, m))
}

// ValidateDelete implements Validator.
func (Machine) ValidateDelete(context.Context, *clusterv1.Machine) (admission.Warnings, error) {
	return nil, nil
}

func (w Machine) validate(old, m *clusterv1.Machine) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validateVersion(m.Spec.Version, spec.Child("version"))
	bootstrap := m.Spec.Bootstrap
	// Machines of a MachinePool have no bootstrap data of their own: the pool has it.
	_, pooled := m.Labels[clusterv1.MachinePoolNameLabel]
	if !bootstrap.ConfigRef.IsDefined() && bootstrap.DataSecretName == nil && !pooled {
		errs = append(errs, field.Required(spec.Child("bootstrap"), "either configRef or dataSecretName must be set"))
	}
	var taints []clusterv1.MachineTaint
	if old != nil {
		taints = old.Spec.Taints
		errs = append(errs, validateClusterName(old.Spec.ClusterName, m.Spec.ClusterName)...)
	}
	return append(errs, taint.Check(w.Taints, taints, m.Spec.Taints, spec.Child("taints"))...)
}
