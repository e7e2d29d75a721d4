package recovery

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/operation"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func TestStepsAreDocumented(t *testing.T) {
	testenv.StepsDocumented(t, (&Controller{}).declared().Names())
}

// recovered checks the end of a recovery.
func (w *world) recovered(t *testing.T, reason string) {
	t.Helper()
	if got := w.said(t); !strings.HasPrefix(got, "True Completed") {
		t.Fatalf("%s: it ends with %s, steps %+v", reason, got, w.recovery(t).Status.Steps)
	}
	list := &clusterv1.MachineList{}
	testenv.Must(t, w.List(t.Context(), list))
	left := slices.DeleteFunc(list.Items, func(m clusterv1.Machine) bool { return !m.DeletionTimestamp.IsZero() })
	plane := &controlplanev1.KubeadmControlPlane{}
	testenv.Must(t, w.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "plane"}, plane))
	infra := &inmemoryv1.InMemoryMachine{}
	testenv.Must(t, w.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "b"}, infra))
	if len(left) != 1 || left[0].Name != "b" || plane.Annotations[fleetv1.OperationAnnotation] != "" || plane.Annotations[fleetv1.OperatedAnnotation] == "" ||
		infra.Annotations[fleetv1.EtcdCommandAnnotation] != "" {
		t.Errorf("%s: Machines %v, the control plane has %v, the infrastructure %v", reason, left, plane.Annotations, infra.Annotations)
	}
	if diff := cmp.Diff(map[string]bool{"worker": true, "node-b": true}, w.nodes); diff != "" {
		t.Errorf("%s: Nodes, -want +got:\n%s", reason, diff)
	}
	if w.forced != 1 || len(w.unsafe) > 0 {
		t.Errorf("%s: etcd was forced %d times, %v", reason, w.forced, w.unsafe)
	}
}

func TestRecovery(t *testing.T) {
	w := newWorld(t, newRecovery(nil))
	w.run(t, 30)
	w.recovered(t, "nothing disturbs it")
	w.reconcile(t) // Its annotation says that it has ended, and it needs no finalizer.
	writes := len(w.Writes)
	w.reconcile(t)
	if r := w.recovery(t); len(w.Writes) != writes || len(r.Finalizers) > 0 || r.Annotations[fleetv1.OperationEndedAnnotation] == "" {
		t.Errorf("a completed recovery wrote %v, and has finalizers %v and annotations %v", w.Writes[writes:], r.Finalizers, r.Annotations)
	}
}

// TestTable: before a confirmation, nothing but commands to inspect is written.
func TestTable(t *testing.T) {
	w := newWorld(t, newRecovery(func(r *fleetv1.ControlPlaneRecovery) {
		r.Spec.Confirm, r.Spec.Survivor, r.Spec.LostMachines = "", "", nil
	}))
	w.run(t, 50)
	want := []fleetv1.RecoveryMember{
		{Machine: "a", Node: "node-a", Message: "the machine does not run", Infrastructure: "InMemoryMachine/a"},
		{Machine: "b", Node: "node-b", Reachable: true, ID: "b", RaftIndex: 100, RaftTerm: 3, Revision: 90, Infrastructure: "InMemoryMachine/b"},
		{Machine: "c", Node: "node-c", Message: "the machine does not run", Infrastructure: "InMemoryMachine/c"},
	}
	if diff := cmp.Diff(want, w.recovery(t).Status.Members); diff != "" {
		t.Errorf("members, -want +got:\n%s", diff)
	}
	if got := w.said(t); !strings.HasPrefix(got, "False NotConfirmed The member on Machine b has the highest raft index") {
		t.Errorf("it says %s", got)
	}
	for _, write := range w.Writes {
		if !strings.HasPrefix(write, "patch ControlPlaneRecovery") && !strings.HasPrefix(write, "patch InMemoryMachine ") {
			t.Errorf("before it was confirmed: %s", write)
		}
	}
}

// TestWithoutAnswers: who does not know the contracts never answers, and nothing is deleted then.
func TestWithoutAnswers(t *testing.T) {
	tests := []struct {
		reason string
		change func(*world)
		want   string
	}{
		{"the infrastructure provider", func(w *world) { w.mute = map[string]bool{"a": true, "b": true, "c": true} },
			"False Refused no etcd member responds to its infrastructure provider; without one, use a ControlPlaneRestore, from the latest " +
				"EtcdBackup. a: the provider of InMemoryMachine/a has not answered: it is stopped, or does not know annotation"},
		{"the controller of the control plane", func(w *world) { w.heldBack = true },
			"False Waiting Step Hold: waiting for the controller of KubeadmControlPlane plane to answer. If it does not set annotation"},
		{"of one lost Machine only", func(w *world) { w.mute["a"] = true }, "True Completed"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			w := newWorld(t, newRecovery(nil))
			tt.change(w)
			w.run(t, 100)
			if got := w.said(t); !strings.HasPrefix(got, tt.want) {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			for _, write := range w.Writes {
				if strings.HasPrefix(tt.want, "False") && strings.HasPrefix(write, "delete") {
					t.Errorf("it wrote %s", write)
				}
			}
		})
	}
}

