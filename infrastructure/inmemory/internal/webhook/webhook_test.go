package webhook

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
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
				APIServer: &inmemoryv1.InMemoryAPIServerBehaviour{Provisioning: stage(-1, "x")}, Etcd: &inmemoryv1.InMemoryEtcdBehaviour{Provisioning: stage(0, "x")},
			},
			want: []string{"b.vm.provisioning.startupDuration", "b.node.provisioning.startupDuration", "b.apiServer.provisioning.startupDuration",
				"b.apiServer.provisioning.startupJitter", "b.etcd.provisioning.startupJitter"},
		},
	}
	for _, tt := range tests {
		var got []string
		for _, e := range validate(tt.behaviour, field.NewPath("b")) {
			got = append(got, e.Field)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s, -want +got:\n%s", tt.reason, diff)
		}
	}
}

func TestErrorHasKindAndField(t *testing.T) {
	v := validator[*inmemoryv1.InMemoryMachine]{kind: "InMemoryMachine", check: func(m *inmemoryv1.InMemoryMachine) field.ErrorList {
		return validate(m.Spec.Behaviour, field.NewPath("spec", "behaviour"))
	}}
	m := &inmemoryv1.InMemoryMachine{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
	if _, err := v.ValidateUpdate(t.Context(), nil, m); err != nil {
		t.Errorf("a machine without behaviour is valid: %v", err)
	}
	m.Spec.Behaviour = &inmemoryv1.InMemoryMachineBehaviour{VM: &inmemoryv1.InMemoryVMBehaviour{Provisioning: inmemoryv1.CommonProvisioningSettings{StartupJitter: "x"}}}
	_, err := v.ValidateCreate(t.Context(), m)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), `InMemoryMachine.infrastructure.cluster.x-k8s.io "m"`) || !strings.Contains(err.Error(), "spec.behaviour.vm.provisioning.startupJitter") {
		t.Errorf("err = %v, want Invalid with kind and field", err)
	}
}

func TestValidateFaults(t *testing.T) {
	for _, test := range []struct {
		reason      string
		annotations map[string]string
		want        []string
	}{
		{"no faults", nil, nil},
		{"valid faults", map[string]string{inmemoryv1.FaultsAnnotation: `{"latency": "1s"}`}, nil},
		{
			"a misspelled fault", map[string]string{inmemoryv1.FaultsAnnotation: `{"latencyy": "1s"}`},
			[]string{"metadata.annotations[" + inmemoryv1.FaultsAnnotation + "]"},
		},
	} {
		var got []string
		for _, e := range validateFaults(&inmemoryv1.InMemoryCluster{ObjectMeta: metav1.ObjectMeta{Annotations: test.annotations}}) {
			got = append(got, e.Field)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s, -want +got:\n%s", test.reason, diff)
		}
	}
}
