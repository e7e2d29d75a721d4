package machines

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/recorded"
)

func gatesOf(types ...string) []clusterv1.MachineReadinessGate {
	var gates []clusterv1.MachineReadinessGate
	for _, t := range types {
		gates = append(gates, clusterv1.MachineReadinessGate{ConditionType: t})
	}
	return gates
}

func TestReadinessGates(t *testing.T) {
	negative := clusterv1.MachineReadinessGate{ConditionType: "a", Polarity: clusterv1.NegativePolarityCondition}
	const ours = `{"f:spec":{"f:readinessGates":{"k:{\"conditionType\":\"a\"}":{".":{},"f:conditionType":{}},` +
		`"k:{\"conditionType\":\"SchedulerPodHealthy\"}":{".":{},"f:conditionType":{}}}}}`
	for _, tt := range []struct {
		reason             string
		template, is, want []clusterv1.MachineReadinessGate
		manager            string
	}{
		{"nothing is set", nil, nil, nil, FieldManager},
		{"gates of the template are added", gatesOf("a", "b"), nil, gatesOf("a", "b"), FieldManager},
		{"they follow those of v1.14", gatesOf("a"), gatesOf("SchedulerPodHealthy"), gatesOf("SchedulerPodHealthy", "a"), FieldManager},
		{"what is there keeps its place", gatesOf("b", "a"), gatesOf("a", "b"), gatesOf("a", "b"), FieldManager},
		{"the polarity of a gate changes", []clusterv1.MachineReadinessGate{negative}, gatesOf("a"),
			[]clusterv1.MachineReadinessGate{negative}, FieldManager},
		{"a gate that the template no longer has is removed, those of v1.14 are kept", nil, gatesOf("a", "SchedulerPodHealthy"),
			gatesOf("SchedulerPodHealthy"), FieldManager},
		{"a gate of someone else is kept", nil, gatesOf("a"), gatesOf("a"), "kubectl"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			b := kcptest.New(t)
			b.KCP.Spec.MachineTemplate.Spec.ReadinessGates = tt.template
			m := &clusterv1.Machine{Spec: clusterv1.MachineSpec{ReadinessGates: tt.is}}
			m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: tt.manager, FieldsV1: metav1.NewFieldsV1(ours)}}
			for range 2 {
				setGates(b.ControlPlane, m, owned(m))
				if diff := cmp.Diff(tt.want, m.Spec.ReadinessGates); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			}
		})
	}
}

// TestGatesChangeInPlace: new Machines have the gates of the template, existing ones get them with one write each, and are not replaced.
func TestGatesChangeInPlace(t *testing.T) {
	b, _ := kcptest.Three(t)
	b.Deleted(t, "c")
	all := []string{"patch Machine a", "patch Machine b"}
	for _, tt := range []struct {
		reason   string
		template []clusterv1.MachineReadinessGate
		writes   []string
	}{
		{"the template has a gate; a Machine in deletion does not need it", gatesOf("example.com/Checked"), all},
		{"nothing has changed", gatesOf("example.com/Checked"), nil},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			b.Reload(t)
			b.API.Writes = nil
			b.KCP.Spec.MachineTemplate.Spec.ReadinessGates = tt.template
			_, err := manager(b).Propagate(t.Context(), b.ControlPlane)
			testenv.Must(t, err)
			if diff := cmp.Diff(tt.writes, b.API.Writes); diff != "" {
				t.Errorf("writes -want +got:\n%s", diff)
			}
			spec, err := snapshot.SpecOf(t.Context(), b.KCP)
			testenv.Must(t, err)
			for _, m := range b.Machines {
				outdated, err := snapshot.OutdatedReasons(t.Context(), spec, m, m.CreationTimestamp.Time)
				if err != nil || len(outdated) > 0 {
					t.Errorf("Machine %s is outdated because of %q, error %v", m.Name, outdated, err)
				}
			}
		})
	}
	infrastructure := &unstructured.Unstructured{}
	infrastructure.SetName("new")
	m, err := newMachine(t.Context(), b.ControlPlane, "new", infrastructure, "")
	testenv.Must(t, err)
	if diff := cmp.Diff(gatesOf("example.com/Checked"), m.Spec.ReadinessGates); diff != "" {
		t.Errorf("a new Machine, -want +got:\n%s", diff)
	}
}

// TestRecordedMachines: Machines that v1.14 created, with its gates, are not written when we take over.
func TestRecordedMachines(t *testing.T) {
	for _, state := range recorded.States(t, "../../../..") {
		t.Run(state.Name, func(t *testing.T) {
			var objects []client.Object
			for _, m := range state.Machines {
				if _, ok := m.Labels[clusterv1.MachineControlPlaneLabel]; ok {
					m.ResourceVersion = ""
					objects = append(objects, m)
				}
			}
			b := kcptest.New(t, objects...)
			b.KCP, b.Cluster = state.ControlPlane, state.Cluster
			b.Reload(t)
			gated := 0
			for _, m := range b.Machines {
				gated += len(m.Spec.ReadinessGates)
			}
			if len(b.Machines) > 0 && gated == 0 {
				t.Fatal("no recorded Machine has gates")
			}
			_, err := manager(b).Propagate(t.Context(), b.ControlPlane)
			testenv.Must(t, err)
			if len(b.API.Writes) > 0 {
				t.Errorf("writes %q", b.API.Writes)
			}
		})
	}
}
