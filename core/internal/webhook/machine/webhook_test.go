package machine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// machine is a Machine as the API server stores it.
func machine(change ...func(*clusterv1.Machine)) *clusterv1.Machine {
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "m", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}},
		Spec: clusterv1.MachineSpec{
			ClusterName: "c", Version: ptr.To("v1.30.0"), NodeDeletionTimeout: &metav1.Duration{Duration: 10 * time.Second},
			Bootstrap:         clusterv1.Bootstrap{ConfigRef: &corev1.ObjectReference{Name: "b", Namespace: "n"}},
			InfrastructureRef: corev1.ObjectReference{Name: "i", Namespace: "n"},
		},
	}
	for _, f := range change {
		f(m)
	}
	return m
}

func TestDefault(t *testing.T) {
	cases := map[string]struct {
		reason  string
		machine *clusterv1.Machine
		want    *clusterv1.Machine
	}{
		"Complete": {reason: "nothing changes", machine: machine(), want: machine()},
		"Bare": {
			reason: "label, namespaces of references, v and timeout are filled in",
			machine: machine(func(m *clusterv1.Machine) {
				m.Labels, m.Spec.Version, m.Spec.NodeDeletionTimeout = nil, ptr.To("1.30.0"), nil
				m.Spec.Bootstrap.ConfigRef.Namespace, m.Spec.InfrastructureRef.Namespace = "", ""
			}),
			want: machine(),
		},
		"Set": {
			reason:  "what is said stays: never give up on a Node",
			machine: machine(func(m *clusterv1.Machine) { m.Spec.NodeDeletionTimeout = &metav1.Duration{} }),
			want:    machine(func(m *clusterv1.Machine) { m.Spec.NodeDeletionTimeout = &metav1.Duration{} }),
		},
		"Secret": {
			reason: "without a config there is no reference to fill in",
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
			if err := (webhook{}).Default(t.Context(), tc.machine); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, tc.machine); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	const prefix = `Machine.cluster.x-k8s.io "m" is invalid: `
	cases := map[string]struct {
		reason       string
		old, machine *clusterv1.Machine
		want         string
	}{
		"Valid":  {reason: "all is well", machine: machine()},
		"Update": {reason: "a change of version is one of the spec", old: machine(), machine: machine(func(m *clusterv1.Machine) { m.Spec.Version = ptr.To("v1.31.0") })},
		"Version": {reason: "not a version", machine: machine(func(m *clusterv1.Machine) { m.Spec.Version = ptr.To("v1") }),
			want: prefix + `spec.version: Invalid value: "v1": must be a Kubernetes version with a leading "v", such as v1.30.2`},
		"NoBootstrap": {reason: "a Machine needs data to start with", machine: machine(func(m *clusterv1.Machine) { m.Spec.Bootstrap = clusterv1.Bootstrap{} }),
			want: prefix + `spec.bootstrap: Required value: either configRef or dataSecretName has to say where the bootstrap data comes from`},
		"Pooled": {reason: "one of a MachinePool does not", machine: machine(func(m *clusterv1.Machine) {
			m.Spec.Bootstrap, m.Labels[clusterv1.MachinePoolNameLabel] = clusterv1.Bootstrap{}, "p"
		})},
		"Namespaces": {reason: "references stay in the namespace", machine: machine(func(m *clusterv1.Machine) {
			m.Spec.Bootstrap.ConfigRef.Namespace, m.Spec.InfrastructureRef.Namespace = "o", "o"
		}), want: prefix + `[spec.bootstrap.configRef.namespace: Invalid value: "o": must be "n", the namespace of the object that refers to it, ` +
			`spec.infrastructureRef.namespace: Invalid value: "o": must be "n", the namespace of the object that refers to it]`},
		"Cluster": {reason: "Machines do not move", old: machine(), machine: machine(func(m *clusterv1.Machine) { m.Spec.ClusterName = "d" }),
			want: prefix + `spec.clusterName: Forbidden: cannot be changed: make a new object for the other Cluster`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var err error
			if tc.old == nil {
				_, err = webhook{}.ValidateCreate(t.Context(), tc.machine)
			} else {
				_, err = webhook{}.ValidateUpdate(t.Context(), tc.old, tc.machine)
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
