// Package webhook defaults and validates KubeadmConfigs and KubeadmConfigTemplates. The rules themselves
// are shared with the control plane provider: providers/internal/kubeadm.
package webhook

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
	"sigs.k8s.io/cluster-api/sdk/conversion"
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
func (configs) Default(ctx context.Context, config *bootstrapv1.KubeadmConfig) error {
	older, err := olderConfig(ctx, config)
	kubeadm.Default(ctx, &config.Spec, older)
	return err
}

// ValidateCreate implements Validator.
func (w configs) ValidateCreate(ctx context.Context, config *bootstrapv1.KubeadmConfig) (admission.Warnings, error) {
	return nil, w.validate(ctx, nil, config)
}

// ValidateUpdate implements Validator.
func (w configs) ValidateUpdate(ctx context.Context, old, config *bootstrapv1.KubeadmConfig) (admission.Warnings, error) {
	return nil, w.validate(ctx, &old.Spec, config)
}

func (w configs) validate(ctx context.Context, old *bootstrapv1.KubeadmConfigSpec, config *bootstrapv1.KubeadmConfig) error {
	path := field.NewPath("spec")
	older, err := olderConfig(ctx, config)
	if err != nil {
		return err
	}
	all := kubeadm.ValidateConfigSpec(old, &config.Spec, path, w.ignition)
	return invalid("KubeadmConfig", config.Name, append(all, kubeadm.ValidateOlderConfigSpec(older, path, w.ignition)...))
}

// olderConfig returns the spec in v1beta1, empty if v1beta2 has all of it.
func olderConfig(ctx context.Context, config *bootstrapv1.KubeadmConfig) (*bootstrapv1beta1.KubeadmConfigSpec, error) {
	older := &bootstrapv1beta1.KubeadmConfig{}
	_, err := conversion.Older(ctx, config, older)
	return &older.Spec, err
}

// ValidateDelete implements Validator.
func (configs) ValidateDelete(context.Context, *bootstrapv1.KubeadmConfig) (admission.Warnings, error) {
	return nil, nil
}

type templates struct{ ignition bool }

// Default implements Defaulter.
func (templates) Default(ctx context.Context, template *bootstrapv1.KubeadmConfigTemplate) error {
	older, err := olderTemplate(ctx, template)
	kubeadm.Default(ctx, &template.Spec.Template.Spec, older)
	return err
}

// ValidateCreate implements Validator.
func (w templates) ValidateCreate(ctx context.Context, template *bootstrapv1.KubeadmConfigTemplate) (admission.Warnings, error) {
	return nil, w.validate(ctx, nil, template)
}

// ValidateUpdate implements Validator.
func (w templates) ValidateUpdate(ctx context.Context, old, template *bootstrapv1.KubeadmConfigTemplate) (admission.Warnings, error) {
	return nil, w.validate(ctx, &old.Spec.Template.Spec, template)
}

func (w templates) validate(
	ctx context.Context, old *bootstrapv1.KubeadmConfigSpec, template *bootstrapv1.KubeadmConfigTemplate,
) error {
	path := field.NewPath("spec", "template", "spec")
	older, err := olderTemplate(ctx, template)
	if err != nil {
		return err
	}
	all := kubeadm.ValidateConfigSpec(old, &template.Spec.Template.Spec, path, w.ignition)
	return invalid("KubeadmConfigTemplate", template.Name, append(all, kubeadm.ValidateOlderConfigSpec(older, path, w.ignition)...))
}

// olderTemplate is olderConfig for templates.
func olderTemplate(ctx context.Context, template *bootstrapv1.KubeadmConfigTemplate) (*bootstrapv1beta1.KubeadmConfigSpec, error) {
	older := &bootstrapv1beta1.KubeadmConfigTemplate{}
	_, err := conversion.Older(ctx, template, older)
	return &older.Spec.Template.Spec, err
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
