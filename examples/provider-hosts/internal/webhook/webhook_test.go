package webhook

import (
	"context"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hostsv1 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha1"
	hostsv1alpha2 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha2"
)

const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJOzuyhpjmj8+DhvX+CbUVx1XSkxZKvyQmyQH1XDITh9 root@h"

func expect(t *testing.T, want string, got field.ErrorList) {
	t.Helper()
	text := ""
	if err := got.ToAggregate(); err != nil {
		text = err.Error()
	}
	if want == "" && text != "" || !strings.Contains(text, want) {
		t.Errorf("the error is %q, want %q", text, want)
	}
}

func TestHost(t *testing.T) {
	for _, tc := range []struct {
		reason string
		keys   []string
		want   string
	}{
		{"a line of a .pub file", []string{key}, ""},
		{"not a key", []string{key, "SHA256:abc"}, "spec.hostKeys: Invalid value"},
		{"none", nil, "hostKeys is empty"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			expect(t, tc.want, host(t.Context(), nil, &hostsv1.Host{Spec: hostsv1.HostSpec{HostKeys: tc.keys}}))
		})
	}
}

func TestMachine(t *testing.T) {
	broken := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}
	claimed := hostsv1.HostMachineSpec{Host: &hostsv1.HostReference{Name: "h", Claim: "1"}}
	ready := hostsv1.HostMachineSpec{Host: claimed.Host, ProviderID: ptr.To("hosts://ns/h"), FailureDomain: ptr.To("a")}
	for _, tc := range []struct {
		reason string
		before *hostsv1.HostMachineSpec
		after  hostsv1.HostMachineSpec
		want   string
	}{
		{"new", nil, hostsv1.HostMachineSpec{}, ""},
		{"moved here by clusterctl", nil, ready, ""},
		{"an invalid selector", nil, hostsv1.HostMachineSpec{Selector: broken}, "spec.selector: Invalid value"},
		{"the provider writes what it found", &claimed, ready, ""},
		{"users cannot give it another Host", &claimed, hostsv1.HostMachineSpec{Host: &hostsv1.HostReference{Name: "other", Claim: "1"}}, "spec: Forbidden"},
		{"users cannot take its Host", &ready, hostsv1.HostMachineSpec{}, "spec: Forbidden"},
		{"what runs does not change", &hostsv1.HostMachineSpec{}, hostsv1.HostMachineSpec{BootstrapCommand: "sh"}, "spec: Forbidden"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var before *hostsv1.HostMachine
			if tc.before != nil {
				before = &hostsv1.HostMachine{Spec: *tc.before}
			}
			expect(t, tc.want, machine(t.Context(), before, &hostsv1.HostMachine{Spec: tc.after}))
		})
	}
}

func TestMachineTemplate(t *testing.T) {
	with := func(spec hostsv1.HostMachineSpec, annotations map[string]string) *hostsv1.HostMachineTemplate {
		return &hostsv1.HostMachineTemplate{
			ObjectMeta: metav1.ObjectMeta{Annotations: annotations},
			Spec:       hostsv1.HostMachineTemplateSpec{Template: hostsv1.HostMachineTemplateResource{Spec: spec}},
		}
	}
	dryRun := admission.NewContextWithRequest(context.Background(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{DryRun: ptr.To(true)}})
	topology := map[string]string{clusterv1.TopologyDryRunAnnotation: ""}
	changed := hostsv1.HostMachineSpec{ResetCommand: "true"}
	for _, tc := range []struct {
		reason        string
		ctx           context.Context
		before, after *hostsv1.HostMachineTemplate
		want          string
	}{
		{"new", t.Context(), nil, with(changed, nil), ""},
		{"what belongs to one machine", t.Context(), nil, with(hostsv1.HostMachineSpec{ProviderID: ptr.To("hosts://ns/h")}, nil), "spec.template.spec: Forbidden"},
		{"unchanged", t.Context(), with(changed, nil), with(changed, map[string]string{"a": "b"}), ""},
		{"changed", t.Context(), with(hostsv1.HostMachineSpec{}, nil), with(changed, nil), "spec.template.spec: Forbidden"},
		{"the topology controller tries a change", dryRun, with(hostsv1.HostMachineSpec{}, nil), with(changed, topology), ""},
		{"the annotation does not allow a real change", t.Context(), with(hostsv1.HostMachineSpec{}, nil), with(changed, topology), "spec.template.spec: Forbidden"},
	} {
		t.Run(tc.reason, func(t *testing.T) { expect(t, tc.want, machineTemplate(tc.ctx, tc.before, tc.after)) })
	}
}

func TestClusterTemplate(t *testing.T) {
	with := func(host string) *hostsv1alpha2.HostClusterTemplate {
		template := &hostsv1alpha2.HostClusterTemplate{}
		template.Spec.Template.Spec.ControlPlaneEndpoint.Host = host
		return template
	}
	for _, tc := range []struct {
		reason        string
		before, after *hostsv1alpha2.HostClusterTemplate
		want          string
	}{
		{"new", nil, with("a"), ""},
		{"unchanged", with("a"), with("a"), ""},
		{"changed", with("a"), with("b"), "spec.template.spec: Forbidden"},
	} {
		t.Run(tc.reason, func(t *testing.T) { expect(t, tc.want, clusterTemplate(t.Context(), tc.before, tc.after)) })
	}
}
