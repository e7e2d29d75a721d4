package machine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// reconcile runs the whole controller once for Machine m-1.
func (w *world) reconcile(t *testing.T) {
	t.Helper()
	declared := w.declared()
	declared.Progress = nil // write everything at once
	if _, err := declared.Runner(w.Clients).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(machine())}); err != nil {
		t.Fatal(err)
	}
}

func everything() []client.Object {
	return []client.Object{
		build.Cluster(object.Initialized), machine(),
		config(fields{"status": fields{"ready": true, "dataSecretName": "s"}}),
		infraMachine(fields{"spec": fields{"providerID": id}, "status": fields{"ready": true}}),
	}
}

func TestReconcileWritesOnce(t *testing.T) {
	w := newWorld(t, everything()...)
	testenv.Must(t, w.workload.Client.Create(t.Context(), node(healthy)))
	w.reconcile(t)
	// The finalizer first, then the Node, then everything copied from the objects.
	want := []string{"patch Machine m-1", "patch Node node-1", "patch Machine m-1", "patch Machine/status m-1"}
	if diff := cmp.Diff(want, w.Writes); diff != "" {
		t.Errorf("one write of metadata and spec and one of status, -want +got:\n%s", diff)
	}
	m := machine()
	testenv.Must(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(m), m))
	if m.Status.Phase != string(clusterv1.MachinePhaseRunning) || m.Status.ObservedGeneration != 0 {
		t.Errorf("phase = %s at generation %d, want Running at 0: the first reports are held back", m.Status.Phase, m.Status.ObservedGeneration)
	}
	w.Writes = nil
	if w.reconcile(t); len(w.Writes) != 0 {
		t.Errorf("nothing changed, wrote %q", w.Writes)
	}
}

func TestPausedMachinesAreNotReconciled(t *testing.T) {
	paused := build.Cluster(object.Paused)
	for name, m := range map[string]*clusterv1.Machine{"NotDeleting": machine(), "Deleting": machine(deleting)} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, paused, m, infraMachine(nil))
			w.reconcile(t)
			w.reconcile(t)
			got := machine()
			testenv.Must(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(got), got))
			if !report.IsTrue(got, clusterv1.PausedCondition) || len(w.Writes) != 1 || len(got.GetConditions()) != 1 {
				t.Errorf("the Cluster is paused, which is all that is reported, once; wrote %q, conditions %v", w.Writes, got.GetConditions())
			}
		})
	}
}

func TestMachineWithoutCluster(t *testing.T) {
	t.Run("NotDeleting", func(t *testing.T) {
		w := newWorld(t, machine())
		w.reconcile(t)
		w.Writes = nil
		if w.reconcile(t); len(w.Writes) != 0 {
			t.Errorf("the Machine waits for its Cluster, wrote %q", w.Writes)
		}
	})
	t.Run("Deleting", func(t *testing.T) {
		w := newWorld(t, machine(withNode, deleting), infraMachine(nil), config(nil))
		for range 3 { // infrastructure, bootstrap config, the Machine
			w.reconcile(t)
		}
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(machine()), machine()); !apierrors.IsNotFound(err) {
			t.Errorf("err = %v, writes = %q; want the Machine to be deleted without its Cluster", err, w.Writes)
		}
	})
}

func TestDeletionOrder(t *testing.T) {
	w := newWorld(t, build.Cluster(), machine(named("cp-1"), object.ControlPlane), machine(withNode, deleting), infraMachine(nil), config(nil))
	testenv.Must(t, w.workload.Client.Create(t.Context(), node()))
	for range 3 {
		w.reconcile(t)
	}
	want := []string{
		"delete GenericMachine m-1", "patch Machine/status m-1",
		"delete GenericConfig m-1", "patch Machine/status m-1",
		"delete Node node-1", "patch Machine m-1", // the finalizer
	}
	if diff := cmp.Diff(want, w.Writes); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRequests(t *testing.T) {
	other := machine(named("other"), func(m *clusterv1.Machine) {
		m.Spec.ClusterName, m.Labels = "d", nil
		m.Spec.InfrastructureRef.Name, m.Spec.Bootstrap.ConfigRef = "other", clusterv1.ContractVersionedObjectReference{}
	})
	waiting := machine(named("waiting"), func(m *clusterv1.Machine) {
		m.Spec.InfrastructureRef.Name, m.Spec.Bootstrap.ConfigRef.Name = "waiting", "waiting"
	})
	w := newWorld(t, machine(withNode), waiting, other)
	key := (&scope{machine: machine()}).key()
	set := &clusterv1.MachineSet{}
	set.Namespace, set.Name = "default", "set"
	kubeconfig := pki.NewSecret(key, pki.Kubeconfig, nil, nil)
	cases := map[string]struct {
		reason string
		got    []reconcile.Request
		want   []string
	}{
		"Infrastructure": {"the Machine that refers to the object, even if that has no owner yet", w.follow.Requests(t.Context(), provided("GenericMachine", infrastructure, nil, nil)), []string{"m-1"}},
		"Config":         {"the Machine that refers to the config", w.follow.Requests(t.Context(), provided("GenericConfig", bootstrapping, nil, nil)), []string{"m-1"}},
		"OtherKind":      {"no Machine refers to this kind", w.follow.Requests(t.Context(), provided("OtherConfig", bootstrapping, nil, nil)), nil},
		"Cluster":        {"all Machines of the Cluster", w.ofCluster(t.Context(), build.Cluster()), []string{"m-1", "waiting"}},
		"Connection":     {"Machines that have or may have a Node", w.waitingFor(t.Context(), key), []string{"m-1"}},
		"Kubeconfig":     {"Machines that have or may have a Node", w.ofKubeconfig(t.Context(), kubeconfig), []string{"m-1"}},
		"Node":           {"the Machine with the provider ID", w.ofNode(t.Context(), key, node()), []string{"m-1"}},
		"Revision":       {"Machines with a Node, which may be outdated now", w.ofSet(t.Context(), set), []string{"m-1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, r := range tc.got {
				got = append(got, r.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPredicates(t *testing.T) {
	kubeconfig := pki.NewSecret((&scope{machine: machine()}).key(), pki.Kubeconfig, nil, nil)
	deleted := build.Cluster(func(c *clusterv1.Cluster) { now := machine(deleting).DeletionTimestamp; c.DeletionTimestamp = now })
	changed := func(from, to *clusterv1.Cluster) bool {
		return clusterEvents().Update(event.UpdateEvent{ObjectOld: from, ObjectNew: to})
	}
	cases := map[string]struct {
		reason    string
		got, want bool
	}{
		"ClusterCreated":  {"Machines may have waited for it", clusterEvents().Create(event.CreateEvent{Object: build.Cluster()}), true},
		"ClusterDeleting": {"drains can be skipped", changed(build.Cluster(), deleted), true},
		"Initialized":     {"workers can join", changed(build.Cluster(), build.Cluster(object.Initialized)), true},
		"Unpaused":        {"Machines are reconciled again", changed(build.Cluster(object.Paused), build.Cluster()), true},
		"Nothing":         {"Machines do not depend on the phase", changed(build.Cluster(), build.Cluster(func(c *clusterv1.Cluster) { c.Status.Phase = "x" })), false},
		"Kubeconfig":      {"a connection is possible", isKubeconfig().Create(event.CreateEvent{Object: kubeconfig}), true},
		"OtherSecret":     {"it is not a kubeconfig", isKubeconfig().Create(event.CreateEvent{Object: &corev1.Secret{}}), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.got != tc.want {
				t.Errorf("%s: got %v", tc.reason, tc.got)
			}
		})
	}
}
