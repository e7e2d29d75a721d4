package controlplane

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/internal/plan"
	"sigs.k8s.io/cluster-api/internal/condition"
)

// three is a bench with three healthy Machines of which one is too many.
func three(t *testing.T) (*bench, *fakeCluster) {
	t.Helper()
	f := newFakeCluster(client.ObjectKey{Namespace: "ns", Name: "c"})
	var objects []client.Object
	for _, name := range []string{"a", "b", "c"} {
		f.boot(name)
		m := &clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)},
			Status:     clusterv1.MachineStatus{NodeRef: &corev1.ObjectReference{Name: name}},
		}
		for _, kind := range healthTypes(true) {
			condition.Set(m, condition.True(kind))
		}
		objects = append(objects, m)
	}
	b := newBench(t, objects...)
	one := int32(1)
	b.kcp.Spec.Replicas, b.kcp.Status.Initialized = &one, true
	reload(t, b, f)
	return b, f
}

// reload is what the next reconcile, in this process or another one, begins with.
func reload(t *testing.T, b *bench, f *fakeCluster) {
	t.Helper()
	list := &clusterv1.MachineList{}
	if err := b.Client.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	b.machines = nil
	for i := range list.Items {
		b.machines = append(b.machines, &machine{Machine: &list.Items[i]})
	}
	b.workload = f
	observed, err := observe(t.Context(), b.scope)
	if err != nil {
		t.Fatal(err)
	}
	b.observed = observed
}

// Whatever happens after an etcd member was removed, its Machine is the next one to be deleted, and no other.
func TestAnInterruptedScaleDownIsContinuedWithTheSameMachine(t *testing.T) {
	b, f := three(t)
	first := plan.Next(b.planned())
	if first.Kind != plan.ScaleDown || len(first.Blocked) > 0 {
		t.Fatalf("the plan is %+v", first)
	}
	real := b.Client
	withWatch, ok := real.(client.WithWatch)
	if !ok {
		t.Fatalf("a %T cannot be intercepted", real)
	}
	b.Client = interceptor.NewClient(withWatch, interceptor.Funcs{
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
			return errors.New("killed")
		},
	})
	if _, err := b.act(t.Context(), b.scope); err == nil {
		t.Fatal("the interruption is not seen")
	}
	if want := "remove " + first.Machine; !slices.Contains(f.actions(), want) {
		t.Fatalf("actions %q, want %q among them", f.actions(), want)
	}
	b.Client = real
	// Everything that decides without a mark now speaks for another Machine.
	reload(t, b, f)
	for _, m := range b.machines {
		if m.Name != first.Machine {
			m.outdated = []string{"version"}
		}
	}
	if _, err := b.act(t.Context(), b.scope); err != nil {
		t.Fatal(err)
	}
	reload(t, b, f)
	for _, m := range b.machines {
		if m.Name == first.Machine {
			t.Errorf("Machine %s is still there", m.Name)
		}
	}
	if len(b.machines) != 2 || len(f.members()) != 2 {
		t.Errorf("%d Machines and %d etcd members are left, want 2 of each", len(b.machines), len(f.members()))
	}
}

// Members are asked immediately before one of them goes, whatever was seen when the reconcile began.
func TestAMemberThatFailsInBetweenKeepsTheOthers(t *testing.T) {
	b, f := three(t)
	f.mu.Lock()
	f.etcd["c"] = false
	f.mu.Unlock()
	result, err := b.act(t.Context(), b.scope)
	if err != nil || result.After() != etcdBackstop {
		t.Errorf("result %+v, error %v, want to look again in %s", result, err, etcdBackstop)
	}
	if slices.ContainsFunc(f.actions(), func(a string) bool { return a[:6] == "remove" }) {
		t.Errorf("a member was removed: %q", f.actions())
	}
}
