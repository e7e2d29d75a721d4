package recovery

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/operation"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

var build = object.Builder{ClusterName: "prod"}

// world has a Cluster prod with three control plane machines. Only that of Machine b runs, unless a test says otherwise. Its other controllers
// act between reconciles: see others.
type world struct {
	*fakeapi.Server
	runner *step.Runner[*fleetv1.ControlPlaneRecovery]
	// dead are the Machines without power, mute those whose infrastructure provider does not answer.
	dead, mute map[string]bool
	// heldBack is whether the controller of the control plane does not answer.
	heldBack bool
	// forced is how often etcd was made the only member, fails the error of the provider that does it.
	forced int
	fails  string
	// unreachable is whether the workload cluster does not respond; nodes are its Nodes.
	unreachable bool
	nodes       map[string]bool
	// unsafe are violations of the order of steps.
	unsafe []string
}

func newRecovery(change func(*fleetv1.ControlPlaneRecovery)) *fleetv1.ControlPlaneRecovery {
	r := &fleetv1.ControlPlaneRecovery{ObjectMeta: build.Meta(fleetv1.ControlPlaneRecoveryKind, "r"), Spec: fleetv1.ControlPlaneRecoverySpec{
		ClusterName: "prod", Survivor: "b", LostMachines: []string{"a", "c"}, Confirm: "prod/b", MinimumLossSeconds: ptr.To[int32](0),
	}}
	r.CreationTimestamp = metav1.NewTime(object.Now())
	if change != nil {
		change(r)
	}
	return r
}

func newWorld(t *testing.T, r *fleetv1.ControlPlaneRecovery) *world {
	t.Helper()
	cluster := build.Cluster(object.Initialized, func(c *clusterv1.Cluster) {
		c.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{
			APIGroup: controlplanev1.GroupVersion.Group, Kind: kubeadmControlPlane, Name: "plane",
		}
	})
	objects := []client.Object{cluster, r, &controlplanev1.KubeadmControlPlane{ObjectMeta: build.Meta(kubeadmControlPlane, "plane")}}
	nodes := map[string]bool{"worker": true}
	for _, name := range []string{"a", "b", "c"} {
		m := build.Machine(name, object.ControlPlane, func(m *clusterv1.Machine) {
			m.Finalizers = []string{clusterv1.MachineFinalizer}
			m.Annotations = map[string]string{controlplanev1.PreTerminateHookCleanupAnnotation: ""}
			m.Status.NodeRef.Name = "node-" + name
			m.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
				APIGroup: inmemoryv1.GroupVersion.Group, Kind: "InMemoryMachine", Name: name,
			}
		})
		nodes["node-"+name] = true
		objects = append(objects, m, &inmemoryv1.InMemoryMachine{ObjectMeta: build.Meta("InMemoryMachine", name)})
	}
	w := &world{
		Server: fakeapi.New(t, fakeapi.Options{
			Kinds:   []func(*runtime.Scheme) error{fleetv1.AddToScheme, controlplanev1.AddToScheme, inmemoryv1.AddToScheme},
			Objects: objects,
		}),
		dead: map[string]bool{"a": true, "c": true}, mute: map[string]bool{}, nodes: nodes,
	}
	w.restart()
	return w
}

// restart starts another process.
func (w *world) restart() {
	w.Cache = w.NewCache()
	c := New(w.ForController(), Options{Connect: func(context.Context, types.NamespacedName) (Workload, error) {
		if w.unreachable || w.forced == 0 {
			return nil, errors.New("connection refused")
		}
		return w, nil
	}})
	w.runner = c.declared().Runner(c.Clients)
}

// Members implements Workload.
func (*world) Members(_ context.Context, node string) ([]string, error) {
	return []string{strings.TrimPrefix(node, "node-")}, nil
}

// DeleteNode implements Workload.
func (w *world) DeleteNode(_ context.Context, name string) error {
	delete(w.nodes, name)
	return nil
}

// Close implements Workload.
func (*world) Close() {}

