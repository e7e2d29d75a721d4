package webhook

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/backend"
	"sigs.k8s.io/cluster-api/sdk/webhooks"
)

// +kubebuilder:webhook:verbs=create;update,path=/mutate-infrastructure-cluster-x-k8s-io-v1beta1-devcluster,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,groups=infrastructure.cluster.x-k8s.io,resources=devclusters,versions=v1beta1;v1beta2,name=default.devcluster.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1beta1-devcluster,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=infrastructure.cluster.x-k8s.io,resources=devclusters,versions=v1beta1;v1beta2,name=validation.devcluster.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/mutate-infrastructure-cluster-x-k8s-io-v1beta1-devclustertemplate,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,groups=infrastructure.cluster.x-k8s.io,resources=devclustertemplates,versions=v1beta1;v1beta2,name=default.devclustertemplate.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1beta1-devclustertemplate,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=infrastructure.cluster.x-k8s.io,resources=devclustertemplates,versions=v1beta1;v1beta2,name=validation.devclustertemplate.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1beta1-devmachine,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=infrastructure.cluster.x-k8s.io,resources=devmachines,versions=v1beta1;v1beta2,name=validation.devmachine.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1beta1-devmachinetemplate,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=infrastructure.cluster.x-k8s.io,resources=devmachinetemplates,versions=v1beta1;v1beta2,name=validation.devmachinetemplate.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1

// registerDev serves the webhooks of the Dev kinds.
func registerDev(mgr ctrl.Manager, topology bool) error {
	kind := dockerv1.GroupVersion.WithKind
	if err := webhooks.Register(mgr, &dockerv1.DevCluster{}, devClusters{}, webhooks.Check(kind("DevCluster"), checkDevCluster)); err != nil {
		return err
	}
	templates := devClusterTemplates{topology}
	check := webhooks.Check(kind("DevClusterTemplate"), templates.check)
	if err := webhooks.Register(mgr, &dockerv1.DevClusterTemplate{}, templates, check); err != nil {
		return err
	}
	if err := webhooks.Register(mgr, &dockerv1.DevMachine{}, nil, webhooks.Check(kind("DevMachine"), checkDevMachine)); err != nil {
		return err
	}
	return webhooks.Register(mgr, &dockerv1.DevMachineTemplate{}, nil, webhooks.Check(kind("DevMachineTemplate"), checkDevMachineTemplate))
}

// devClusters sets the defaults of DevClusters.
type devClusters struct{}

// Default implements Defaulter. Simulated API servers have no default port.
func (devClusters) Default(ctx context.Context, c *dockerv1.DevCluster) error {
	if c.Spec.Backend.Docker != nil {
		defaultPort(ctx, &c.Spec.ControlPlaneEndpoint, "spec")
	}
	return nil
}

// devClusterTemplates sets the defaults of DevClusterTemplates, and validates them.
type devClusterTemplates struct{ topology bool }

// Default implements Defaulter.
func (devClusterTemplates) Default(ctx context.Context, t *dockerv1.DevClusterTemplate) error {
	if t.Spec.Template.Spec.Backend.Docker != nil {
		defaultPort(ctx, &t.Spec.Template.Spec.ControlPlaneEndpoint, "spec", "template", "spec")
	}
	return nil
}

// check validates a template. Templates that were stored before a default existed are compared with it.
func (w devClusterTemplates) check(_ context.Context, before, t *dockerv1.DevClusterTemplate) field.ErrorList {
	path := field.NewPath("spec", "template", "spec")
	if before == nil {
		if !w.topology {
			return withoutTopology()
		}
		return checkDevClusterSpec(t, &t.Spec.Template.Spec, path)
	}
	old, current := before.Spec.Template.Spec.DeepCopy(), t.Spec.Template.Spec.DeepCopy()
	keepDefaultPort(&old.ControlPlaneEndpoint, current.ControlPlaneEndpoint)
	for _, s := range []*dockerv1.DevClusterSpec{old, current} {
		if s.Backend.Docker != nil {
			clusterBackend(s.Backend.Docker)
		}
	}
	return immutable(old, current, path, "DevClusterTemplate")
}

