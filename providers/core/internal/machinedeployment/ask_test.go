package machinedeployment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/internal/inplace"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
)

// updater is an extension that can change versions of Machines, or nothing.
type updater struct {
	handlers []string
	cannot   bool
	err      error
	asked    int
}

// Handlers implements inplace.Caller.
func (u *updater) Handlers(context.Context, runtimecatalog.Hook, client.Object) ([]string, error) {
	return u.handlers, nil
}

// CallOnly implements inplace.Caller.
func (u *updater) CallOnly(_ context.Context, _ runtimecatalog.Hook, _ client.Object, request runtimehooksv1.RequestObject, response runtimehooksv1.ResponseObject) error {
	u.asked++
	if u.err != nil || u.cannot {
		return u.err
	}
	version := request.(*runtimehooksv1.CanUpdateMachineSetRequest).Desired.MachineSet.Spec.Template.Spec.Version
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"version": version}}}})
	response.(*runtimehooksv1.CanUpdateMachineSetResponse).MachineSetPatch = runtimehooksv1.Patch{PatchType: runtimehooksv1.JSONMergePatchType, Patch: patch}
	return err
}

// updatable is a world with an extension, and a MachineDeployment of three Machines of which one may be unavailable.
type updatable struct {
	*stale
	md *clusterv1.MachineDeployment
	c  *Controller
}

func newUpdatable(t *testing.T, u *updater) *updatable {
	t.Helper()
	w := &updatable{stale: newStale(t)}
	zero, one := intstr.FromInt32(0), intstr.FromInt32(1)
	w.md = w.deployment(3, func(md *clusterv1.MachineDeployment) {
		md.Spec.Rollout.Strategy.Type = clusterv1.RollingUpdateMachineDeploymentStrategyType
		md.Spec.Rollout.Strategy.RollingUpdate.MaxSurge, md.Spec.Rollout.Strategy.RollingUpdate.MaxUnavailable = &zero, &one
	})
	w.c = newController(w.api.ForController())
	w.c.updater = u
	w.plan()
	w.fill(&w.sets()[0])
	w.change(w.md, version(w.md, "v1.30.1"))
	w.api.Writes, w.api.LiveReads = nil, nil
	return w
}

// plan reconciles until nothing changes.
func (w *updatable) plan() {
	w.Helper()
	for range 4 {
		testenv.Must(w, w.once())
	}
}

func (w *updatable) once() error {
	_, err := w.c.declared().Runner(w.c.Clients).Reconcile(w.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.md)})
	return err
}

// machine changes a Machine as other controllers do.
func (w *updatable) machine(m *clusterv1.Machine, change func()) {
	w.Helper()
	before := m.DeepCopy()
	change()
	testenv.Must(w, w.Patch(w.Context(), m, client.MergeFrom(before)))
}

// hand moves as many Machines as sets have too many to the sets that receive them, like the MachineSet controller. Those that are being
// updated wait.
func (w *updatable) hand() {
	w.Helper()
	sets := w.sets()
	for _, from := range sets {
		machines := w.machinesOf(&from)
		for _, to := range sets {
			if inplace.MovesTo(&from) != to.Name || !inplace.Receives(&to, from.Name) {
				continue
			}
			for i := int(*from.Spec.Replicas); i < len(machines); i++ {
				m := &machines[i]
				if inplace.IsUpdating(m) {
					continue
				}
				w.machine(m, func() {
					m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&to, clusterv1.GroupVersion.WithKind(machineSetKind))}
					inplace.MarkMoved(m)
				})
			}
		}
	}
}

// finish completes the updates of the Machines that the new set has acknowledged.
func (w *updatable) finish() {
	w.Helper()
	for _, set := range w.sets() {
		for _, m := range w.machinesOf(&set) {
			if inplace.IsMoved(&m) && inplace.IsAcknowledged(&set, &m) {
				w.machine(&m, func() { inplace.Acknowledge(&m) })
			} else if inplace.IsUpdating(&m) && !inplace.IsMoved(&m) {
				w.machine(&m, func() { inplace.End(&m) })
			}
		}
	}
}

func TestAsk(t *testing.T) {
	for _, tc := range []struct {
		reason string
		u      *updater
		sizes  string
		moves  bool
		asked  int
		err    string
	}{
		{reason: "Machines that can be updated move", u: &updater{handlers: []string{"a.x"}}, sizes: "2 0", moves: true, asked: 1},
		{reason: "others are replaced, and the answer is kept", u: &updater{handlers: []string{"a.x"}, cannot: true}, sizes: "2 0", asked: 1},
		{reason: "without an extension, nothing is asked", u: &updater{}, sizes: "2 0"},
		{reason: "while the extension is down, nothing changes", u: &updater{handlers: []string{"a.x"}, err: errors.New("no route")}, sizes: "3", asked: 4, err: "no route"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newUpdatable(t, tc.u)
			for range 4 {
				if err := w.once(); (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("error %v, want %q", err, tc.err)
				}
			}
			w.want(tc.sizes, tc.reason)
			if got := inplace.MovesTo(&w.sets()[0]) != ""; got != tc.moves || tc.u.asked != tc.asked {
				t.Errorf("the old set hands over Machines: %t, asked %d times", got, tc.u.asked)
			}
		})
	}
}

