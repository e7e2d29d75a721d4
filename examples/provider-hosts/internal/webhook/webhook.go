// Package webhook validates what schemas cannot: host keys, selectors and immutable fields.
package webhook

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"

	hostsv1 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha1"
	hostsv1alpha2 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha2"
	"sigs.k8s.io/cluster-api/examples/provider-hosts/internal/ssh"
	"sigs.k8s.io/cluster-api/sdk/webhooks"
)

// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1alpha1-host,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=infrastructure.cluster.x-k8s.io,resources=hosts,versions=v1alpha1,name=validation.host.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1
// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1alpha1-hostmachine,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=infrastructure.cluster.x-k8s.io,resources=hostmachines,versions=v1alpha1,name=validation.hostmachine.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1
// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1alpha1-hostmachinetemplate,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=infrastructure.cluster.x-k8s.io,resources=hostmachinetemplates,versions=v1alpha1,name=validation.hostmachinetemplate.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1
// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1alpha2-hostclustertemplate,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=infrastructure.cluster.x-k8s.io,resources=hostclustertemplates,versions=v1alpha1;v1alpha2,name=validation.hostclustertemplate.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1

// Register serves the webhooks.
func Register(mgr ctrl.Manager) error {
	kind := hostsv1.GroupVersion.WithKind
	return errors.Join(
		webhooks.Register(mgr, &hostsv1.Host{}, nil, webhooks.Check(kind("Host"), host)),
		webhooks.Register(mgr, &hostsv1.HostMachine{}, nil, webhooks.Check(kind("HostMachine"), machine)),
		webhooks.Register(mgr, &hostsv1.HostMachineTemplate{}, nil, webhooks.Check(kind("HostMachineTemplate"), machineTemplate)),
		webhooks.Register(mgr, &hostsv1alpha2.HostClusterTemplate{}, nil,
			webhooks.Check(hostsv1alpha2.GroupVersion.WithKind("HostClusterTemplate"), clusterTemplate)),
	)
}

func host(_ context.Context, _, after *hostsv1.Host) field.ErrorList {
	if _, err := ssh.Keys(after.Spec.HostKeys); err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "hostKeys"), after.Spec.HostKeys, err.Error())}
	}
	return nil
}

// machine rejects all changes, except that the provider sets its fields once.
func machine(_ context.Context, before, after *hostsv1.HostMachine) field.ErrorList {
	path := field.NewPath("spec")
	if before == nil {
		return selector(after.Spec, path)
	}
	was := *before.Spec.DeepCopy()
	if was.ProviderID == nil {
		was.ProviderID = after.Spec.ProviderID
	}
	if was.FailureDomain == nil {
		was.FailureDomain = after.Spec.FailureDomain
	}
	if was.Host == nil {
		was.Host = after.Spec.Host
	}
	return webhooks.Immutable(path, was, after.Spec)
}

// machineTemplate rejects all changes, except in dry runs of the topology controller.
func machineTemplate(ctx context.Context, before, after *hostsv1.HostMachineTemplate) field.ErrorList {
	path, spec := field.NewPath("spec", "template", "spec"), after.Spec.Template.Spec
	if before == nil {
		if spec.ProviderID != nil || spec.Host != nil || spec.FailureDomain != nil {
			return field.ErrorList{field.Forbidden(path, "providerID, host and failureDomain must not be set in a template")}
		}
		return selector(spec, path)
	}
	if webhooks.TopologyDryRun(ctx, after) {
		return nil
	}
	return webhooks.Immutable(path, before.Spec.Template.Spec, spec)
}

func clusterTemplate(_ context.Context, before, after *hostsv1alpha2.HostClusterTemplate) field.ErrorList {
	if before == nil {
		return nil
	}
	return webhooks.Immutable(field.NewPath("spec", "template", "spec"), before.Spec.Template.Spec, after.Spec.Template.Spec)
}

func selector(spec hostsv1.HostMachineSpec, path *field.Path) field.ErrorList {
	if _, err := metav1.LabelSelectorAsSelector(&spec.Selector); err != nil {
		return field.ErrorList{field.Invalid(path.Child("selector"), spec.Selector, err.Error())}
	}
	return nil
}
