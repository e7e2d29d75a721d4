package webhook

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// +kubebuilder:webhook:verbs=create;update,path=/mutate-cluster-x-k8s-io-v1beta1-machine,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,groups=cluster.x-k8s.io,resources=machines,versions=v1beta1;v1beta2,name=default.machine.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-cluster-x-k8s-io-v1beta1-machine,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=cluster.x-k8s.io,resources=machines,versions=v1beta1;v1beta2,name=validation.machine.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1

// defaultNodeDeletionTimeout is the default of spec.nodeDeletionTimeout.
const defaultNodeDeletionTimeout = 10 * time.Second

// Machine defaults and validates Machines.
type Machine struct{}

// Default implements Defaulter.
func (Machine) Default(_ context.Context, m *clusterv1.Machine) error {
	setLabel(&m.Labels, clusterv1.ClusterNameLabel, m.Spec.ClusterName)
	defaultNamespace(m.Namespace, m.Spec.Bootstrap.ConfigRef, &m.Spec.InfrastructureRef)
	defaultVersion(m.Spec.Version)
	if m.Spec.NodeDeletionTimeout == nil {
		m.Spec.NodeDeletionTimeout = &metav1.Duration{Duration: defaultNodeDeletionTimeout}
	}
	return nil
}

// ValidateCreate implements Validator.
func (Machine) ValidateCreate(_ context.Context, m *clusterv1.Machine) (admission.Warnings, error) {
	return nil, invalid(clusterv1.MachineKind, m.Name, validateMachine(nil, m))
}

// ValidateUpdate implements Validator.
func (Machine) ValidateUpdate(_ context.Context, old, m *clusterv1.Machine) (admission.Warnings, error) {
	return nil, invalid(clusterv1.MachineKind, m.Name, validateMachine(old, m))
}

// ValidateDelete implements Validator.
func (Machine) ValidateDelete(context.Context, *clusterv1.Machine) (admission.Warnings, error) {
	return nil, nil
}

func validateMachine(old, m *clusterv1.Machine) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validateVersion(m.Spec.Version, spec.Child("version"))
	bootstrap := m.Spec.Bootstrap
	// Machines of a MachinePool have no bootstrap data of their own: the pool has it.
	_, pooled := m.Labels[clusterv1.MachinePoolNameLabel]
	if bootstrap.ConfigRef == nil && bootstrap.DataSecretName == nil && !pooled {
		errs = append(errs, field.Required(spec.Child("bootstrap"), "either configRef or dataSecretName must be set"))
	}
	errs = append(errs, validateNamespace(bootstrap.ConfigRef, m.Namespace, spec.Child("bootstrap", "configRef"))...)
	errs = append(errs, validateNamespace(&m.Spec.InfrastructureRef, m.Namespace, spec.Child("infrastructureRef"))...)
	if old != nil {
		errs = append(errs, validateClusterName(old.Spec.ClusterName, m.Spec.ClusterName)...)
	}
	return errs
}