// others are the other controllers: of the control plane, of Machines, and of infrastructure.
func (w *world) others(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	plane := &controlplanev1.KubeadmControlPlane{}
	testenv.Must(t, w.Get(ctx, client.ObjectKey{Namespace: "default", Name: "plane"}, plane))
	op, err := fleetv1.OperationOf(plane)
	testenv.Must(t, err)
	held := op != nil && plane.Annotations[fleetv1.OperationObservedAnnotation] == op.Token()
	if op != nil && !held && !w.heldBack {
		plane.Annotations[fleetv1.OperationObservedAnnotation] = op.Token()
		testenv.Must(t, w.Update(ctx, plane))
	}
	infrastructure := &inmemoryv1.InMemoryMachineList{}
	testenv.Must(t, w.List(ctx, infrastructure))
	for i := range infrastructure.Items {
		w.answer(t, &infrastructure.Items[i], held)
	}
	list := &clusterv1.MachineList{}
	testenv.Must(t, w.List(ctx, list))
	for i := range list.Items {
		m := &list.Items[i]
		_, hook := m.Annotations[controlplanev1.PreTerminateHookCleanupAnnotation]
		if m.DeletionTimestamp.IsZero() || hook {
			continue
		}
		infra := &inmemoryv1.InMemoryMachine{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name}}
		if err := w.Delete(ctx, infra); err == nil {
			continue // The Machine follows next time.
		}
		m.Finalizers = nil
		testenv.Must(t, w.Update(ctx, m))
	}
}

// answer is the infrastructure provider.
func (w *world) answer(t *testing.T, obj *inmemoryv1.InMemoryMachine, held bool) {
	t.Helper()
	asked, err := fleetv1.EtcdCommandOf(obj)
	testenv.Must(t, err)
	if asked == nil || w.mute[obj.Name] {
		return
	}
	answer := fleetv1.EtcdAnswer{UID: asked.UID, Command: asked.Command, Member: &fleetv1.EtcdMemberState{
		ID: obj.Name, RaftIndex: 100, RaftTerm: 3, Revision: 90, Members: []string{"a", "b", "c"},
	}}
	switch {
	case w.dead[obj.Name]:
		answer.Member, answer.Error = nil, "the machine does not run"
	case asked.Command == fleetv1.EtcdCommandForceNewCluster && w.fails != "":
		answer.Error = w.fails
	case asked.Command == fleetv1.EtcdCommandForceNewCluster:
		for _, name := range []string{"a", "c"} {
			err := w.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &inmemoryv1.InMemoryMachine{})
			if !apierrors.IsNotFound(err) {
				w.unsafe = append(w.unsafe, "etcd was forced while the infrastructure of "+name+" existed")
			}
		}
		if !held {
			w.unsafe = append(w.unsafe, "etcd was forced while the control plane was not held")
		}
		w.forced++
		answer.Member.Leader, answer.Member.Members = obj.Name, []string{obj.Name}
	}
	testenv.Must(t, fleetv1.SetEtcdAnswer(obj, answer), w.Update(t.Context(), obj))
}

// reconcile reconciles once. Errors are those of injected faults.
func (w *world) reconcile(t *testing.T) {
	t.Helper()
	_, _ = w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(newRecovery(nil))})
}

func (w *world) recovery(t *testing.T) *fleetv1.ControlPlaneRecovery {
	t.Helper()
	r := newRecovery(nil)
	testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(r), r))
	return r
}

// said returns the condition Completed as "False Refused message".
func (w *world) said(t *testing.T) string {
	t.Helper()
	c := report.Get(w.recovery(t), fleetv1.OperationCompletedCondition)
	if c == nil {
		return "none"
	}
	return string(c.Status) + " " + c.Reason + " " + c.Message
}

// run reconciles, with the others, and time passing, until the recovery ends, or so many times.
func (w *world) run(t *testing.T, times int) {
	t.Helper()
	for range times {
		w.reconcile(t)
		w.others(t)
		w.Clock.Step(operation.Poll)
		if w.recovery(t).Ended() {
			return
		}
	}
}
