package watch

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func machine(name, cluster string) *clusterv1.Machine {
	return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: clusterv1.MachineSpec{ClusterName: cluster}}
}

// broken is a cache that cannot be read.
type broken struct{ client.Reader }

func (broken) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("not started")
}

func TestRequests(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	from := fake.NewClientBuilder().WithScheme(scheme).WithObjects(machine("a", "blue"), machine("b", "green"), machine("c", "blue")).Build()
	ofBlue := func(m *clusterv1.Machine) bool { return m.Spec.ClusterName == "blue" }
	requests := func(names ...string) (out []reconcile.Request) {
		for _, name := range names {
			out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}})
		}
		return out
	}
	for name, c := range map[string]struct {
		reason string
		got    []reconcile.Request
		want   []reconcile.Request
	}{
		"All":       {"everything that is selected", Requests(t.Context(), from, &clusterv1.MachineList{}, client.InNamespace("ns")), requests("a", "b", "c")},
		"Elsewhere": {"nothing is selected", Requests(t.Context(), from, &clusterv1.MachineList{}, client.InNamespace("other")), nil},
		"Those":     {"only what matters", RequestsFor(t.Context(), from, &clusterv1.MachineList{}, ofBlue), requests("a", "c")},
		"Broken":    {"an error results in no requests", Requests(t.Context(), broken{}, &clusterv1.MachineList{}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.got); diff != "" {
				t.Errorf("%s, -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

func TestOrphans(t *testing.T) {
	free, owned, going := machine("a", "c"), machine("a", "c"), machine("a", "c")
	owned.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineSet", Controller: ptr.To(true)}}
	going.DeletionTimestamp = ptr.To(metav1.Now())
	for name, c := range map[string]struct {
		reason  string
		machine *clusterv1.Machine
		want    bool
	}{
		"Free":  {"it may be adopted", free, true},
		"Owned": {"it has a controller", owned, false},
		"Going": {"it is not worth it", going, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Orphaned().Update(event.UpdateEvent{ObjectOld: c.machine, ObjectNew: c.machine}); got != c.want {
				t.Errorf("%s: got %t", c.reason, got)
			}
		})
	}
}
