// Package webhook serves the admission webhooks of the in-memory kinds. It validates what the schemas do not: durations must
// not be negative, jitters must be numbers, and faults must be valid.
package webhook

import (
	"context"
	"math"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/infrastructure/inmemory/internal/cloud"
	hooks "sigs.k8s.io/cluster-api/provider/admission"
)

// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1alpha1-inmemorycluster,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=infrastructure.cluster.x-k8s.io,resources=inmemoryclusters,versions=v1alpha1,name=validation.inmemorycluster.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1alpha1-inmemorymachine,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=infrastructure.cluster.x-k8s.io,resources=inmemorymachines,versions=v1alpha1,name=validation.inmemorymachine.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1alpha1-inmemorymachinepool,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=infrastructure.cluster.x-k8s.io,resources=inmemorymachinepools,versions=v1alpha1,name=validation.inmemorymachinepool.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1alpha1-inmemorymachinetemplate,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=infrastructure.cluster.x-k8s.io,resources=inmemorymachinetemplates,versions=v1alpha1,name=validation.inmemorymachinetemplate.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1alpha1-inmemorymachinepooltemplate,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=infrastructure.cluster.x-k8s.io,resources=inmemorymachinepooltemplates,versions=v1alpha1,name=validation.inmemorymachinepooltemplate.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1

// Register registers the webhooks.
func Register(mgr ctrl.Manager) error {
	clusters := validator[*inmemoryv1.InMemoryCluster]{kind: "InMemoryCluster", check: validateFaults}
	if err := hooks.Register(mgr, &inmemoryv1.InMemoryCluster{}, nil, clusters); err != nil {
		return err
	}
	machines := validator[*inmemoryv1.InMemoryMachine]{kind: "InMemoryMachine", check: func(m *inmemoryv1.InMemoryMachine) field.ErrorList {
		return validate(m.Spec.Behaviour, field.NewPath("spec", "behaviour"))
	}}
	if err := hooks.Register(mgr, &inmemoryv1.InMemoryMachine{}, nil, machines); err != nil {
		return err
	}
	templates := validator[*inmemoryv1.InMemoryMachineTemplate]{kind: "InMemoryMachineTemplate", check: func(t *inmemoryv1.InMemoryMachineTemplate) field.ErrorList {
		return validate(t.Spec.Template.Spec.Behaviour, field.NewPath("spec", "template", "spec", "behaviour"))
	}}
	if err := hooks.Register(mgr, &inmemoryv1.InMemoryMachineTemplate{}, nil, templates); err != nil {
		return err
	}
	kind := inmemoryv1.GroupVersion.WithKind
	if err := hooks.Register(mgr, &inmemoryv1.InMemoryMachinePool{}, nil, hooks.Check(kind("InMemoryMachinePool"), checkPool)); err != nil {
		return err
	}
	return hooks.Register(mgr, &inmemoryv1.InMemoryMachinePoolTemplate{}, nil, hooks.Check(kind("InMemoryMachinePoolTemplate"), checkPoolTemplate))
}

type validator[T client.Object] struct {
	kind  string
	check func(T) field.ErrorList
}

// ValidateCreate implements Validator.
func (v validator[T]) ValidateCreate(_ context.Context, obj T) (admission.Warnings, error) {
	all := v.check(obj)
	if len(all) == 0 {
		return nil, nil
	}
	return nil, apierrors.NewInvalid(inmemoryv1.GroupVersion.WithKind(v.kind).GroupKind(), obj.GetName(), all)
}

// ValidateUpdate implements Validator.
func (v validator[T]) ValidateUpdate(ctx context.Context, _, obj T) (admission.Warnings, error) {
	return v.ValidateCreate(ctx, obj)
}

// ValidateDelete implements Validator.
func (validator[T]) ValidateDelete(context.Context, T) (admission.Warnings, error) { return nil, nil }

func validateFaults(c *inmemoryv1.InMemoryCluster) field.ErrorList {
	text, found := c.Annotations[inmemoryv1.FaultsAnnotation]
	if !found {
		return nil
	}
	if _, err := cloud.ParseFaults(text); err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("metadata", "annotations").Key(inmemoryv1.FaultsAnnotation), text, err.Error())}
	}
	return nil
}

func validate(b *inmemoryv1.InMemoryMachineBehaviour, path *field.Path) field.ErrorList {
	if b == nil {
		return nil
	}
	var all field.ErrorList
	check := func(stage string, s inmemoryv1.CommonProvisioningSettings) {
		at := path.Child(stage, "provisioning")
		if s.StartupDuration.Duration < 0 {
			all = append(all, field.Invalid(at.Child("startupDuration"), s.StartupDuration.Duration.String(), "must not be negative"))
		}
		if jitter, err := strconv.ParseFloat(s.StartupJitter, 64); s.StartupJitter != "" && (err != nil || !(jitter >= 0 && jitter <= math.MaxFloat64)) {
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
