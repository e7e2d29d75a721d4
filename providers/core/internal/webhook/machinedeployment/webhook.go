// Package machinedeployment defaults and validates MachineDeployments.
package machinedeployment

import (
	"context"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/check"
	"sigs.k8s.io/cluster-api/providers/core/internal/webhook/machine/rules"
	"sigs.k8s.io/cluster-api/sdk/webhooks"
)

// +kubebuilder:webhook:verbs=create;update,path=/mutate-cluster-x-k8s-io-v1beta1-machinedeployment,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,groups=cluster.x-k8s.io,resources=machinedeployments,versions=v1beta1,name=default.machinedeployment.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-cluster-x-k8s-io-v1beta1-machinedeployment,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=cluster.x-k8s.io,resources=machinedeployments,versions=v1beta1,name=validation.machinedeployment.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1

const (
	kind = "MachineDeployment"

	defaultRevisionHistoryLimit    = 1
	defaultProgressDeadlineSeconds = 600
	defaultMaxSurge                = 1
)

// Register adds the webhooks to a manager.
func Register(mgr ctrl.Manager) error {
	return webhooks.Register(mgr, &clusterv1.MachineDeployment{}, webhook{}, webhook{})
}

type webhook struct{}

// Default implements Defaulter.
func (webhook) Default(ctx context.Context, md *clusterv1.MachineDeployment) error {
	old, err := rules.Old[clusterv1.MachineDeployment](ctx)
	if err != nil {
		return err
	}
	var before *int32
	if old != nil {
		before = old.Spec.Replicas
	}
	replicas, err := rules.Replicas(md.Spec.Replicas, before, md.Annotations)
	if err != nil {
		return err
	}
	md.Spec.Replicas = &replicas
	fill(&md.Spec.MinReadySeconds, 0)
	fill(&md.Spec.RevisionHistoryLimit, defaultRevisionHistoryLimit)
	fill(&md.Spec.ProgressDeadlineSeconds, defaultProgressDeadlineSeconds)
	defaultStrategy(md)
	defaultLabels(md)
	rules.DefaultVersion(md.Spec.Template.Spec.Version)
	return nil
}

func fill(p **int32, value int32) {
	if *p == nil {
		*p = &value
	}
}

func defaultStrategy(md *clusterv1.MachineDeployment) {
	if md.Spec.Strategy == nil {
		md.Spec.Strategy = &clusterv1.MachineDeploymentStrategy{}
	}
	strategy := md.Spec.Strategy
	if strategy.Type == "" {
		strategy.Type = clusterv1.RollingUpdateMachineDeploymentStrategyType
	}
	if strategy.Type != clusterv1.RollingUpdateMachineDeploymentStrategyType {
		return
	}
	if strategy.RollingUpdate == nil {
		strategy.RollingUpdate = &clusterv1.MachineRollingUpdateDeployment{}
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
		rules.SetLabel(&selector.MatchLabels, clusterv1.MachineDeploymentNameLabel, md.Name)
		rules.SetLabel(template, clusterv1.MachineDeploymentNameLabel, md.Name)
	}
	rules.SetLabel(&md.Labels, clusterv1.ClusterNameLabel, md.Spec.ClusterName)
	rules.SetLabel(&selector.MatchLabels, clusterv1.ClusterNameLabel, md.Spec.ClusterName)
	rules.SetLabel(template, clusterv1.ClusterNameLabel, md.Spec.ClusterName)
}

// ValidateCreate implements Validator.
func (webhook) ValidateCreate(_ context.Context, md *clusterv1.MachineDeployment) (admission.Warnings, error) {
	return nil, rules.Invalid(kind, md.Name, validate(nil, md))
}

// ValidateUpdate implements Validator.
func (webhook) ValidateUpdate(_ context.Context, old, md *clusterv1.MachineDeployment) (admission.Warnings, error) {
	return nil, rules.Invalid(kind, md.Name, validate(old, md))
}

// ValidateDelete implements Validator.
func (webhook) ValidateDelete(context.Context, *clusterv1.MachineDeployment) (admission.Warnings, error) {
	return nil, nil
}

func validate(old, md *clusterv1.MachineDeployment) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range validation.IsValidLabelValue(md.Name) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), md.Name, "must be a valid label value: "+problem))
	}
	spec := field.NewPath("spec")
	template := spec.Child("template")
	errs = append(errs, rules.Selector(&md.Spec.Selector, md.Spec.Template.Labels)...)
	errs = append(errs, bounds(md.Spec.Strategy, spec.Child("strategy", "rollingUpdate"))...)
	errs = append(errs, rules.Version(md.Spec.Template.Spec.Version, template.Child("spec", "version"))...)
	errs = append(errs, check.Metadata(&md.Spec.Template.ObjectMeta, template.Child("metadata"))...)
	if old != nil {
		errs = append(errs, rules.ClusterName(old.Spec.ClusterName, md.Spec.ClusterName)...)
	}
	return errs
}

// bounds reports values of maxSurge and maxUnavailable that are neither numbers nor percentages.
func bounds(strategy *clusterv1.MachineDeploymentStrategy, path *field.Path) field.ErrorList {
	if strategy == nil || strategy.Type != clusterv1.RollingUpdateMachineDeploymentStrategyType || strategy.RollingUpdate == nil {
		return nil
	}
	errs := bound(strategy.RollingUpdate.MaxSurge, path.Child("maxSurge"))
	return append(errs, bound(strategy.RollingUpdate.MaxUnavailable, path.Child("maxUnavailable"))...)
}

func bound(value *intstr.IntOrString, path *field.Path) field.ErrorList {
	if value == nil {
		return nil
	}
	if _, err := intstr.GetScaledValueFromIntOrPercent(value, 1, true); err != nil {
		return field.ErrorList{field.Invalid(path, value.String(), "must be a number or a percentage")}
	}
	return nil
}
