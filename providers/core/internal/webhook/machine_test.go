package webhook

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// machine returns a Machine with all defaults, changed by change.
func machine(change ...func(*clusterv1.Machine)) *clusterv1.Machine {
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "m", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}},
		Spec: clusterv1.MachineSpec{
			ClusterName: "c", Version: "v1.30.0", Deletion: clusterv1.MachineDeletionSpec{NodeDeletionTimeoutSeconds: ptr.To[int32](10)},
			Bootstrap:         clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{Name: "b"}},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{Name: "i"},
		},
	}
	for _, f := range change {
		f(m)
	}
	return m
}

func TestMachineDefault(t *testing.T) {
	cases := map[string]struct {
		reason  string
		machine *clusterv1.Machine
		want    *clusterv1.Machine
	}{
		"Complete": {reason: "all defaults are set already", machine: machine(), want: machine()},
		"Bare": {
			reason: "label, leading v and timeout are set",
			machine: machine(func(m *clusterv1.Machine) {
				m.Labels, m.Spec.Version, m.Spec.Deletion = nil, "1.30.0", clusterv1.MachineDeletionSpec{}
			}),
			want: machine(),
		},
		"Set": {
			reason:  "a timeout of zero is kept",
			machine: machine(func(m *clusterv1.Machine) { m.Spec.Deletion.NodeDeletionTimeoutSeconds = ptr.To[int32](0) }),
			want:    machine(func(m *clusterv1.Machine) { m.Spec.Deletion.NodeDeletionTimeoutSeconds = ptr.To[int32](0) }),
		},
		"Secret": {
			reason: "there is no config reference",
			machine: machine(func(m *clusterv1.Machine) {
				m.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: ptr.To("s")}
			}),
			want: machine(func(m *clusterv1.Machine) {
				m.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: ptr.To("s")}
			}),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := (Machine{}).Default(t.Context(), tc.machine); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, tc.machine); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestMachineValidate(t *testing.T) {
	const prefix = `Machine.cluster.x-k8s.io "m" is invalid: `
	cases := map[string]struct {
		reason       string
		old, machine *clusterv1.Machine
		want         string
	}{
		"Valid":  {reason: "the Machine is valid", machine: machine()},
		"Update": {reason: "the version may change", old: machine(), machine: machine(func(m *clusterv1.Machine) { m.Spec.Version = "v1.31.0" })},
		"Version": {reason: "the version is invalid", machine: machine(func(m *clusterv1.Machine) { m.Spec.Version = "v1" }),
			want: prefix + `spec.version: Invalid value: "v1": must be a Kubernetes version with a leading "v", such as v1.30.2`},
		"NoBootstrap": {reason: "bootstrap data is required", machine: machine(func(m *clusterv1.Machine) { m.Spec.Bootstrap = clusterv1.Bootstrap{} }),
			want: prefix + `spec.bootstrap: Required value: either configRef or dataSecretName must be set`},
		"Pooled": {reason: "a Machine of a MachinePool needs no bootstrap data", machine: machine(func(m *clusterv1.Machine) {
			m.Spec.Bootstrap, m.Labels[clusterv1.MachinePoolNameLabel] = clusterv1.Bootstrap{}, "p"
		})},
		"Cluster": {reason: "the Cluster cannot be changed", old: machine(), machine: machine(func(m *clusterv1.Machine) { m.Spec.ClusterName = "d" }),
			want: prefix + `spec.clusterName: Forbidden: cannot be changed: create a new object for the other Cluster`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var err error
			if tc.old == nil {
				_, err = Machine{}.ValidateCreate(t.Context(), tc.machine)
			} else {
				_, err = Machine{}.ValidateUpdate(t.Context(), tc.old, tc.machine)
			}
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