// TestQuorumReturns: the quorum is there again when the control plane is held. The recovery is refused, and has changed nothing.
func TestQuorumReturns(t *testing.T) {
	w := newWorld(t, newRecovery(nil))
	w.Before = func(r fakeapi.Request) error {
		if r.Verb == "patch" && r.Kind == kubeadmControlPlane {
			w.dead = map[string]bool{}
		}
		return nil
	}
	w.run(t, 60)
	if got := w.said(t); !strings.HasPrefix(got, "False Refused 3 of 3 etcd members respond, which is a quorum") || w.forced > 0 {
		t.Errorf("forced %d times: %s", w.forced, got)
	}
	w.Before = nil
	testenv.Must(t, w.Delete(t.Context(), w.recovery(t)))
	w.reconcile(t)
	plane := &controlplanev1.KubeadmControlPlane{}
	testenv.Must(t, w.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "plane"}, plane))
	if _, held := plane.Annotations[fleetv1.OperationAnnotation]; held {
		t.Error("the control plane is held by a recovery that was deleted")
	}
}

// TestRefusals are those that follow from objects.
func TestRefusals(t *testing.T) {
	tests := []struct {
		reason string
		change func(t *testing.T, w *world)
		want   string
	}{
		{"the Cluster is paused", func(t *testing.T, w *world) {
			w.cluster(t, func(c *clusterv1.Cluster) { object.Paused(c) })
		}, "Cluster prod is paused, so that no provider acts: set spec.paused to false"},
		{"another control plane", func(t *testing.T, w *world) {
			w.cluster(t, func(c *clusterv1.Cluster) { c.Spec.ControlPlaneRef.Kind = "FooControlPlane" })
		}, `the control plane of Cluster prod is of kind "FooControlPlane"`},
		{"an older recovery", func(t *testing.T, w *world) {
			testenv.Must(t, w.Create(t.Context(), &fleetv1.ControlPlaneRecovery{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "older"}, Spec: fleetv1.ControlPlaneRecoverySpec{ClusterName: "prod"},
			}))
		}, "ControlPlaneRecovery older of the same Cluster has not ended"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			w := newWorld(t, newRecovery(nil))
			tt.change(t, w)
			w.run(t, 5)
			if got := w.said(t); !strings.HasPrefix(got, "False Refused "+tt.want) {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestFailed: a recovery that cannot succeed any more holds the control plane until it is deleted, and no longer.
func TestFailed(t *testing.T) {
	w := newWorld(t, newRecovery(nil))
	w.fails = "etcd does not run"
	w.run(t, 30)
	survivor := &clusterv1.Machine{}
	testenv.Must(t, w.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "b"}, survivor))
	survivor.Finalizers = nil
	testenv.Must(t, w.Update(t.Context(), survivor), w.Delete(t.Context(), survivor))
	w.run(t, 5)
	if got := w.said(t); !strings.HasPrefix(got, "False Failed Machine b no longer exists: use a ControlPlaneRestore") {
		t.Fatalf("got %s", got)
	}
	held := func() bool {
		plane := &controlplanev1.KubeadmControlPlane{}
		testenv.Must(t, w.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "plane"}, plane))
		return plane.Annotations[fleetv1.OperationAnnotation] != ""
	}
	if !held() {
		t.Error("its controller may replace Machines of an etcd that does not work")
	}
	testenv.Must(t, w.Delete(t.Context(), w.recovery(t)))
	w.reconcile(t)
	if held() {
		t.Error("the control plane is held by a recovery that was deleted")
	}
}

// TestConfirmedByNewAnswers: a recovery that is confirmed when the quorum was just lost is not refused by answers from before.
func TestConfirmedByNewAnswers(t *testing.T) {
	var confirmed fleetv1.ControlPlaneRecoverySpec
	w := newWorld(t, newRecovery(func(r *fleetv1.ControlPlaneRecovery) { confirmed, r.Spec.Confirm = r.Spec, "" }))
	lost := w.dead
	w.dead = map[string]bool{}
	w.run(t, 5)
	if got := w.said(t); !strings.HasPrefix(got, "False Refused ") || !strings.HasSuffix(got, "This is checked again every 30s") {
		t.Fatalf("got %s", got)
	}
	w.dead = lost
	r := w.recovery(t)
	r.Spec = confirmed
	r.Generation++
	testenv.Must(t, w.Update(t.Context(), r))
	w.run(t, 40)
	w.recovered(t, "confirmed after the loss")
}

