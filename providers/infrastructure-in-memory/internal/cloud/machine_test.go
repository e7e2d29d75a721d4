package cloud

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/faults"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/machines"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

func TestMachineStartup(t *testing.T) {
	g, clock := newTestGroup(t)
	want := machines.Machine{
		Name: "m", UID: "u", ControlPlane: true, Created: start, RunningAt: start.Add(10 * time.Second), State: machines.Starting,
	}
	spec := machines.Spec{Name: "m", UID: "u", ControlPlane: true, Startup: 10 * time.Second}
	got, err := g.EnsureMachine(spec)
	if err != nil {
		t.Fatal(err)
	}
	equal := cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })
	if diff := cmp.Diff(want, got, equal); diff != "" {
		t.Error(diff)
	}
	clock.Step(10 * time.Second)
	spec.Startup = time.Hour
	want.State = machines.Running
	if got, err = g.EnsureMachine(spec); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, equal); diff != "" {
		t.Errorf("an existing machine was changed: %s", diff)
	}
	if got.ProviderID() != "in-memory://m" || len(g.Machines()) != 1 {
		t.Errorf("machine %s, have %v", got.ProviderID(), g.Machines())
	}
	if err := errors.Join(g.DeleteMachine("m"), g.DeleteMachine("m")); err != nil {
		t.Error(err)
	}
	if _, err := g.Machine("m"); !apierrors.IsNotFound(err) {
		t.Errorf("reading a deleted machine: %v", err)
	}
}

func TestDelayIsStable(t *testing.T) {
	s := machines.Startup{Duration: 10 * time.Second, Jitter: 0.2}
	seen := map[time.Duration]bool{}
	for _, seed := range []string{"a", "b", "c", "d"} {
		d := s.Delay(seed, "vm")
		if d < s.Duration || d >= 12*time.Second {
			t.Errorf("the delay for %s is %s: it must be from 10s to 12s", seed, d)
		}
		if d != s.Delay(seed, "vm") {
			t.Error("the same seed must have the same delay")
		}
		seen[d] = true
	}
	if len(seen) != 4 {
		t.Errorf("delays of different seeds must differ: %v", seen)
	}
	if d := (machines.Startup{Duration: time.Second}).Delay("x"); d != time.Second {
		t.Errorf("without jitter the delay is %s", d)
	}
}

func pod(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec:       corev1.PodSpec{NodeName: node},
		Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}

func podsReady(t *testing.T, g *Group) map[string]string {
	t.Helper()
	list, _ := g.List(store.Pods(), "", store.Selector{})
	ready := map[string]string{}
	for _, o := range list {
		var p corev1.Pod
		if err := o.Into(&p); err != nil {
			t.Fatal(err)
		}
		ready[p.Name] = string(p.Status.Conditions[0].Status)
		if p.DeletionTimestamp != nil {
			ready[p.Name] = "Terminating"
		}
	}
	return ready
}

func node(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{Conditions: machines.NodeConditions(metav1.NewTime(start))}}
}

// run creates a machine.
func run(t *testing.T, g *Group, name string) {
	t.Helper()
	if _, err := g.EnsureMachine(machines.Spec{Name: name}); err != nil {
		t.Fatal(err)
	}
}

func TestMachineLosesPowerAndRecovers(t *testing.T) {
	g, _ := newTestGroup(t)
	run(t, g, "m")
	if _, err := store.Ensure(g, node("m")); err != nil {
		t.Fatal(err)
	}
	for _, p := range []*corev1.Pod{pod("a", "m"), pod("b", "m"), pod("c", "m"), pod("far", "elsewhere")} {
		if _, err := store.Ensure(g, p); err != nil {
			t.Fatal(err)
		}
	}
	check := func(reason, status string, want map[string]string) {
		t.Helper()
		n, err := store.Get[corev1.Node](g, "", "m")
		if err != nil {
			t.Fatal(err)
		}
		if got := conditionOf(n, corev1.NodeReady).Status; string(got) != status {
			t.Errorf("%s: the Node's Ready is %s, want %s", reason, got, status)
		}
		if diff := cmp.Diff(want, podsReady(t, g)); diff != "" {
			t.Errorf("%s: %s", reason, diff)
		}
	}
	set := func(f faults.Faults) {
		t.Helper()
		if err := g.SetFaults(f); err != nil {
			t.Fatal(err)
		}
	}
	set(faults.Faults{DeadMachines: []string{"m", "unknown"}})
	check("dead", "Unknown", map[string]string{"a": "False", "b": "False", "c": "False", "far": "True"})
	now := time.Duration(0)
	for name, options := range map[string]store.DeleteOptions{"a": {}, "b": {GracePeriod: &now}, "far": {}} {
		if _, _, err := g.Delete(store.Key{Resource: store.Pods(), Namespace: "default", Name: name}, options); err != nil {
			t.Fatal(err)
		}
	}
	check("a Pod on a dead machine must remain", "Unknown", map[string]string{"a": "Terminating", "c": "False"})
	if _, gone, err := g.Delete(store.Key{Resource: store.Pods(), Namespace: "default", Name: "c"}, store.DeleteOptions{}); err != nil ||
		gone {
		t.Errorf("gone %v, %v", gone, err)
	}
	if _, gone, err := g.Delete(store.Key{Resource: store.Pods(), Namespace: "default", Name: "c"},
		store.DeleteOptions{GracePeriod: &now}); err != nil || !gone {
		t.Errorf("forced deletion of a terminating Pod: gone %v, %v", gone, err)
	}
	set(faults.Faults{})
	check("back", "True", map[string]string{})
	if _, err := store.Ensure(g, pod("d", "m")); err != nil {
		t.Fatal(err)
	}
	if err := store.Remove[corev1.Node](g, "", "m"); err != nil {
		t.Fatal(err)
	}
	if ready := podsReady(t, g); len(ready) != 0 {
		t.Errorf("Pods of a deleted Node: %v", ready)
	}
}

