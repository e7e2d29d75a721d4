// Package webhook serves the admission webhooks of the Docker and Dev kinds: the default port of endpoints, what schemas do not
// validate, and immutable templates.
//
// Pools and their templates have no webhooks: everything that their schemas allow is valid, and may change.
package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/loadbalancer"
	"sigs.k8s.io/cluster-api/sdk/webhooks"
)

// +kubebuilder:webhook:verbs=create;update,path=/mutate-infrastructure-cluster-x-k8s-io-v1beta1-dockercluster,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,groups=infrastructure.cluster.x-k8s.io,resources=dockerclusters,versions=v1beta1;v1beta2,name=default.dockercluster.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1beta1-dockercluster,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=infrastructure.cluster.x-k8s.io,resources=dockerclusters,versions=v1beta1;v1beta2,name=validation.dockercluster.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/mutate-infrastructure-cluster-x-k8s-io-v1beta1-dockerclustertemplate,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,groups=infrastructure.cluster.x-k8s.io,resources=dockerclustertemplates,versions=v1beta1;v1beta2,name=default.dockerclustertemplate.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1beta1-dockerclustertemplate,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=infrastructure.cluster.x-k8s.io,resources=dockerclustertemplates,versions=v1beta1;v1beta2,name=validation.dockerclustertemplate.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1beta1-dockermachine,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=infrastructure.cluster.x-k8s.io,resources=dockermachines,versions=v1beta1;v1beta2,name=validation.dockermachine.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update,path=/validate-infrastructure-cluster-x-k8s-io-v1beta1-dockermachinetemplate,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=infrastructure.cluster.x-k8s.io,resources=dockermachinetemplates,versions=v1beta1;v1beta2,name=validation.dockermachinetemplate.infrastructure.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1

// Register serves the webhooks. topology is the gate ClusterTopology, without which templates of clusters cannot be created.
func Register(mgr ctrl.Manager, topology bool) error {
	return errors.Join(registerDocker(mgr, topology), registerDev(mgr, topology))
}

// registerDocker serves the webhooks of the Docker kinds.
func registerDocker(mgr ctrl.Manager, topology bool) error {
	kind := dockerv1.GroupVersion.WithKind
	if err := webhooks.Register(mgr, &dockerv1.DockerCluster{}, clusters{}, webhooks.Check(kind("DockerCluster"), checkCluster)); err != nil {
		return err
	}
	check := webhooks.Check(kind("DockerClusterTemplate"), clusterTemplates{topology}.check)
	if err := webhooks.Register(mgr, &dockerv1.DockerClusterTemplate{}, clusterTemplates{topology}, check); err != nil {
		return err
	}
	if err := webhooks.Register(mgr, &dockerv1.DockerMachine{}, nil, webhooks.Check(kind("DockerMachine"), checkMachine)); err != nil {
		return err
	}
	return webhooks.Register(mgr, &dockerv1.DockerMachineTemplate{}, nil, webhooks.Check(kind("DockerMachineTemplate"), checkMachineTemplate))
}

// clusters sets the defaults of DockerClusters.
type clusters struct{}

// Default implements Defaulter.
func (clusters) Default(ctx context.Context, c *dockerv1.DockerCluster) error {
	defaultPort(ctx, &c.Spec.ControlPlaneEndpoint, "spec")
	return nil
}

// clusterTemplates sets the defaults of DockerClusterTemplates, and validates them.
type clusterTemplates struct{ topology bool }

// Default implements Defaulter.
func (clusterTemplates) Default(ctx context.Context, t *dockerv1.DockerClusterTemplate) error {
	defaultPort(ctx, &t.Spec.Template.Spec.ControlPlaneEndpoint, "spec", "template", "spec")
	return nil
}

// defaultPort sets the port of an endpoint that is in the request. One that is not gets its port from the controller, together
// with the host: an endpoint without a host is not valid, and a patch of only the port would create one.
func defaultPort(ctx context.Context, at *clusterv1.APIEndpoint, path ...string) {
	if at.Port != 0 {
		return
	}
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return
	}
	raw := request.Object.Raw
	for _, name := range append(path, "controlPlaneEndpoint", "host") {
		var fields map[string]json.RawMessage
		if json.Unmarshal(raw, &fields) != nil || fields[name] == nil {
			return
		}
		raw = fields[name]
	}
	at.Port = loadbalancer.DefaultPort
}

func checkCluster(_ context.Context, _, c *dockerv1.DockerCluster) field.ErrorList {
	return checkClusterSpec(&c.Spec, field.NewPath("spec"))
}

func checkClusterSpec(s *dockerv1.DockerClusterSpec, path *field.Path) field.ErrorList {
	return append(checkPort(s.ControlPlaneEndpoint, path), checkClusterBackend(&s.DockerClusterBackendSpec, path)...)
}

