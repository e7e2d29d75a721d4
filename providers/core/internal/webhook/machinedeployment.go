package webhook

import (
	"context"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/check"
	"sigs.k8s.io/cluster-api/providers/internal/nametemplate"
	"sigs.k8s.io/cluster-api/providers/internal/taint"
	"sigs.k8s.io/cluster-api/sdk/webhooks"
)

// +kubebuilder:webhook:verbs=create;update,path=/mutate-cluster-x-k8s-io-v1beta1-machinedeployment,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,groups=cluster.x-k8s.io,resources=machinedeployments,versions=v1beta1;v1beta2,name=default.machinedeployment.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-cluster-x-k8s-io-v1beta1-machinedeployment,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=cluster.x-k8s.io,resources=machinedeployments,versions=v1beta1;v1beta2,name=validation.machinedeployment.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1

const defaultMaxSurge = 1

// MachineDeployment defaults and validates MachineDeployments.
type MachineDeployment struct {
	// Taints is the feature gate MachineTaintPropagation.
	Taints bool
}

// Default implements Defaulter.
func (MachineDeployment) Default(ctx context.Context, md *clusterv1.MachineDeployment) error {
	old, err := oldObject[clusterv1.MachineDeployment](ctx)
	if err != nil {
		return err
	}
	var before *int32
	if old != nil {
		before = old.Spec.Replicas
	}
	replicas, err := defaultReplicas(md.Spec.Replicas, before, md.Annotations)
	if err != nil {
		return err
	}
	md.Spec.Replicas = &replicas
	if !webhooks.RequestedIn(ctx, clusterv1.GroupVersion.Version) { // v1.14 has no default, either.
		defaultInt32(&md.Spec.Template.Spec.MinReadySeconds, 0)
	}
	defaultStrategy(&md.Spec.Rollout.Strategy)
	defaultLabels(md)
	defaultVersion(&md.Spec.Template.Spec.Version)
	return nil
}

func defaultStrategy(strategy *clusterv1.MachineDeploymentRolloutStrategy) {
	if strategy.Type == "" {
		strategy.Type = clusterv1.RollingUpdateMachineDeploymentStrategyType
	}
	if strategy.Type != clusterv1.RollingUpdateMachineDeploymentStrategyType {
		return
	}
	if strategy.RollingUpdate.MaxSurge == nil {
		strategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromInt32(defaultMaxSurge))
	}
	if strategy.RollingUpdate.MaxUnavailable == nil {
		strategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(0))
	}
}

// defaultLabels sets labels and a selector that match only the deployment's own Machines.
func defaultLabels(md *clusterv1.MachineDeployment) {
	selector, template := &md.Spec.Selector, &md.Spec.Template.Labels
	if len(selector.MatchLabels) == 0 && len(selector.MatchExpressions) == 0 {
		setLabel(&selector.MatchLabels, clusterv1.MachineDeploymentNameLabel, md.Name)
		setLabel(template, clusterv1.MachineDeploymentNameLabel, md.Name)
	}
	setLabel(&md.Labels, clusterv1.ClusterNameLabel, md.Spec.ClusterName)
	setLabel(&selector.MatchLabels, clusterv1.ClusterNameLabel, md.Spec.ClusterName)
	setLabel(template, clusterv1.ClusterNameLabel, md.Spec.ClusterName)
}

// ValidateCreate implements Validator.
func (w MachineDeployment) ValidateCreate(_ context.Context, md *clusterv1.MachineDeployment) (admission.Warnings, error) {
	return nil, invalid("MachineDeployment", md.Name, w.validate(nil, md))
}

// ValidateUpdate implements Validator.
func (w MachineDeployment) ValidateUpdate(_ context.Context, old, md *clusterv1.MachineDeployment) (admission.Warnings, error) {
	return nil, invalid("MachineDeployment", md.Name, w.validate(old, md))
}

// ValidateDelete implements Validator.
func (MachineDeployment) ValidateDelete(context.Context, *clusterv1.MachineDeployment) (admission.Warnings, error) {
	return nil, nil
}

func (w MachineDeployment) validate(old, md *clusterv1.MachineDeployment) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range validation.IsValidLabelValue(md.Name) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), md.Name, "must be a valid label value: "+problem))
	}
	spec := field.NewPath("spec")
	template := spec.Child("template")
	errs = append(errs, validateSelector(&md.Spec.Selector, md.Spec.Template.Labels)...)
	errs = append(errs, webhooks.WithoutOld(deploymentNumbers(old), deploymentNumbers(md))...)
	errs = append(errs, webhooks.WithoutOld(deploymentNaming(old), deploymentNaming(md))...)
	errs = append(errs, validateVersion(md.Spec.Template.Spec.Version, template.Child("spec", "version"))...)
	errs = append(errs, check.Metadata(&md.Spec.Template.ObjectMeta, template.Child("metadata"))...)
	var taints []clusterv1.MachineTaint
	if old != nil {
		taints = old.Spec.Template.Spec.Taints
		errs = append(errs, validateClusterName(old.Spec.ClusterName, md.Spec.ClusterName)...)
	}
	return append(errs, taint.Check(w.Taints, taints, md.Spec.Template.Spec.Taints, template.Child("spec", "taints"))...)
}

// deploymentNaming validates the template of names of Machines; the MachineDeployment may be nil.
func deploymentNaming(md *clusterv1.MachineDeployment) field.ErrorList {
	if md == nil {
		return nil
	}
	return nametemplate.CheckMachine(md.Spec.MachineNaming.Template, "machineSet", field.NewPath("spec", "machineNaming", "template"))
}
