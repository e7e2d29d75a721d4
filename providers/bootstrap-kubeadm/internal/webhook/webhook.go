// Package webhook defaults and validates KubeadmConfigs and KubeadmConfigTemplates. The rules themselves
// are shared with the control plane provider: providers/internal/kubeadm.
package webhook

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
	"sigs.k8s.io/cluster-api/sdk/webhooks"
)

// +kubebuilder:webhook:verbs=create;update,path=/mutate-bootstrap-cluster-x-k8s-io-v1beta1-kubeadmconfig,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,groups=bootstrap.cluster.x-k8s.io,resources=kubeadmconfigs,versions=v1beta1;v1beta2,name=default.kubeadmconfig.bootstrap.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-bootstrap-cluster-x-k8s-io-v1beta1-kubeadmconfig,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=bootstrap.cluster.x-k8s.io,resources=kubeadmconfigs,versions=v1beta1;v1beta2,name=validation.kubeadmconfig.bootstrap.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/mutate-bootstrap-cluster-x-k8s-io-v1beta1-kubeadmconfigtemplate,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,groups=bootstrap.cluster.x-k8s.io,resources=kubeadmconfigtemplates,versions=v1beta1;v1beta2,name=default.kubeadmconfigtemplate.bootstrap.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-bootstrap-cluster-x-k8s-io-v1beta1-kubeadmconfigtemplate,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=bootstrap.cluster.x-k8s.io,resources=kubeadmconfigtemplates,versions=v1beta1;v1beta2,name=validation.kubeadmconfigtemplate.bootstrap.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1

// Register serves the webhooks. ignition is the state of its feature gate.
func Register(mgr ctrl.Manager, ignition bool) error {
	if err := webhooks.Register(mgr, &bootstrapv1.KubeadmConfig{}, configs{ignition}, configs{ignition}); err != nil {
		return err
	}
	return webhooks.Register(mgr, &bootstrapv1.KubeadmConfigTemplate{}, templates{ignition}, templates{ignition})
}

type configs struct{ ignition bool }

// Default implements Defaulter.
func (configs) Default(_ context.Context, config *bootstrapv1.KubeadmConfig) error {
	kubeadm.DefaultConfigSpec(&config.Spec)
	return nil
}

// ValidateCreate implements Validator.
func (w configs) ValidateCreate(_ context.Context, config *bootstrapv1.KubeadmConfig) (admission.Warnings, error) {
	return nil, w.validate(nil, config)
}

// ValidateUpdate implements Validator.
func (w configs) ValidateUpdate(_ context.Context, old, config *bootstrapv1.KubeadmConfig) (admission.Warnings, error) {
	return nil, w.validate(&old.Spec, config)
}

func (w configs) validate(old *bootstrapv1.KubeadmConfigSpec, config *bootstrapv1.KubeadmConfig) error {
	return invalid("KubeadmConfig", config.Name, kubeadm.ValidateConfigSpec(old, &config.Spec, field.NewPath("spec"), w.ignition))
}

// ValidateDelete implements Validator.
func (configs) ValidateDelete(context.Context, *bootstrapv1.KubeadmConfig) (admission.Warnings, error) {
	return nil, nil
}

type templates struct{ ignition bool }

// Default implements Defaulter.
func (templates) Default(_ context.Context, template *bootstrapv1.KubeadmConfigTemplate) error {
	kubeadm.DefaultConfigSpec(&template.Spec.Template.Spec)
	return nil
}

// ValidateCreate implements Validator.
func (w templates) ValidateCreate(_ context.Context, template *bootstrapv1.KubeadmConfigTemplate) (admission.Warnings, error) {
	return nil, w.validate(nil, template)
}

// ValidateUpdate implements Validator.
func (w templates) ValidateUpdate(_ context.Context, old, template *bootstrapv1.KubeadmConfigTemplate) (admission.Warnings, error) {
	return nil, w.validate(&old.Spec.Template.Spec, template)
}

func (w templates) validate(old *bootstrapv1.KubeadmConfigSpec, template *bootstrapv1.KubeadmConfigTemplate) error {
	path := field.NewPath("spec", "template", "spec")
	return invalid("KubeadmConfigTemplate", template.Name, kubeadm.ValidateConfigSpec(old, &template.Spec.Template.Spec, path, w.ignition))
}

// ValidateDelete implements Validator.
func (templates) ValidateDelete(context.Context, *bootstrapv1.KubeadmConfigTemplate) (admission.Warnings, error) {
	return nil, nil
}

func invalid(kind, name string, all field.ErrorList) error {
	if len(all) == 0 {
		return nil
	}
	return apierrors.NewInvalid(bootstrapv1.GroupVersion.WithKind(kind).GroupKind(), name, all)
}
