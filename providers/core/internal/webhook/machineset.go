package webhook

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/check"
	"sigs.k8s.io/cluster-api/providers/internal/nametemplate"
	"sigs.k8s.io/cluster-api/providers/internal/taint"
	"sigs.k8s.io/cluster-api/sdk/naming"
	"sigs.k8s.io/cluster-api/sdk/webhooks"
)

// +kubebuilder:webhook:verbs=create;update,path=/mutate-cluster-x-k8s-io-v1beta1-machineset,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,groups=cluster.x-k8s.io,resources=machinesets,versions=v1beta1;v1beta2,name=default.machineset.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-cluster-x-k8s-io-v1beta1-machineset,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=cluster.x-k8s.io,resources=machinesets,versions=v1beta1;v1beta2,name=validation.machineset.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1

// MachineSet defaults and validates MachineSets.
type MachineSet struct {
	// Preflight is whether preflight checks are enabled. Only then the annotation that skips checks is validated.
	Preflight bool
	// Taints is the feature gate MachineTaintPropagation.
	Taints bool
}

// Default implements Defaulter.
func (MachineSet) Default(ctx context.Context, set *clusterv1.MachineSet) error {
	old, err := oldObject[clusterv1.MachineSet](ctx)
	if err != nil {
		return err
	}
	var before *int32
	if old != nil {
		before = old.Spec.Replicas
	}
	replicas, err := defaultReplicas(set.Spec.Replicas, before, set.Annotations)
	if err != nil {
		return err
	}
	set.Spec.Replicas = &replicas
	setLabel(&set.Labels, clusterv1.ClusterNameLabel, set.Spec.ClusterName)
	if set.Spec.Deletion.Order == "" {
		set.Spec.Deletion.Order = clusterv1.RandomMachineSetDeletionOrder
	}
	if len(set.Spec.Selector.MatchLabels) == 0 && len(set.Spec.Selector.MatchExpressions) == 0 {
		name := naming.LabelValue(set.Name)
		setLabel(&set.Spec.Selector.MatchLabels, clusterv1.MachineSetNameLabel, name)
		setLabel(&set.Spec.Template.Labels, clusterv1.MachineSetNameLabel, name)
	}
	defaultVersion(&set.Spec.Template.Spec.Version)
	return nil
}

// ValidateCreate implements Validator.
func (w MachineSet) ValidateCreate(_ context.Context, set *clusterv1.MachineSet) (admission.Warnings, error) {
	return nil, invalid("MachineSet", set.Name, w.validate(nil, set))
}

// ValidateUpdate implements Validator.
func (w MachineSet) ValidateUpdate(_ context.Context, old, set *clusterv1.MachineSet) (admission.Warnings, error) {
	return nil, invalid("MachineSet", set.Name, w.validate(old, set))
}

// ValidateDelete implements Validator.
func (MachineSet) ValidateDelete(context.Context, *clusterv1.MachineSet) (admission.Warnings, error) {
	return nil, nil
}

func (w MachineSet) validate(old, set *clusterv1.MachineSet) field.ErrorList {
	template := field.NewPath("spec", "template")
	errs := validateSelector(&set.Spec.Selector, set.Spec.Template.Labels)
	errs = append(errs, validateVersion(set.Spec.Template.Spec.Version, template.Child("spec", "version"))...)
	errs = append(errs, check.Metadata(&set.Spec.Template.ObjectMeta, template.Child("metadata"))...)
	errs = append(errs, webhooks.WithoutOld(setNumbers(old), setNumbers(set))...)
	errs = append(errs, webhooks.WithoutOld(setNaming(old), setNaming(set))...)
	if w.Preflight {
		errs = append(errs, validateSkippedChecks(set)...)
	}
	var taints []clusterv1.MachineTaint
	if old != nil {
		taints = old.Spec.Template.Spec.Taints
		errs = append(errs, validateClusterName(old.Spec.ClusterName, set.Spec.ClusterName)...)
	}
	return append(errs, taint.Check(w.Taints, taints, set.Spec.Template.Spec.Taints, template.Child("spec", "taints"))...)
}

// validateSkippedChecks reports unknown names in the list of preflight checks to skip.
func validateSkippedChecks(set *clusterv1.MachineSet) field.ErrorList {
	list := set.Annotations[clusterv1.MachineSetSkipPreflightChecksAnnotation]
	if list == "" {
		return nil
	}
	known := []clusterv1.MachineSetPreflightCheck{
		clusterv1.MachineSetPreflightCheckAll, clusterv1.MachineSetPreflightCheckKubeadmVersionSkew,
		clusterv1.MachineSetPreflightCheckKubernetesVersionSkew, clusterv1.MachineSetPreflightCheckControlPlaneIsStable,
		clusterv1.MachineSetPreflightCheckControlPlaneVersionSkew,
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

// setNaming validates the template of names of Machines; the MachineSet may be nil.
func setNaming(set *clusterv1.MachineSet) field.ErrorList {
	if set == nil {
		return nil
	}
	return nametemplate.CheckMachine(set.Spec.MachineNaming.Template, "machineSet", field.NewPath("spec", "machineNaming", "template"))
}
