package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// reconcile runs the whole controller once for Cluster c.
func (w *world) reconcile(t *testing.T) {
	t.Helper()
	declared := w.declared()
	declared.Progress = nil // write everything at once
	if _, err := declared.Runner(w.Clients).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(build.Cluster())}); err != nil {
		t.Fatal(err)
	}
}

// release removes the finalizers of a provider's object, like its controller.
func (w *world) release(t *testing.T, obj *unstructured.Unstructured) {
	t.Helper()
	testenv.Must(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
	obj.SetFinalizers(nil)
	testenv.Must(t, w.Client.Update(t.Context(), obj))
}

// vanish deletes an object like another client.
func (w *world) vanish(t *testing.T, obj client.Object) {
	t.Helper()
	testenv.Must(t, w.Client.Delete(t.Context(), obj))
}

func TestReconcileWritesOnce(t *testing.T) {
	w := newWorld(t, build.Cluster(withInfra, withPlane),
		infraCluster(fields{"spec": fields{"controlPlaneEndpoint": fields{"host": "h", "port": int64(6443)}}, "status": fields{"ready": true}}),
		controlPlaneObject(fields{"status": fields{"initialized": true, "ready": true}}))
	w.reconcile(t)
	// The finalizer first, then everything copied from the objects.
	if diff := cmp.Diff([]string{"patch Cluster c", "patch Cluster c", "patch Cluster/status c"}, w.Writes); diff != "" {
		t.Errorf("one write of metadata and spec and one of status, -want +got:\n%s", diff)
	}
	c := build.Cluster()
	testenv.Must(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(c), c))
	if c.Status.Phase != string(clusterv1.ClusterPhaseProvisioned) || c.Status.ObservedGeneration != 0 {
		t.Errorf("phase = %s at generation %d, want Provisioned at 0: the first reports are held back", c.Status.Phase, c.Status.ObservedGeneration)
	}
	want := []string{
		"Normal InfrastructureReady Cluster c InfrastructureReady is now True",
		"Normal ControlPlaneReady Cluster c ControlPlaneReady is now True",
		"Normal Provisioned Cluster c is Provisioned",
	}
	if diff := cmp.Diff(want, w.Events()); diff != "" {
		t.Errorf("events, -want +got:\n%s", diff)
	}
	w.Writes = nil
	if w.reconcile(t); len(w.Writes) != 0 {
		t.Errorf("nothing changed, wrote %q", w.Writes)
	}
}

func TestEventsOfLostReadiness(t *testing.T) {
	wasReady := func(c *clusterv1.Cluster) {
		c.Status.Initialization.InfrastructureProvisioned, c.Status.Initialization.ControlPlaneInitialized = ptr.To(true), ptr.To(true)
		c.Status.SetTypedPhase(clusterv1.ClusterPhaseProvisioning)
	}
	w := newWorld(t, build.Cluster(withInfra, withPlane, wasReady), infraCluster(nil), controlPlaneObject(nil))
	w.reconcile(t)
	want := []string{
		"Normal InfrastructureReady Cluster c InfrastructureReady is now False",
		"Normal ControlPlaneReady Cluster c ControlPlaneReady is now False",
	}
	if diff := cmp.Diff(want, w.Events()); diff != "" {
		t.Errorf("events, -want +got:\n%s", diff)
	}
}

func TestDeletionOrder(t *testing.T) {
	infra, plane := infraCluster(nil), controlPlaneObject(nil)
	worker := owned(build.MachineDeployment("md"))
	ofPlane := controlPlaneMachine("cp")
	ofPlane.OwnerReferences = nil
	w := newWorld(t, build.Cluster(withInfra, withPlane, object.Deleting), infra, plane, worker, ofPlane)
	deletions := func() []string {
		var out []string
		for _, write := range w.Writes {
			if write != "patch Cluster/status c" {
				out = append(out, write)
			}
		}
		w.Writes = nil
		return out
	}
	stages := []struct {
		reason string
		then   func()
		want   []string
	}{
		{"workers are deleted first", func() {}, []string{"delete MachineDeployment md"}},
		{"then the control plane, which deletes its Machines", func() {}, []string{"delete GenericControlPlane c-plane"}},
		{"then it waits for the last of them", func() { w.release(t, plane) }, nil},
		{"then the infrastructure", func() { w.vanish(t, ofPlane) }, []string{"delete GenericCluster c-infra"}},
		{"then the Cluster", func() { w.release(t, infra) }, []string{"patch Cluster c"}},
	}
	for _, stage := range stages {
		stage.then()
		w.reconcile(t)
		if diff := cmp.Diff(stage.want, deletions()); diff != "" {
			t.Fatalf("%s, -want +got:\n%s", stage.reason, diff)
		}
	}
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(build.Cluster()), build.Cluster()); !apierrors.IsNotFound(err) || len(w.forgotten) == 0 {
		t.Errorf("err = %v, forgotten = %v; want the Cluster gone and its connection closed", err, w.forgotten)
	}
}

func TestStarted(t *testing.T) {
	cases := map[string]struct {
		reason  string
		cluster *clusterv1.Cluster
		want    bool
	}{
		"NoClass":   {"the user sets the references", build.Cluster(), true},
		"Class":     {"the topology controller has not set both references", build.Cluster(withTopology, withInfra), false},
		"ClassDone": {"the topology controller has set both references", build.Cluster(withTopology, withInfra, withPlane), true},
		"Deleting":  {"deletion does not wait for the topology controller", build.Cluster(withTopology, object.Deleting), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := isStarted(tc.cluster); got != tc.want {
				t.Errorf("%s: got %v", tc.reason, got)
			}
			w := newWorld(t, tc.cluster)
			w.reconcile(t)
			acted := false
			for _, write := range w.Writes {
				acted = acted || write == "patch Cluster c"
			}
			if acted != tc.want {
				t.Errorf("%s: wrote %q", tc.reason, w.Writes)
			}
		})
	}
}

func TestEventsOfClusters(t *testing.T) {
	w := newWorld(t, build.Cluster(withInfra, withPlane))
	unowned := infraCluster(nil)
	unowned.SetOwnerReferences(nil)
	unowned.SetLabels(nil)
	if got := w.follow.Requests(t.Context(), unowned); len(got) != 1 || got[0].Name != "c" {
		t.Errorf("requests = %v; want the Cluster that refers to an object without owner", got)
	}
	if got := w.follow.Requests(t.Context(), provided(infra, "c-plane", nil)); len(got) != 0 {
		t.Errorf("requests = %v; want none for an object of another kind", got)
	}
	up := event.UpdateEvent{ObjectOld: controlPlaneMachine("m"), ObjectNew: controlPlaneMachine("m", withNode)}
	if !machineChanges().Update(up) || machineChanges().Update(event.UpdateEvent{ObjectOld: up.ObjectNew, ObjectNew: up.ObjectNew}) {
		t.Error("a control plane Machine triggers a reconcile when it gets a Node, and only then")
	}
	if !machineChanges().Delete(event.DeleteEvent{Object: controlPlaneMachine("m")}) {
		t.Error("a deleted Machine triggers a reconcile")
	}
}
