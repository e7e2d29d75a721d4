package webhook

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
)

// backends of DevClusters and DevMachines.
var (
	dockerCluster   = dockerv1.DevClusterBackendSpec{Docker: &dockerv1.DockerClusterBackendSpec{}}
	inMemoryCluster = dockerv1.DevClusterBackendSpec{InMemory: &dockerv1.InMemoryClusterBackendSpec{}}
	dockerMachine   = dockerv1.DevMachineBackendSpec{Docker: &dockerv1.DockerMachineBackendSpec{}}
	inMemoryMachine = dockerv1.DevMachineBackendSpec{InMemory: &dockerv1.InMemoryMachineBackendSpec{}}
)

func TestDefaultPortOfDevClusters(t *testing.T) {
	for reason, tc := range map[string]struct {
		backend dockerv1.DevClusterBackendSpec
		want    int32
	}{
		"a load balancer has a default port":     {dockerCluster, 6443},
		"a simulated API server gets a free one": {inMemoryCluster, 0},
	} {
		in := func(raw string) admission.Request {
			return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Object: runtime.RawExtension{Raw: []byte(raw)}}}
		}
		const endpoint = `{"spec":{"controlPlaneEndpoint":{"host":"h"}}}`
		c, template := &dockerv1.DevCluster{}, &dockerv1.DevClusterTemplate{}
		c.Spec.Backend, template.Spec.Template.Spec.Backend = tc.backend, tc.backend
		if err := (devClusters{}).Default(admission.NewContextWithRequest(t.Context(), in(endpoint)), c); err != nil {
			t.Fatal(err)
		}
		ctx := admission.NewContextWithRequest(t.Context(), in(`{"spec":{"template":`+endpoint+`}}`))
		if err := (devClusterTemplates{}).Default(ctx, template); err != nil {
			t.Fatal(err)
		}
		if got, of := c.Spec.ControlPlaneEndpoint.Port, template.Spec.Template.Spec.ControlPlaneEndpoint.Port; got != tc.want || of != tc.want {
			t.Errorf("%s: port %d, of the template %d, want %d", reason, got, of, tc.want)
		}
	}
}

// devCheck is a check of an object of a Dev kind, and the fields that it rejects.
type devCheck struct {
	reason string
	got    field.ErrorList
	want   []string
}

func devCluster(b dockerv1.DevClusterBackendSpec, with ...func(*dockerv1.DevCluster)) *dockerv1.DevCluster {
	c := &dockerv1.DevCluster{Spec: dockerv1.DevClusterSpec{Backend: b}}
	for _, f := range with {
		f(c)
	}
	return c
}

// endpoint sets the endpoint of a DevCluster.
func endpoint(host string, port int32) func(*dockerv1.DevCluster) {
	return func(c *dockerv1.DevCluster) {
		c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: host, Port: port}
	}
}

func devClusterTemplate(b dockerv1.DevClusterBackendSpec, port int32) *dockerv1.DevClusterTemplate {
	out := &dockerv1.DevClusterTemplate{}
	out.Spec.Template.Spec = dockerv1.DevClusterSpec{Backend: b, ControlPlaneEndpoint: clusterv1.APIEndpoint{Port: port}}
	return out
}

// inDomains returns a backend with failure domains.
func inDomains(names ...string) dockerv1.DevClusterBackendSpec {
	out := &dockerv1.DockerClusterBackendSpec{}
	for _, name := range names {
		out.FailureDomains = append(out.FailureDomains, clusterv1.FailureDomain{Name: name})
	}
	return dockerv1.DevClusterBackendSpec{Docker: out}
}

func devMachine(b dockerv1.DevMachineBackendSpec) *dockerv1.DevMachine {
	return &dockerv1.DevMachine{Spec: dockerv1.DevMachineSpec{Backend: b}}
}

func devMachineTemplate(b dockerv1.DevMachineBackendSpec) *dockerv1.DevMachineTemplate {
	out := &dockerv1.DevMachineTemplate{}
	out.Spec.Template.Spec.Backend = b
	return out
}

// withMount returns a backend with a mount.
func withMount(readOnly *bool) dockerv1.DevMachineBackendSpec {
	return dockerv1.DevMachineBackendSpec{Docker: &dockerv1.DockerMachineBackendSpec{ExtraMounts: []dockerv1.Mount{{Readonly: readOnly}}}}
}

func TestChecksOfDevKinds(t *testing.T) {
	for _, tc := range slices.Concat(devClusterChecks(t), devClusterTemplateChecks(t), devMachineChecks(t)) {
		t.Run(tc.reason, func(t *testing.T) {
			var got []string
			for _, err := range tc.got {
				got = append(got, err.Field)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("fields (-want +got):\n%s\n%v", diff, tc.got.ToAggregate())
			}
		})
	}
}

