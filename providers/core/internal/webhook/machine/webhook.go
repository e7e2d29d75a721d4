// Package machine defaults and validates Machines.
package machine

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/providers/core/internal/webhook/machine/rules"
	"sigs.k8s.io/cluster-api/sdk/webhooks"
)

// +kubebuilder:webhook:verbs=create;update,path=/mutate-cluster-x-k8s-io-v1beta1-machine,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,groups=cluster.x-k8s.io,resources=machines,versions=v1beta1,name=default.machine.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-cluster-x-k8s-io-v1beta1-machine,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=cluster.x-k8s.io,resources=machines,versions=v1beta1,name=validation.machine.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1

// defaultNodeDeletionTimeout is the default of spec.nodeDeletionTimeout.
const defaultNodeDeletionTimeout = 10 * time.Second

// Register adds the webhooks to a manager.
func Register(mgr ctrl.Manager) error {
	return webhooks.Register(mgr, &clusterv1.Machine{}, webhook{}, webhook{})
}

type webhook struct{}

// Default implements Defaulter.
func (webhook) Default(_ context.Context, m *clusterv1.Machine) error {
	rules.SetLabel(&m.Labels, clusterv1.ClusterNameLabel, m.Spec.ClusterName)
	if m.Spec.Bootstrap.ConfigRef != nil && m.Spec.Bootstrap.ConfigRef.Namespace == "" {
		m.Spec.Bootstrap.ConfigRef.Namespace = m.Namespace
	}
	if m.Spec.InfrastructureRef.Namespace == "" {
		m.Spec.InfrastructureRef.Namespace = m.Namespace
	}
	rules.DefaultVersion(m.Spec.Version)
	if m.Spec.NodeDeletionTimeout == nil {
		m.Spec.NodeDeletionTimeout = &metav1.Duration{Duration: defaultNodeDeletionTimeout}
	}
	return nil
}

// ValidateCreate implements Validator.
func (webhook) ValidateCreate(_ context.Context, m *clusterv1.Machine) (admission.Warnings, error) {
	return nil, rules.Invalid(clusterv1.MachineKind, m.Name, validate(nil, m))
}

// ValidateUpdate implements Validator.
func (webhook) ValidateUpdate(_ context.Context, old, m *clusterv1.Machine) (admission.Warnings, error) {
	return nil, rules.Invalid(clusterv1.MachineKind, m.Name, validate(old, m))
}

// ValidateDelete implements Validator.
func (webhook) ValidateDelete(context.Context, *clusterv1.Machine) (admission.Warnings, error) {
	return nil, nil
}

func validate(old, m *clusterv1.Machine) field.ErrorList {
	spec := field.NewPath("spec")
	errs := rules.Version(m.Spec.Version, spec.Child("version"))
	bootstrap := m.Spec.Bootstrap
	// Machines of a MachinePool have no bootstrap data of their own: the pool has it.
	_, pooled := m.Labels[clusterv1.MachinePoolNameLabel]
	if bootstrap.ConfigRef == nil && bootstrap.DataSecretName == nil && !pooled {
		errs = append(errs, field.Required(spec.Child("bootstrap"), "either configRef or dataSecretName must be set"))
	}
	errs = append(errs, rules.Namespace(bootstrap.ConfigRef, m.Namespace, spec.Child("bootstrap", "configRef"))...)
	errs = append(errs, rules.Namespace(&m.Spec.InfrastructureRef, m.Namespace, spec.Child("infrastructureRef"))...)
	if old != nil {
		errs = append(errs, rules.ClusterName(old.Spec.ClusterName, m.Spec.ClusterName)...)
	}
	return errs
}