// TestRefusedStaysRefused: a confirmed recovery of an etcd with a quorum does not begin when the quorum is lost later.
func TestRefusedStaysRefused(t *testing.T) {
	w := newWorld(t, newRecovery(nil))
	lost := w.dead
	w.dead = map[string]bool{}
	w.run(t, 30)
	if r, got := w.recovery(t), w.said(t); r.Status.Phase != fleetv1.OperationPhaseFailed || !strings.HasPrefix(got, "False Refused ") {
		t.Fatalf("phase %s, %s", r.Status.Phase, got)
	}
	w.dead = lost
	w.run(t, 60)
	machines := &clusterv1.MachineList{}
	testenv.Must(t, w.List(t.Context(), machines))
	for i := range machines.Items {
		if !machines.Items[i].DeletionTimestamp.IsZero() {
			t.Errorf("Machine %s is deleted", machines.Items[i].Name)
		}
	}
	if got := w.said(t); w.forced > 0 || !strings.HasPrefix(got, "False Refused ") {
		t.Errorf("forced %d times, %s", w.forced, got)
	}
}

func (w *world) cluster(t *testing.T, change func(*clusterv1.Cluster)) {
	t.Helper()
	c := build.Cluster()
	testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(c), c))
	change(c)
	testenv.Must(t, w.Update(t.Context(), c))
}

// TestProviderFails: a command that fails is repeated, and its error reported.
func TestProviderFails(t *testing.T) {
	w := newWorld(t, newRecovery(nil))
	w.fails = "etcd does not run"
	w.run(t, 30)
	if got := w.said(t); !strings.Contains(got, "It has failed, and is tried again: etcd does not run") {
		t.Errorf("got %s", got)
	}
	w.fails = ""
	w.run(t, 30)
	w.recovered(t, "after a failure")
}

// TestFenced: infrastructure that cannot be deleted holds a recovery, unless the user vouches for it.
func TestFenced(t *testing.T) {
	for _, fenced := range []bool{false, true} {
		t.Run(fmt.Sprint(fenced), func(t *testing.T) {
			w := newWorld(t, newRecovery(func(r *fleetv1.ControlPlaneRecovery) { r.Spec.Fenced = fenced }))
			infra := &inmemoryv1.InMemoryMachine{}
			testenv.Must(t, w.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "a"}, infra))
			infra.Finalizers = []string{"provider/x"}
			testenv.Must(t, w.Update(t.Context(), infra))
			w.run(t, 40)
			want := "False Waiting Step Fence: waiting for the infrastructure of Machines to be deleted: a"
			if got := w.said(t); !strings.HasPrefix(got, want) {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			w.Clock.Step(10 * 365 * 24 * time.Hour) // The API server in memory has another clock.
			w.run(t, 40)
			if fenced {
				want = "True Completed"
			}
			if got := w.said(t); !strings.HasPrefix(got, want) {
				t.Errorf("later, got  %s\nwant %s", got, want)
			}
			err := w.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "a"}, &clusterv1.Machine{})
			if apierrors.IsNotFound(err) != fenced {
				t.Errorf("reading the lost Machine: %v", err)
			}
		})
	}
}

// TestKilled kills the process after each request, and loses the response to each, with a cache that is old.
func TestKilled(t *testing.T) {
	w := newWorld(t, newRecovery(nil))
	w.run(t, 30)
	total := len(w.Writes)
	killed := errors.New("killed")
	for _, after := range []bool{false, true} {
		for nth := range total {
			reason := fmt.Sprintf("killed at write %d, after it: %v", nth, after)
			w := newWorld(t, newRecovery(nil))
			n, dead := 0, false
			at := func(r fakeapi.Request) error {
				if dead {
					return killed
				}
				if r.IsWrite() {
					if n++; n == nth+1 {
						dead = true
						return killed
					}
				}
				return nil
			}
			if after {
				w.After = func(r fakeapi.Request, err error) error {
					if failed := at(r); failed != nil {
						return failed
					}
					return err
				}
				w.Before = func(fakeapi.Request) error {
					if dead {
						return killed
					}
					return nil
				}
			} else {
				w.Before = at
			}
			for range 40 {
				w.reconcile(t)
				w.others(t)
				w.Clock.Step(operation.Poll)
				if dead {
					w.Before, w.After = nil, nil
					w.restart()
					dead = false
				}
			}
			w.recovered(t, reason)
		}
	}
}

// TestStaleCache: a process whose cache has an old copy of the recovery decides nothing by it.
func TestStaleCache(t *testing.T) {
	w := newWorld(t, newRecovery(nil))
	for range 60 {
		if strings.Contains(strings.Join(w.Writes, " "), "delete Machine") {
			break
		}
		w.reconcile(t)
		w.others(t)
		w.Clock.Step(operation.Poll)
		if len(w.recovery(t).Status.Steps) == 1 {
			w.Cache.Freeze(&fleetv1.ControlPlaneRecoveryList{})
			w.reconcile(t)
			w.others(t)
			w.Cache.Thaw()
		}
	}
	w.run(t, 30)
	w.recovered(t, "after stale reads")
}