func devClusterChecks(t *testing.T) []devCheck {
	t.Helper()
	return []devCheck{
		{reason: "a DevCluster with one backend", got: checkDevCluster(t.Context(), nil, devCluster(dockerCluster))},
		{reason: "a DevCluster in memory", got: checkDevCluster(t.Context(), nil, devCluster(inMemoryCluster))},
		{
			reason: "a DevCluster without a backend", got: checkDevCluster(t.Context(), nil, devCluster(dockerv1.DevClusterBackendSpec{})),
			want: []string{"spec.backend"},
		},
		{
			reason: "a DevCluster with both backends",
			got: checkDevCluster(t.Context(), nil, devCluster(dockerv1.DevClusterBackendSpec{
				Docker: dockerCluster.Docker, InMemory: inMemoryCluster.InMemory,
			})),
			want: []string{"spec.backend"},
		},
		{
			reason: "another backend", got: checkDevCluster(t.Context(), devCluster(dockerCluster), devCluster(inMemoryCluster)),
			want: []string{"spec.backend"},
		},
		{
			reason: "the port of another cluster",
			got:    checkDevCluster(t.Context(), devCluster(inMemoryCluster, endpoint("h", 20001)), devCluster(inMemoryCluster, endpoint("h", 20002))),
			want:   []string{"spec.controlPlaneEndpoint"},
		},
		{
			reason: "an endpoint that is removed",
			got:    checkDevCluster(t.Context(), devCluster(inMemoryCluster, endpoint("h", 20001)), devCluster(inMemoryCluster)),
			want:   []string{"spec.controlPlaneEndpoint"},
		},
		{
			reason: "the manager completes an endpoint",
			got:    checkDevCluster(t.Context(), devCluster(inMemoryCluster, endpoint("", 20001)), devCluster(inMemoryCluster, endpoint("h", 20001))),
		},
		{
			reason: "the port of a load balancer",
			got:    checkDevCluster(t.Context(), devCluster(dockerCluster, endpoint("h", 1)), devCluster(dockerCluster, endpoint("h", 2))),
		},
		{
			reason: "a reference without a name",
			got: checkDevCluster(t.Context(), nil, devCluster(dockerv1.DevClusterBackendSpec{Docker: &dockerv1.DockerClusterBackendSpec{
				LoadBalancer: dockerv1.DockerLoadBalancer{CustomHAProxyConfigTemplateRef: &corev1.LocalObjectReference{}},
			}})),
			want: []string{"spec.backend.docker.loadBalancer.customHAProxyConfigTemplateRef.name"},
		},
		{
			reason: "faults that cannot be read", got: checkDevCluster(t.Context(), nil, devCluster(inMemoryCluster, func(c *dockerv1.DevCluster) {
				c.Annotations = map[string]string{inmemoryv1.FaultsAnnotation: "x"}
			})),
			want: []string{"metadata.annotations[" + inmemoryv1.FaultsAnnotation + "]"},
		},
	}
}

func devClusterTemplateChecks(t *testing.T) []devCheck {
	t.Helper()
	topology := devClusterTemplates{topology: true}
	return []devCheck{
		{
			reason: "a template without the feature", got: devClusterTemplates{}.check(t.Context(), nil, devClusterTemplate(dockerCluster, 0)),
			want: []string{"spec"},
		},
		{reason: "a template", got: topology.check(t.Context(), nil, devClusterTemplate(inMemoryCluster, 0))},
		{
			reason: "the default is not a change",
			got:    topology.check(t.Context(), devClusterTemplate(dockerCluster, 0), devClusterTemplate(dockerCluster, 6443)),
		},
		{
			reason: "the order of failure domains is not a change",
			got:    topology.check(t.Context(), devClusterTemplate(inDomains("a", "b"), 0), devClusterTemplate(inDomains("b", "a"), 0)),
		},
		{
			reason: "a template is immutable", got: topology.check(t.Context(), devClusterTemplate(dockerCluster, 0), devClusterTemplate(inMemoryCluster, 0)),
			want: []string{"spec.template.spec"},
		},
	}
}

func devMachineChecks(t *testing.T) []devCheck {
	t.Helper()
	negative := metav1.Duration{Duration: -time.Second}
	return []devCheck{
		{reason: "a DevMachine", got: checkDevMachine(t.Context(), nil, devMachine(dockerMachine))},
		{reason: "a DevMachine in memory", got: checkDevMachine(t.Context(), nil, devMachine(inMemoryMachine))},
		{
			reason: "another backend of a machine", got: checkDevMachine(t.Context(), devMachine(inMemoryMachine), devMachine(dockerMachine)),
			want: []string{"spec.backend"},
		},
		{
			reason: "a negative timeout",
			got: checkDevMachine(t.Context(), nil, devMachine(dockerv1.DevMachineBackendSpec{
				Docker: &dockerv1.DockerMachineBackendSpec{BootstrapTimeout: &negative},
			})),
			want: []string{"spec.backend.docker.bootstrapTimeout"},
		},
		{
			reason: "a negative time to start",
			got: checkDevMachine(t.Context(), nil, devMachine(dockerv1.DevMachineBackendSpec{InMemory: &dockerv1.InMemoryMachineBackendSpec{
				Etcd: &dockerv1.InMemoryEtcd{Provisioning: dockerv1.CommonProvisioningSettings{StartupDuration: negative, StartupJitter: "x"}},
			}})),
			want: []string{
				"spec.backend.inMemory.etcd.provisioning.startupDuration", "spec.backend.inMemory.etcd.provisioning.startupJitter",
			},
		},
		{
			reason: "false is not a change", got: checkDevMachineTemplate(t.Context(), devMachineTemplate(withMount(nil)), devMachineTemplate(withMount(ptr.To(false)))),
		},
		{
			reason: "a template of machines is immutable",
			got:    checkDevMachineTemplate(t.Context(), devMachineTemplate(withMount(nil)), devMachineTemplate(withMount(ptr.To(true)))), want: []string{"spec.template.spec"},
		},
		{
			reason: "a new template of machines without a backend",
			got:    checkDevMachineTemplate(t.Context(), nil, devMachineTemplate(dockerv1.DevMachineBackendSpec{})), want: []string{"spec.template.spec.backend"},
		},
	}
}