func conditionOf(n *corev1.Node, kind corev1.NodeConditionType) corev1.NodeCondition {
	for _, c := range n.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.NodeCondition{}
}

// TestNodeOfDeadMachine checks the conditions and taints of a Node whose kubelet does not respond, and that they are reverted.
func TestNodeOfDeadMachine(t *testing.T) {
	own := corev1.Taint{Key: "own", Effect: corev1.TaintEffectNoSchedule}
	dead := faults.Faults{DeadMachines: []string{"m"}}
	made := func(change func(*corev1.Node)) *corev1.Node {
		n := node("m")
		n.Spec.Taints = []corev1.Taint{own}
		change(n)
		return n
	}
	for _, test := range []struct {
		reason string
		node   *corev1.Node
		faults []faults.Faults // in sequence
		late   bool            // create the Node after the first fault
		dead   bool
	}{
		{"a machine dies", made(func(*corev1.Node) {}), []faults.Faults{dead}, false, true},
		{"a Node that only has the condition Ready", made(func(n *corev1.Node) { n.Status.Conditions = n.Status.Conditions[3:] }),
			[]faults.Faults{dead}, false, true},
		{"it has power again", made(func(*corev1.Node) {}), []faults.Faults{dead, {}}, false, false},
		{"its Node is restored by a new process that knows that it is dead", made(func(*corev1.Node) {}), []faults.Faults{dead}, true, true},
		{"that one has power again, too", made(func(*corev1.Node) {}), []faults.Faults{dead, {}}, true, false},
	} {
		t.Run(test.reason, func(t *testing.T) {
			g, clock := newTestGroup(t)
			run(t, g, "m")
			ensure := func() {
				if _, err := store.Ensure(g, test.node); err != nil {
					t.Fatal(err)
				}
			}
			if !test.late {
				ensure()
			}
			for _, faults := range test.faults {
				clock.Step(time.Minute)
				if err := g.SetFaults(faults); err != nil {
					t.Fatal(err)
				}
				ensure()
			}
			n, err := store.Get[corev1.Node](g, "", "m")
			if err != nil {
				t.Fatal(err)
			}
			wanted := map[corev1.NodeConditionType][2]string{
				"Ready": {"True", "KubeletReady"}, "MemoryPressure": {"False", "KubeletHasSufficientMemory"},
				"DiskPressure": {"False", "KubeletHasNoDiskPressure"}, "PIDPressure": {"False", "KubeletHasSufficientPID"},
			}
			keys := []string{"own"}
			if test.dead {
				for kind := range wanted {
					wanted[kind] = [2]string{"Unknown", "NodeStatusUnknown"}
				}
				keys = append(keys, corev1.TaintNodeUnreachable+":NoSchedule", corev1.TaintNodeUnreachable+":NoExecute")
			}
			got := map[corev1.NodeConditionType][2]string{}
			for _, c := range n.Status.Conditions {
				got[c.Type] = [2]string{string(c.Status), c.Reason}
			}
			if diff := cmp.Diff(wanted, got); diff != "" {
				t.Errorf("conditions: %s", diff)
			}
			var tainted []string
			for _, taint := range n.Spec.Taints {
				key := taint.Key
				if key != own.Key {
					key += ":" + string(taint.Effect)
				}
				tainted = append(tainted, key)
			}
			if diff := cmp.Diff(keys, tainted); diff != "" {
				t.Errorf("taints: %s", diff)
			}
			if since := conditionOf(n, corev1.NodeReady).LastTransitionTime.Time; !since.Equal(clock.Now()) {
				t.Errorf("Ready has changed at %s, want %s", since, clock.Now())
			}
		})
	}
}

func TestLatency(t *testing.T) {
	g, clock := newTestGroup(t)
	if err := g.SetFaults(faults.Faults{Latency: metav1.Duration{Duration: time.Minute}}); err != nil {
		t.Fatal(err)
	}
	suffered := make(chan error)
	go func() { suffered <- g.InjectFaults(t.Context()) }()
	for !clock.HasWaiters() {
		select {
		case err := <-suffered:
			t.Fatalf("the request was not delayed: %v", err)
		default:
		}
	}
	clock.Step(time.Minute)
	if err := <-suffered; err != nil {
		t.Error(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.InjectFaults(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled request must not wait: %v", err)
	}
}

func TestErrorRate(t *testing.T) {
	g, _ := newTestGroup(t)
	if err := g.SetFaults(faults.Faults{ErrorRate: 0.5}); err != nil {
		t.Fatal(err)
	}
	failed := 0
	for range 1000 {
		if err := g.InjectFaults(t.Context()); errors.Is(err, faults.ErrInjected) {
			failed++
		}
	}
	if failed < 400 || failed > 600 {
		t.Errorf("%d of 1000 failed, want about 500", failed)
	}
}