func checkPort(at clusterv1.APIEndpoint, path *field.Path) field.ErrorList {
	if at.Port >= 0 && at.Port <= 65535 {
		return nil
	}
	return field.ErrorList{
		field.Invalid(path.Child("controlPlaneEndpoint", "port"), at.Port, "must be a port between 1 and 65535, or 0 for the default"),
	}
}

func checkClusterBackend(s *dockerv1.DockerClusterBackendSpec, path *field.Path) field.ErrorList {
	if ref := s.LoadBalancer.CustomHAProxyConfigTemplateRef; ref != nil && ref.Name == "" {
		return field.ErrorList{
			field.Required(path.Child("loadBalancer", "customHAProxyConfigTemplateRef", "name"), "must be the name of a ConfigMap"),
		}
	}
	return nil
}

// check validates a template. Templates that were stored before a default existed are compared with it.
func (w clusterTemplates) check(_ context.Context, before, t *dockerv1.DockerClusterTemplate) field.ErrorList {
	path := field.NewPath("spec", "template", "spec")
	if before == nil {
		if !w.topology {
			return withoutTopology()
		}
		return checkClusterSpec(&t.Spec.Template.Spec, path)
	}
	old := before.Spec.Template.Spec.DeepCopy()
	keepDefaultPort(&old.ControlPlaneEndpoint, t.Spec.Template.Spec.ControlPlaneEndpoint)
	return immutable(clusterSpec(old), clusterSpec(&t.Spec.Template.Spec), path, "DockerClusterTemplate")
}

// withoutTopology is why templates of clusters cannot be created.
func withoutTopology() field.ErrorList {
	return field.ErrorList{field.Forbidden(field.NewPath("spec"), "can be set only if the ClusterTopology feature flag is enabled")}
}

// keepDefaultPort sets the port of a stored endpoint if a request only adds the default.
func keepDefaultPort(stored *clusterv1.APIEndpoint, requested clusterv1.APIEndpoint) {
	if stored.Port == 0 && requested.Port == loadbalancer.DefaultPort {
		stored.Port = loadbalancer.DefaultPort
	}
}

func checkMachine(_ context.Context, _, m *dockerv1.DockerMachine) field.ErrorList {
	return checkMachineBackend(&m.Spec.DockerMachineBackendSpec, field.NewPath("spec"))
}

func checkMachineBackend(s *dockerv1.DockerMachineBackendSpec, path *field.Path) field.ErrorList {
	if t := s.BootstrapTimeout; t != nil && t.Duration < 0 {
		return field.ErrorList{field.Invalid(path.Child("bootstrapTimeout"), t.Duration.String(), "must not be negative")}
	}
	return nil
}

// checkMachineTemplate validates a template. The topology controller determines by a dry run whether a template must be rotated,
// so it may try to change one.
func checkMachineTemplate(ctx context.Context, before, t *dockerv1.DockerMachineTemplate) field.ErrorList {
	path := field.NewPath("spec", "template", "spec")
	if before != nil && !webhooks.TopologyDryRun(ctx, t) {
		return immutable(machineSpec(&before.Spec.Template.Spec), machineSpec(&t.Spec.Template.Spec), path, "DockerMachineTemplate")
	}
	return checkMachineBackend(&t.Spec.Template.Spec.DockerMachineBackendSpec, path)
}

// clusterSpec returns a spec without what v1beta1 cannot tell: see clusterBackend.
func clusterSpec(s *dockerv1.DockerClusterSpec) *dockerv1.DockerClusterSpec {
	s = s.DeepCopy()
	clusterBackend(&s.DockerClusterBackendSpec)
	return s
}

// clusterBackend removes what v1beta1 cannot tell: the order of failure domains, and whether false is unset.
func clusterBackend(s *dockerv1.DockerClusterBackendSpec) {
	slices.SortFunc(s.FailureDomains, func(a, b clusterv1.FailureDomain) int { return strings.Compare(a.Name, b.Name) })
	for i := range s.FailureDomains {
		unsetFalse(&s.FailureDomains[i].ControlPlane)
	}
}

// machineSpec returns a spec without what v1beta1 cannot tell: see machineBackend.
func machineSpec(s *dockerv1.DockerMachineSpec) *dockerv1.DockerMachineSpec {
	s = s.DeepCopy()
	machineBackend(&s.DockerMachineBackendSpec)
	return s
}

// machineBackend removes what v1beta1 cannot tell: whether false is unset.
func machineBackend(s *dockerv1.DockerMachineBackendSpec) {
	for i := range s.ExtraMounts {
		unsetFalse(&s.ExtraMounts[i].Readonly)
	}
}

func unsetFalse(b **bool) {
	if !ptr.Deref(*b, false) {
		*b = nil
	}
}

func immutable[T any](before, after *T, path *field.Path, kind string) field.ErrorList {
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, "is immutable: create a new "+kind+" and refer to it")}
}
