package webhook

import (
	"context"
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
)

func TestDefaultPort(t *testing.T) {
	tests := []struct {
		reason, raw string
		port, want  int32
	}{
		{reason: "an endpoint without a port", raw: `{"spec":{"controlPlaneEndpoint":{"host":"h"}}}`, want: 6443},
		{reason: "an endpoint with empty values, as Go clients send it", raw: `{"spec":{"controlPlaneEndpoint":{"host":"","port":0}}}`, want: 6443},
		{reason: "a port is kept", raw: `{"spec":{"controlPlaneEndpoint":{"host":"","port":1}}}`, port: 1, want: 1},
		{reason: "without an endpoint, a port would be an endpoint without a host, which is invalid", raw: `{"spec":{}}`},
		{reason: "no spec", raw: `{}`},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			in := func(raw string) context.Context {
				return admission.NewContextWithRequest(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
					Object: runtime.RawExtension{Raw: []byte(raw)},
				}})
			}
			c := &dockerv1.DockerCluster{}
			c.Spec.ControlPlaneEndpoint.Port = tc.port
			if err := (clusters{}).Default(in(tc.raw), c); err != nil || c.Spec.ControlPlaneEndpoint.Port != tc.want {
				t.Errorf("DockerCluster: port %d, want %d, error %v", c.Spec.ControlPlaneEndpoint.Port, tc.want, err)
			}
			template := &dockerv1.DockerClusterTemplate{}
			template.Spec.Template.Spec.ControlPlaneEndpoint.Port = tc.port
			err := (clusterTemplates{}).Default(in(`{"spec":{"template":`+tc.raw+`}}`), template)
			if got := template.Spec.Template.Spec.ControlPlaneEndpoint.Port; err != nil || got != tc.want {
				t.Errorf("DockerClusterTemplate: port %d, want %d, error %v", got, tc.want, err)
			}
		})
	}
}

func TestChecks(t *testing.T) {
	clusterTemplate := func(port int32) *dockerv1.DockerClusterTemplate {
		template := &dockerv1.DockerClusterTemplate{}
		template.Spec.Template.Spec.ControlPlaneEndpoint.Port = port
		return template
	}
	domains := func(names ...string) *dockerv1.DockerClusterTemplate {
		template := clusterTemplate(0)
		for i, name := range names {
			domain := clusterv1.FailureDomain{Name: name}
			if i == 0 {
				domain.ControlPlane = ptr.To(false)
			}
			template.Spec.Template.Spec.FailureDomains = append(template.Spec.Template.Spec.FailureDomains, domain)
		}
		return template
	}
	mounts := func(readOnly *bool) *dockerv1.DockerMachineTemplate {
		template := &dockerv1.DockerMachineTemplate{}
		template.Spec.Template.Spec.ExtraMounts = []dockerv1.Mount{{HostPath: "/a", ContainerPath: "/b", Readonly: readOnly}}
		return template
	}
	machineTemplate := func(image string, annotations map[string]string) *dockerv1.DockerMachineTemplate {
		template := &dockerv1.DockerMachineTemplate{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
		template.Spec.Template.Spec.CustomImage = image
		return template
	}
	dry := admission.NewContextWithRequest(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{DryRun: ptr.To(true)}})
	annotated := map[string]string{clusterv1.TopologyDryRunAnnotation: ""}
	on, off := clusterTemplates{topology: true}, clusterTemplates{}
	ctx := t.Context()
	tests := []struct {
		reason string
		got    field.ErrorList
		want   []string
	}{
		{reason: "an empty cluster", got: checkCluster(ctx, nil, &dockerv1.DockerCluster{})},
		{
			reason: "what can never work", want: []string{"spec.controlPlaneEndpoint.port", "spec.loadBalancer.customHAProxyConfigTemplateRef.name"},
			got: checkCluster(ctx, nil, &dockerv1.DockerCluster{Spec: dockerv1.DockerClusterSpec{
				ControlPlaneEndpoint: clusterv1.APIEndpoint{Port: 65536},
				DockerClusterBackendSpec: dockerv1.DockerClusterBackendSpec{
					LoadBalancer: dockerv1.DockerLoadBalancer{CustomHAProxyConfigTemplateRef: &corev1.LocalObjectReference{}},
				},
			}}),
		},
		{reason: "a template of a cluster with the gate", got: on.check(ctx, nil, clusterTemplate(0))},
		{reason: "a template of a cluster without the gate", got: off.check(ctx, nil, clusterTemplate(0)), want: []string{"spec"}},
		{reason: "a stored template can be updated without the gate", got: off.check(ctx, clusterTemplate(1), clusterTemplate(1))},
		{reason: "a template of a cluster does not change", got: on.check(ctx, clusterTemplate(1), clusterTemplate(2)), want: []string{"spec.template.spec"}},
		{reason: "a default is not a change", got: on.check(ctx, clusterTemplate(0), clusterTemplate(6443))},
		{reason: "what v1beta1 cannot tell is not a change", got: on.check(ctx, domains("a", "b"), domains("b", "a"))},
		{
			reason: "a template of a cluster does not change in dry runs, either", want: []string{"spec.template.spec"},
			got: on.check(dry, clusterTemplate(1), clusterTemplate(2)),
		},
		{reason: "a template of machines is created", got: checkMachineTemplate(ctx, nil, machineTemplate("a", nil))},
		{reason: "a template of machines does not change", got: checkMachineTemplate(ctx, machineTemplate("a", nil), machineTemplate("b", nil)), want: []string{"spec.template.spec"}},
		{reason: "nor its mounts", got: checkMachineTemplate(ctx, mounts(nil), mounts(ptr.To(true))), want: []string{"spec.template.spec"}},
		{reason: "a mount that does not say that it is read-only is not", got: checkMachineTemplate(ctx, mounts(nil), mounts(ptr.To(false)))},
		{reason: "its metadata does", got: checkMachineTemplate(ctx, machineTemplate("a", nil), machineTemplate("a", annotated))},
		{reason: "a dry run of the topology controller may change it", got: checkMachineTemplate(dry, machineTemplate("a", nil), machineTemplate("b", annotated))},
		{
			reason: "other dry runs may not", want: []string{"spec.template.spec"},
			got: checkMachineTemplate(dry, machineTemplate("a", nil), machineTemplate("b", nil)),
		},
		{
			reason: "the annotation without a dry run does not help", want: []string{"spec.template.spec"},
			got: checkMachineTemplate(ctx, machineTemplate("a", nil), machineTemplate("b", annotated)),
		},
		{
			reason: "a negative timeout", want: []string{"spec.bootstrapTimeout"},
			got: checkMachine(ctx, nil, &dockerv1.DockerMachine{Spec: dockerv1.DockerMachineSpec{
				DockerMachineBackendSpec: dockerv1.DockerMachineBackendSpec{BootstrapTimeout: &metav1.Duration{Duration: -time.Second}},
			}}),
		},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			var got []string
			for _, e := range tc.got {
				got = append(got, e.Field)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%v, -want +got:\n%s", tc.got, diff)
			}
		})
	}
}
