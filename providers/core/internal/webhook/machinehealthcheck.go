package webhook

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/check"
	"sigs.k8s.io/cluster-api/sdk/webhooks"
)

// +kubebuilder:webhook:verbs=create;update,path=/mutate-cluster-x-k8s-io-v1beta1-machinehealthcheck,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,groups=cluster.x-k8s.io,resources=machinehealthchecks,versions=v1beta1;v1beta2,name=default.machinehealthcheck.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-cluster-x-k8s-io-v1beta1-machinehealthcheck,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=cluster.x-k8s.io,resources=machinehealthchecks,versions=v1beta1;v1beta2,name=validation.machinehealthcheck.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1

// defaultMaxUnhealthy never blocks remediation.
const defaultMaxUnhealthy = "100%"

// MachineHealthCheck defaults and validates MachineHealthChecks.
type MachineHealthCheck struct{}

// Default implements Defaulter.
func (MachineHealthCheck) Default(_ context.Context, mhc *clusterv1.MachineHealthCheck) error {
	setLabel(&mhc.Labels, clusterv1.ClusterNameLabel, mhc.Spec.ClusterName)
	if trigger := &mhc.Spec.Remediation.TriggerIf; trigger.UnhealthyLessThanOrEqualTo == nil {
		trigger.UnhealthyLessThanOrEqualTo = ptr.To(intstr.FromString(defaultMaxUnhealthy))
	}
	defaultInt32(&mhc.Spec.Checks.NodeStartupTimeoutSeconds, int32(clusterv1.DefaultNodeStartupTimeout.Seconds()))
	return nil
}

// ValidateCreate implements Validator.
func (MachineHealthCheck) ValidateCreate(_ context.Context, mhc *clusterv1.MachineHealthCheck) (admission.Warnings, error) {
	return nil, invalid("MachineHealthCheck", mhc.Name, validateMachineHealthCheck(nil, mhc))
}

// ValidateUpdate implements Validator.
func (MachineHealthCheck) ValidateUpdate(_ context.Context, old, mhc *clusterv1.MachineHealthCheck) (admission.Warnings, error) {
	return nil, invalid("MachineHealthCheck", mhc.Name, validateMachineHealthCheck(old, mhc))
}

// ValidateDelete implements Validator.
func (MachineHealthCheck) ValidateDelete(context.Context, *clusterv1.MachineHealthCheck) (admission.Warnings, error) {
	return nil, nil
}

func validateMachineHealthCheck(old, mhc *clusterv1.MachineHealthCheck) field.ErrorList {
	path := field.NewPath("spec", "selector")
	var errs field.ErrorList
	selector, err := metav1.LabelSelectorAsSelector(&mhc.Spec.Selector)
	switch {
	case err != nil:
		errs = append(errs, field.Invalid(path, mhc.Spec.Selector, err.Error()))
	case selector.Empty():
		errs = append(errs, field.Required(path, "must select the Machines to check"))
	}
	if name, ok := mhc.Spec.Selector.MatchLabels[clusterv1.ClusterNameLabel]; ok && name != mhc.Spec.ClusterName {
		errs = append(errs, field.Invalid(path.Child("matchLabels").Key(clusterv1.ClusterNameLabel), name,
			fmt.Sprintf("must be %q, the value of spec.clusterName: only Machines of that Cluster are checked", mhc.Spec.ClusterName)))
	}
	errs = append(errs, webhooks.WithoutOld(checkDefinition(old), checkDefinition(mhc))...)
	if old != nil {
		errs = append(errs, validateClusterName(old.Spec.ClusterName, mhc.Spec.ClusterName)...)
	}
	return errs
}

// checkDefinition validates what a MachineHealthCheck and a ClusterClass define alike; mhc may be nil.
func checkDefinition(mhc *clusterv1.MachineHealthCheck) field.ErrorList {
	if mhc == nil {
		return nil
	}
	definition := &clusterv1.ControlPlaneClassHealthCheck{Checks: mhc.Spec.Checks, Remediation: mhc.Spec.Remediation}
	return check.HealthCheck(definition, field.NewPath("spec"))
}
