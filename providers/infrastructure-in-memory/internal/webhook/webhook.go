// Package webhook serves the admission webhooks of the in-memory kinds. It validates what the schemas do not: durations must
// not be negative, jitters must be numbers, and faults, versions and names of failure domains must be valid. It sets the capacity in
// the status of InMemoryMachineTemplates.
package webhook

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/faults"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/machines"
	"sigs.k8s.io/cluster-api/sdk/webhooks"
)

// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1alpha1-inmemorycluster,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=infrastructure.cluster.x-k8s.io,resources=inmemoryclusters,versions=v1alpha1,name=validation.inmemorycluster.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1alpha1-inmemorymachine,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=infrastructure.cluster.x-k8s.io,resources=inmemorymachines,versions=v1alpha1,name=validation.inmemorymachine.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1alpha1-inmemorymachinepool,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=infrastructure.cluster.x-k8s.io,resources=inmemorymachinepools,versions=v1alpha1,name=validation.inmemorymachinepool.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1alpha1-inmemorymachinetemplate,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=infrastructure.cluster.x-k8s.io,resources=inmemorymachinetemplates,versions=v1alpha1,name=validation.inmemorymachinetemplate.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1alpha1-inmemorymachinepooltemplate,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=infrastructure.cluster.x-k8s.io,resources=inmemorymachinepooltemplates,versions=v1alpha1,name=validation.inmemorymachinepooltemplate.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1

// +kubebuilder:webhook:verbs=create;update,path=/mutate-infrastructure-cluster-x-k8s-io-v1alpha1-inmemorymachinetemplate,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,groups=infrastructure.cluster.x-k8s.io,resources=inmemorymachinetemplates,versions=v1alpha1,name=default.inmemorymachinetemplate.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1

// Register registers the webhooks.
func Register(mgr ctrl.Manager) error {
	kind := inmemoryv1.GroupVersion.WithKind
	return errors.Join(
		// Cluster API v1.7 has configured webhooks of its four kinds that change nothing and accept everything.
		webhooks.Register(mgr, &inmemoryv1.InMemoryClusterTemplate{}, unchanged[*inmemoryv1.InMemoryClusterTemplate]{},
			webhooks.Check(kind("InMemoryClusterTemplate"), accept[*inmemoryv1.InMemoryClusterTemplate])),
		webhooks.Register(mgr, &inmemoryv1.InMemoryCluster{}, unchanged[*inmemoryv1.InMemoryCluster]{},
			webhooks.Check(kind("InMemoryCluster"), checkCluster)),
		webhooks.Register(mgr, &inmemoryv1.InMemoryMachine{}, unchanged[*inmemoryv1.InMemoryMachine]{},
			webhooks.Check(kind("InMemoryMachine"), checkMachine)),
		webhooks.Register(mgr, &inmemoryv1.InMemoryMachineTemplate{}, capacity{}, webhooks.Check(kind("InMemoryMachineTemplate"), checkTemplate)),
		webhooks.Register(mgr, &inmemoryv1.InMemoryMachinePool{}, nil, webhooks.Check(kind("InMemoryMachinePool"), checkPool)),
		webhooks.Register(mgr, &inmemoryv1.InMemoryMachinePoolTemplate{}, nil,
			webhooks.Check(kind("InMemoryMachinePoolTemplate"), checkPoolTemplate)),
	)
}

// unchanged sets no defaults.
type unchanged[T client.Object] struct{}

// Default implements Defaulter.
func (unchanged[T]) Default(context.Context, T) error { return nil }

// accept finds nothing wrong.
func accept[T client.Object](context.Context, T, T) field.ErrorList { return nil }

// capacity sets the capacity of the machines of a template. The kind has no status subresource, so that this takes no controller and
// no request.
type capacity struct{}

// Default implements Defaulter. A capacity that is set, for tests of the cluster autoscaler, is kept.
func (capacity) Default(_ context.Context, t *inmemoryv1.InMemoryMachineTemplate) error {
	if t.Status.Capacity == nil {
		t.Status.Capacity = machines.Capacity()
	}
	return nil
}

func checkMachine(_ context.Context, _, m *inmemoryv1.InMemoryMachine) field.ErrorList {
	return CheckBehaviour(m.Spec.Behaviour, field.NewPath("spec", "behaviour"))
}

func checkTemplate(_ context.Context, _, t *inmemoryv1.InMemoryMachineTemplate) field.ErrorList {
	return CheckBehaviour(t.Spec.Template.Spec.Behaviour, field.NewPath("spec", "template", "spec", "behaviour"))
}

func checkCluster(_ context.Context, _, c *inmemoryv1.InMemoryCluster) field.ErrorList {
	all := CheckFaults(c)
	spec := field.NewPath("spec")
	if hosted := c.Spec.HostedControlPlane; hosted != nil {
		if _, err := version.ParseSemantic(hosted.Version); err != nil {
			all = append(all, field.Invalid(spec.Child("hostedControlPlane", "version"), hosted.Version, "must be a version such as v1.31.2"))
		}
	}
	domains := spec.Child("failureDomains")
	if len(c.Spec.FailureDomains) > maxFailureDomains {
		all = append(all, field.TooMany(domains, len(c.Spec.FailureDomains), maxFailureDomains))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Spec.FailureDomains)) {
		for _, problem := range validation.IsValidLabelValue(name) {
			all = append(all, field.Invalid(domains.Key(name), name, "must be a valid label value, because Nodes have it as their zone: "+problem))
		}
	}
	return all
}

// CheckFaults returns what is wrong with the faults in the annotation of the infrastructure of a cluster.
func CheckFaults(obj client.Object) field.ErrorList {
	text, found := obj.GetAnnotations()[inmemoryv1.FaultsAnnotation]
	if !found {
		return nil
	}
	if _, err := faults.Parse(text); err != nil {
		path := field.NewPath("metadata", "annotations").Key(inmemoryv1.FaultsAnnotation)
		return field.ErrorList{field.Invalid(path, text, err.Error())}
	}
	return nil
}

// maxFailureDomains is the maximum number of failure domains: the status of the Cluster repeats them.
const maxFailureDomains = 100

// CheckBehaviour returns what is wrong with the behavior of a machine.
func CheckBehaviour(b *inmemoryv1.InMemoryMachineBehaviour, path *field.Path) field.ErrorList {
	if b == nil {
		return nil
	}
	var all field.ErrorList
	check := func(stage string, s inmemoryv1.CommonProvisioningSettings) {
		at := path.Child(stage, "provisioning")
		if s.StartupDuration.Duration < 0 {
			all = append(all, field.Invalid(at.Child("startupDuration"), s.StartupDuration.Duration.String(), "must not be negative"))
		}
		if jitter, err := strconv.ParseFloat(s.StartupJitter, 64); s.StartupJitter != "" && (err != nil ||
			!(jitter >= 0 && jitter <= math.MaxFloat64)) {
			all = append(all, field.Invalid(at.Child("startupJitter"), s.StartupJitter, "must be a non-negative number such as 0.2"))
		}
	}
	if b.VM != nil {
		check("vm", b.VM.Provisioning)
	}
	if b.Node != nil {
		check("node", b.Node.Provisioning)
	}
	if b.APIServer != nil {
		check("apiServer", b.APIServer.Provisioning)
	}
	if b.Etcd != nil {
		check("etcd", b.Etcd.Provisioning)
	}
	return all
}
