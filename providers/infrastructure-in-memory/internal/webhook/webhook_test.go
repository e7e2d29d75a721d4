package webhook

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/machines"
	"sigs.k8s.io/cluster-api/sdk/webhooks"
)

func TestValidate(t *testing.T) {
	stage := func(d time.Duration, jitter string) inmemoryv1.CommonProvisioningSettings {
		return inmemoryv1.CommonProvisioningSettings{StartupDuration: metav1.Duration{Duration: d}, StartupJitter: jitter}
	}
	vm := func(jitter string) *inmemoryv1.InMemoryMachineBehaviour {
		return &inmemoryv1.InMemoryMachineBehaviour{VM: &inmemoryv1.InMemoryVMBehaviour{Provisioning: stage(0, jitter)}}
	}
	jitter := []string{"b.vm.provisioning.startupJitter"}
	tests := []struct {
		reason    string
		behaviour *inmemoryv1.InMemoryMachineBehaviour
		want      []string
	}{
		{reason: "no behaviour"},
		{reason: "an empty behaviour", behaviour: &inmemoryv1.InMemoryMachineBehaviour{}},
		{reason: "a jitter", behaviour: vm("0.2")},
		{reason: "not a number", behaviour: vm("much"), want: jitter},
		{reason: "negative", behaviour: vm("-0.1"), want: jitter},
		{reason: "NaN", behaviour: vm("NaN"), want: jitter},
		{reason: "an infinite jitter", behaviour: vm("+Inf"), want: jitter},
		{
			reason: "every stage is validated",
			behaviour: &inmemoryv1.InMemoryMachineBehaviour{
				VM: &inmemoryv1.InMemoryVMBehaviour{Provisioning: stage(-1, "")}, Node: &inmemoryv1.InMemoryNodeBehaviour{Provisioning: stage(-1, "")},
				APIServer: &inmemoryv1.InMemoryAPIServerBehaviour{Provisioning: stage(-1, "x")},
				Etcd:      &inmemoryv1.InMemoryEtcdBehaviour{Provisioning: stage(0, "x")},
			},
			want: []string{"b.vm.provisioning.startupDuration", "b.node.provisioning.startupDuration", "b.apiServer.provisioning.startupDuration",
				"b.apiServer.provisioning.startupJitter", "b.etcd.provisioning.startupJitter"},
		},
	}
	for _, tt := range tests {
		var got []string
		for _, e := range CheckBehaviour(tt.behaviour, field.NewPath("b")) {
			got = append(got, e.Field)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s, -want +got:\n%s", tt.reason, diff)
		}
	}
}

func TestErrorHasKindAndField(t *testing.T) {
	v := webhooks.Check(inmemoryv1.GroupVersion.WithKind("InMemoryMachine"), checkMachine)
	m := &inmemoryv1.InMemoryMachine{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
	if _, err := v.ValidateUpdate(t.Context(), nil, m); err != nil {
		t.Errorf("a machine without behaviour is valid: %v", err)
	}
	m.Spec.Behaviour = &inmemoryv1.InMemoryMachineBehaviour{VM: &inmemoryv1.InMemoryVMBehaviour{
		Provisioning: inmemoryv1.CommonProvisioningSettings{StartupJitter: "x"}}}
	_, err := v.ValidateCreate(t.Context(), m)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), `InMemoryMachine.infrastructure.cluster.x-k8s.io "m"`) ||
		!strings.Contains(err.Error(), "spec.behaviour.vm.provisioning.startupJitter") {
		t.Errorf("err = %v, want Invalid with kind and field", err)
	}
}

func TestValidateCluster(t *testing.T) {
	faults := func(text string) inmemoryv1.InMemoryCluster {
		return inmemoryv1.InMemoryCluster{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{inmemoryv1.FaultsAnnotation: text}}}
	}
	hosted := func(version string) inmemoryv1.InMemoryCluster {
		return inmemoryv1.InMemoryCluster{Spec: inmemoryv1.InMemoryClusterSpec{HostedControlPlane: &inmemoryv1.HostedControlPlane{
			Version: version}}}
	}
	domains := func(names ...string) inmemoryv1.InMemoryCluster {
		c := inmemoryv1.InMemoryCluster{Spec: inmemoryv1.InMemoryClusterSpec{FailureDomains: clusterv1beta1.FailureDomains{}}}
		for _, name := range names {
			c.Spec.FailureDomains[name] = clusterv1beta1.FailureDomainSpec{}
		}
		return c
	}
	var many []string
	for i := range maxFailureDomains + 1 {
		many = append(many, fmt.Sprint(i))
	}
	for _, test := range []struct {
		reason  string
		cluster inmemoryv1.InMemoryCluster
		want    []string
	}{
		{"nothing is required", inmemoryv1.InMemoryCluster{}, nil},
		{"valid faults", faults(`{"latency": "1s"}`), nil},
		{"a misspelled fault", faults(`{"latencyy": "1s"}`), []string{"metadata.annotations[" + inmemoryv1.FaultsAnnotation + "]"}},
		{"a hosted control plane", hosted("v1.31.2"), nil},
		{"a hosted control plane without version", hosted(""), []string{"spec.hostedControlPlane.version"}},
		{"a hosted control plane with half a version", hosted("v1.31"), []string{"spec.hostedControlPlane.version"}},
		{"failure domains", domains("a", "rack-1.b"), nil},
		{"a failure domain that Nodes cannot have as a label", domains("a", "rack 1"), []string{"spec.failureDomains[rack 1]"}},
		{"too many failure domains", domains(many...), []string{"spec.failureDomains"}},
	} {
		var got []string
		for _, e := range checkCluster(t.Context(), nil, &test.cluster) {
			got = append(got, e.Field)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s, -want +got:\n%s", test.reason, diff)
		}
	}
}

func TestCapacity(t *testing.T) {
	for _, test := range []struct {
		reason    string
		set, want corev1.ResourceList
	}{
		{"it is that of all machines", nil, machines.Capacity()},
		{"a capacity that is set is kept", corev1.ResourceList{"cpu": resource.MustParse("64")},
			corev1.ResourceList{"cpu": resource.MustParse("64")}},
	} {
		template := &inmemoryv1.InMemoryMachineTemplate{Status: inmemoryv1.InMemoryMachineTemplateStatus{Capacity: test.set}}
		if err := (capacity{}).Default(t.Context(), template); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(test.want, template.Status.Capacity); diff != "" {
			t.Errorf("%s, -want +got:\n%s", test.reason, diff)
		}
	}
}