// TestUpdatesOfWorkers plays a rollout in place. No Machine is created or deleted, and each is counted once.
func TestUpdatesOfWorkers(t *testing.T) {
	w := newUpdatable(t, &updater{handlers: []string{"a.x"}})
	want := fmt.Sprint(names(w.machines()))
	for moved := range 3 {
		w.plan()
		w.want(fmt.Sprintf("%d %d", 2-moved, moved), "one Machine is to move")
		w.hand()
		w.plan()
		w.want(fmt.Sprintf("%d %d", 2-moved, moved+1), "the new set includes it")
		w.finish()
		w.plan()
		w.want(fmt.Sprintf("%d %d", 2-moved, moved+1), "an update is not complete when it is acknowledged")
		w.finish()
	}
	w.plan()
	sets := w.sets()
	if got := fmt.Sprint(names(w.machines())); got != want || inplace.MovesTo(&sets[0]) != "" || len(w.machinesOf(&sets[1])) != 3 {
		t.Errorf("Machines %s, want %s; annotations %v", got, want, sets[0].Annotations)
	}
}

// TestUpdatesOfWorkersInterrupted changes the MachineDeployment when one Machine of three has moved, and is being updated. No Machine is
// created or deleted.
func TestUpdatesOfWorkersInterrupted(t *testing.T) {
	for _, tc := range []struct {
		reason string
		change func(w *updatable)
		// meanwhile is what the sets have after the change, and end when nothing happens any longer.
		meanwhile, end string
		then           func(w *updatable)
	}{
		{
			reason: "the spec changes back: the Machine moves back when its update is complete", meanwhile: "0 2", end: "0 3",
			change: func(w *updatable) { w.change(w.md, version(w.md, "v1.30.0")) },
		},
		{
			reason: "the spec changes to another one: all move on", meanwhile: "2 0 0", end: "0 0 3",
			change: func(w *updatable) { w.change(w.md, version(w.md, "v1.30.2")) },
		},
		{
			reason: "it is paused: no further Machine moves", meanwhile: "2 1", end: "2 1",
			change: func(w *updatable) { w.change(w.md, func() { w.md.Spec.Paused = ptr.To(true) }) },
		},
		{
			reason: "it is paused and resumed", meanwhile: "2 1", end: "0 3",
			change: func(w *updatable) { w.change(w.md, func() { w.md.Spec.Paused = ptr.To(true) }) },
			then:   func(w *updatable) { w.change(w.md, func() { w.md.Spec.Paused = nil }) },
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newUpdatable(t, &updater{handlers: []string{"a.x"}})
			want := fmt.Sprint(names(w.machines()))
			w.plan()
			w.hand()
			w.plan()
			w.want("2 1", "one has moved")
			tc.change(w)
			w.plan()
			w.want(tc.meanwhile, tc.reason)
			if tc.then != nil {
				tc.then(w)
			}
			for range 10 {
				w.hand()
				w.finish()
				w.plan()
				if w.sizes() == tc.end && !slices.ContainsFunc(w.machines(), func(m clusterv1.Machine) bool { return inplace.IsUpdating(&m) }) {
					break
				}
			}
			w.want(tc.end, tc.reason)
			if got := fmt.Sprint(names(w.machines())); got != want {
				t.Errorf("Machines %s, want %s", got, want)
			}
		})
	}
}

// TestUpdatesOfWorkersSurviveKills kills the manager before and after each of its writes.
func TestUpdatesOfWorkersSurviveKills(t *testing.T) {
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprintf("response lost: %t", lost), func(t *testing.T) {
			w := newUpdatable(t, &updater{handlers: []string{"a.x"}})
			want := fmt.Sprint(names(w.machines()))
			writes := 0
			kill := func(r fakeapi.Request) error {
				if !r.IsWrite() {
					return nil
				}
				if writes++; writes%2 == 1 {
					return errors.New("killed")
				}
				return nil
			}
			if lost {
				w.api.After = func(r fakeapi.Request, err error) error { return errors.Join(err, kill(r)) }
			} else {
				w.api.Before = kill
			}
			for range 12 {
				for range 8 {
					_ = w.once() // It is killed.
				}
				w.hand()
				w.finish()
			}
			w.api.Before, w.api.After = nil, nil
			w.plan()
			if writes < 10 {
				t.Errorf("only %d writes were disturbed", writes)
			}
			w.want("0 3", "all have moved")
			sets := w.sets()
			if got := fmt.Sprint(names(w.machines())); got != want || len(w.machinesOf(&sets[1])) != 3 {
				t.Errorf("Machines %s, want %s", got, want)
			}
		})
	}
}

func names(machines []clusterv1.Machine) []string {
	var out []string
	for _, m := range machines {
		out = append(out, m.Name)
	}
	return out
}
