package webhook

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
	"sigs.k8s.io/cluster-api/providers/internal/taint"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// templates are the webhooks of KubeadmControlPlaneTemplate.
type templates struct {
	gates Gates
}

// Default implements Defaulter.
func (templates) Default(ctx context.Context, t *controlplanev1.KubeadmControlPlaneTemplate) error {
	s := &t.Spec.Template.Spec
	defaultStrategy(&s.Rollout.Strategy)
	older, err := olderTemplate(ctx, t)
	kubeadm.Default(ctx, &s.KubeadmConfigSpec, &older.KubeadmConfigSpec)
	return err
}

// withDefaults sets the defaults of v1beta1: what only they change is the same template.
func withDefaults(ctx context.Context, t *controlplanev1.KubeadmControlPlaneTemplate) error {
	older, err := olderTemplate(ctx, t)
	defaultStrategy(&t.Spec.Template.Spec.Rollout.Strategy)
	kubeadm.DefaultConfigSpec(&t.Spec.Template.Spec.KubeadmConfigSpec)
	kubeadm.DefaultOlderConfigSpec(&t.Spec.Template.Spec.KubeadmConfigSpec, &older.KubeadmConfigSpec)
	return err
}

// ValidateCreate implements Validator.
func (w templates) ValidateCreate(ctx context.Context, t *controlplanev1.KubeadmControlPlaneTemplate) (admission.Warnings, error) {
	path := field.NewPath("spec")
	if !w.gates.ClusterTopology {
		return nil, invalid("KubeadmControlPlaneTemplate", t.Name, field.ErrorList{
			field.Forbidden(path, "can be set only if the ClusterTopology feature flag is enabled")})
	}
	older, err := olderTemplate(ctx, t)
	if err != nil {
		return nil, err
	}
	at := path.Child("template", "spec")
	s := &t.Spec.Template.Spec
	all := validateMetadata(t.Spec.Template.ObjectMeta, path.Child("template", "metadata"))
	all = append(all, validateMetadata(s.MachineTemplate.ObjectMeta, at.Child("machineTemplate", "metadata"))...)
	all = append(all, validateRollout(s.Rollout, nil, at.Child("rollout"))...)
	all = append(all, validateNaming(s.MachineNaming, at)...)
	all = append(all, taint.Check(w.gates.MachineTaintPropagation, nil, s.MachineTemplate.Spec.Taints, taintsPath(at))...)
	config := at.Child("kubeadmConfigSpec")
	all = append(all, validateClusterConfiguration(&s.KubeadmConfigSpec.ClusterConfiguration, config.Child("clusterConfiguration"))...)
	all = append(all, kubeadm.ValidateConfigSpec(nil, &s.KubeadmConfigSpec, config, w.gates.Ignition)...)
	all = append(all, validateOlderRollout(older.RolloutBefore, at.Child("rollout"))...)
	all = append(all, validateOlderConfig(&older.KubeadmConfigSpec, &s.KubeadmConfigSpec, config, w.gates.Ignition)...)
	return nil, invalid("KubeadmControlPlaneTemplate", t.Name, all)
}

// ValidateUpdate implements Validator. The old version is defaulted before the comparison, because it may have been stored
// before a default existed. Neither version of the API has all fields.
func (w templates) ValidateUpdate(ctx context.Context, before, t *controlplanev1.KubeadmControlPlaneTemplate) (admission.Warnings, error) {
	before, t = before.DeepCopy(), t.DeepCopy()
	for _, template := range []*controlplanev1.KubeadmControlPlaneTemplate{before, t} {
		if err := withDefaults(ctx, template); err != nil {
			return nil, err
		}
	}
	was, is := &controlplanev1beta1.KubeadmControlPlaneTemplate{}, &controlplanev1beta1.KubeadmControlPlaneTemplate{}
	if err := conversion.Shared().Convert(ctx, before, was); err != nil {
		return nil, err
	}
	if err := conversion.Shared().Convert(ctx, t, is); err != nil {
		return nil, err
	}
	if equality.Semantic.DeepEqual(before.Spec.Template.Spec, t.Spec.Template.Spec) &&
		equality.Semantic.DeepEqual(was.Spec.Template.Spec, is.Spec.Template.Spec) {
		return nil, nil
	}
	return nil, invalid("KubeadmControlPlaneTemplate", t.Name, field.ErrorList{
		field.Forbidden(field.NewPath("spec", "template", "spec"), "is immutable: create a new KubeadmControlPlaneTemplate and refer to it")})
}

// ValidateDelete implements Validator.
func (templates) ValidateDelete(context.Context, *controlplanev1.KubeadmControlPlaneTemplate) (admission.Warnings, error) {
	return nil, nil
}
