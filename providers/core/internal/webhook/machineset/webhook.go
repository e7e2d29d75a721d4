// Package machineset defaults and validates MachineSets.
package machineset

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/check"
	"sigs.k8s.io/cluster-api/providers/core/internal/webhook/machine/rules"
	"sigs.k8s.io/cluster-api/sdk/naming"
	"sigs.k8s.io/cluster-api/sdk/webhooks"
)

// +kubebuilder:webhook:verbs=create;update,path=/mutate-cluster-x-k8s-io-v1beta1-machineset,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,groups=cluster.x-k8s.io,resources=machinesets,versions=v1beta1,name=default.machineset.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-cluster-x-k8s-io-v1beta1-machineset,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=cluster.x-k8s.io,resources=machinesets,versions=v1beta1,name=validation.machineset.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1

// Webhook defaults and validates MachineSets.
type Webhook struct {
	// Preflight is whether preflight checks are enabled. Only then the annotation that skips checks is validated.
	Preflight bool
}

// Register adds the webhooks to a manager without preflight checks.
func Register(mgr ctrl.Manager) error { return Webhook{}.Register(mgr) }

// Register adds the webhooks to a manager.
func (w Webhook) Register(mgr ctrl.Manager) error {
	return webhooks.Register(mgr, &clusterv1.MachineSet{}, w, w)
}

// Default implements Defaulter.
func (Webhook) Default(ctx context.Context, set *clusterv1.MachineSet) error {
	old, err := rules.Old[clusterv1.MachineSet](ctx)
	if err != nil {
		return err
	}
	var before *int32
	if old != nil {
		before = old.Spec.Replicas
	}
	replicas, err := rules.Replicas(set.Spec.Replicas, before, set.Annotations)
	if err != nil {
		return err
	}
	set.Spec.Replicas = &replicas
	rules.SetLabel(&set.Labels, clusterv1.ClusterNameLabel, set.Spec.ClusterName)
	if set.Spec.DeletePolicy == "" {
		set.Spec.DeletePolicy = string(clusterv1.RandomMachineSetDeletePolicy)
	}
	if len(set.Spec.Selector.MatchLabels) == 0 && len(set.Spec.Selector.MatchExpressions) == 0 {
		name := naming.LabelValue(set.Name)
		rules.SetLabel(&set.Spec.Selector.MatchLabels, clusterv1.MachineSetNameLabel, name)
		rules.SetLabel(&set.Spec.Template.Labels, clusterv1.MachineSetNameLabel, name)
	}
	rules.DefaultVersion(set.Spec.Template.Spec.Version)
	return nil
}

// ValidateCreate implements Validator.
func (w Webhook) ValidateCreate(_ context.Context, set *clusterv1.MachineSet) (admission.Warnings, error) {
	return nil, rules.Invalid("MachineSet", set.Name, w.validate(nil, set))
}

// ValidateUpdate implements Validator.
func (w Webhook) ValidateUpdate(_ context.Context, old, set *clusterv1.MachineSet) (admission.Warnings, error) {
	return nil, rules.Invalid("MachineSet", set.Name, w.validate(old, set))
}

// ValidateDelete implements Validator.
func (Webhook) ValidateDelete(context.Context, *clusterv1.MachineSet) (admission.Warnings, error) {
	return nil, nil
}

func (w Webhook) validate(old, set *clusterv1.MachineSet) field.ErrorList {
	template := field.NewPath("spec", "template")
	errs := rules.Selector(&set.Spec.Selector, set.Spec.Template.Labels)
	errs = append(errs, rules.Version(set.Spec.Template.Spec.Version, template.Child("spec", "version"))...)
	errs = append(errs, check.Metadata(&set.Spec.Template.ObjectMeta, template.Child("metadata"))...)
	if w.Preflight {
		errs = append(errs, skipped(set)...)
	}
	if old != nil {
		errs = append(errs, rules.ClusterName(old.Spec.ClusterName, set.Spec.ClusterName)...)
	}
	return errs
}

// skipped reports unknown names in the list of preflight checks to skip.
func skipped(set *clusterv1.MachineSet) field.ErrorList {
	list := set.Annotations[clusterv1.MachineSetSkipPreflightChecksAnnotation]
	if list == "" {
		return nil
	}
	known := []clusterv1.MachineSetPreflightCheck{
		clusterv1.MachineSetPreflightCheckAll, clusterv1.MachineSetPreflightCheckKubeadmVersionSkew,
		clusterv1.MachineSetPreflightCheckKubernetesVersionSkew, clusterv1.MachineSetPreflightCheckControlPlaneIsStable,
	}
	path := field.NewPath("metadata", "annotations").Key(clusterv1.MachineSetSkipPreflightChecksAnnotation)
	var errs field.ErrorList
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); !slices.Contains(known, clusterv1.MachineSetPreflightCheck(name)) {
			errs = append(errs, field.Invalid(path, name, fmt.Sprintf("unknown preflight check, must be one of %v", known)))
		}
	}
	return errs
}