func checkDevCluster(_ context.Context, before, c *dockerv1.DevCluster) field.ErrorList {
	path := field.NewPath("spec")
	all := checkDevClusterSpec(c, &c.Spec, path)
	if before != nil {
		all = append(all, keepsBackend(before.Spec.Backend.Docker != nil, c.Spec.Backend.Docker != nil, path)...)
		all = append(all, keepsEndpoint(before, c, path)...)
	}
	return all
}

// keepsEndpoint returns an error if a simulated API server gets another address. Of several DevClusters with the same port the oldest has
// it, so that one must not take over the port of a younger one while the manager restarts.
func keepsEndpoint(before, c *dockerv1.DevCluster, path *field.Path) field.ErrorList {
	was, is := before.Spec.ControlPlaneEndpoint, c.Spec.ControlPlaneEndpoint
	if c.Spec.Backend.InMemory == nil || (was.Host == "" || was.Host == is.Host) && (was.Port == 0 || was.Port == is.Port) {
		return nil
	}
	return field.ErrorList{field.Forbidden(path.Child("controlPlaneEndpoint"), "cannot change once it is set: create a new DevCluster")}
}

func checkDevClusterSpec(obj client.Object, s *dockerv1.DevClusterSpec, path *field.Path) field.ErrorList {
	docker, inMemory := s.Backend.Docker, s.Backend.InMemory
	all := append(oneBackend(docker != nil, inMemory != nil, path), checkPort(s.ControlPlaneEndpoint, path)...)
	if docker != nil {
		all = append(all, checkClusterBackend(docker, path.Child("backend", "docker"))...)
	}
	if inMemory != nil {
		all = append(all, backend.CheckCluster(obj)...)
	}
	return all
}

func checkDevMachine(_ context.Context, before, m *dockerv1.DevMachine) field.ErrorList {
	path := field.NewPath("spec")
	all := checkDevMachineSpec(&m.Spec, path)
	if before != nil {
		all = append(all, keepsBackend(before.Spec.Backend.Docker != nil, m.Spec.Backend.Docker != nil, path)...)
	}
	return all
}

func checkDevMachineSpec(s *dockerv1.DevMachineSpec, path *field.Path) field.ErrorList {
	docker, inMemory := s.Backend.Docker, s.Backend.InMemory
	all := oneBackend(docker != nil, inMemory != nil, path)
	if docker != nil {
		all = append(all, checkMachineBackend(docker, path.Child("backend", "docker"))...)
	}
	return append(all, backend.CheckMachine(inMemory, path.Child("backend", "inMemory"))...)
}

// checkDevMachineTemplate validates a template. See checkMachineTemplate.
func checkDevMachineTemplate(ctx context.Context, before, t *dockerv1.DevMachineTemplate) field.ErrorList {
	path := field.NewPath("spec", "template", "spec")
	if before == nil || webhooks.TopologyDryRun(ctx, t) {
		return checkDevMachineSpec(&t.Spec.Template.Spec, path)
	}
	old, current := before.Spec.Template.Spec.DeepCopy(), t.Spec.Template.Spec.DeepCopy()
	for _, s := range []*dockerv1.DevMachineSpec{old, current} {
		if s.Backend.Docker != nil {
			machineBackend(s.Backend.Docker)
		}
	}
	return immutable(old, current, path, "DevMachineTemplate")
}

// oneBackend returns an error unless a spec has exactly one backend: no controller reconciles other objects.
func oneBackend(docker, inMemory bool, path *field.Path) field.ErrorList {
	path = path.Child("backend")
	switch {
	case docker && inMemory:
		return field.ErrorList{field.Forbidden(path, "docker and inMemory are both set: remove one of them")}
	case !docker && !inMemory:
		return field.ErrorList{field.Required(path, "set docker or inMemory, for example to {}")}
	}
	return nil
}

// keepsBackend returns an error if an object gets another backend: what the old one made would remain.
func keepsBackend(before, after bool, path *field.Path) field.ErrorList {
	if before == after {
		return nil
	}
	return field.ErrorList{field.Forbidden(path.Child("backend"), "cannot change between docker and inMemory: create a new object")}
}
