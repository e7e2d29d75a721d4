package snapshot_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// world returns three Machines of an initialized control plane. The API server has the same objects.
func world(t *testing.T) *kcptest.World {
	t.Helper()
	w, _ := kcptest.Three(t)
	w.Diverge()
	return w
}

// What the cache of the world lacks.
const (
	outdatedKCP     snapshot.Stale = "the latest KubeadmControlPlane cp"
	outdatedCluster snapshot.Stale = "the latest Cluster c"
)

func TestDecision(t *testing.T) {
	cases := []struct {
		reason string
		change func(*testing.T, *kcptest.World)
		want   snapshot.Stale
		reads  int
	}{
		{reason: "the cache is up to date", change: func(*testing.T, *kcptest.World) {}, reads: 3},
		{reason: "another control plane", change: func(_ *testing.T, w *kcptest.World) { w.LiveKCP.UID = "other" }, want: outdatedKCP, reads: 1},
		{reason: "a deleted control plane", change: func(_ *testing.T, w *kcptest.World) { w.LiveKCP.DeletionTimestamp = &metav1.Time{Time: object.Now()} }, want: outdatedKCP, reads: 1},
		{reason: "a paused control plane", change: func(_ *testing.T, w *kcptest.World) {
			metav1.SetMetaDataAnnotation(&w.LiveKCP.ObjectMeta, clusterv1.PausedAnnotation, "")
		}, want: outdatedKCP, reads: 1},
		{reason: "a paused Cluster", change: func(_ *testing.T, w *kcptest.World) { w.LiveCluster.Spec.Paused = ptr.To(true) }, want: outdatedCluster, reads: 2},
		{reason: "an initialized cluster", change: func(_ *testing.T, w *kcptest.World) {
			w.KCP.Status.Initialization.ControlPlaneInitialized = nil
		}, want: outdatedKCP, reads: 1},
		{reason: "another spec", change: func(_ *testing.T, w *kcptest.World) { w.LiveKCP.Spec.Version = "v1.31.0" }, want: outdatedKCP, reads: 1},
		{reason: "another remediation", change: func(_ *testing.T, w *kcptest.World) {
			metav1.SetMetaDataAnnotation(&w.LiveKCP.ObjectMeta, controlplanev1.RemediationInProgressAnnotation, "{}")
		}, want: outdatedKCP, reads: 1},
		{reason: "a new Machine", change: func(_ *testing.T, w *kcptest.World) { w.Machines = w.Machines[:2] }, want: "Machine c", reads: 3},
		{reason: "a Machine with the same name", change: func(_ *testing.T, w *kcptest.World) { w.Named("c").UID = "other" }, want: "Machine c", reads: 3},
		{reason: "a deleted Machine", change: func(t *testing.T, w *kcptest.World) { w.Deleted(t, "c") }, want: "that Machine c is being deleted", reads: 3},
		{reason: "a Machine that no longer exists", change: func(_ *testing.T, w *kcptest.World) {
			w.Machines = append(w.Machines, &snapshot.Machine{Machine: kcptest.Machine("d", "cp-uid")})
		}, want: "that Machine d is gone", reads: 3},
		{reason: "a Machine that could be adopted", change: func(t *testing.T, w *kcptest.World) { create(t, w, kcptest.Machine("d", "")) }, want: "Machine d", reads: 3},
		{reason: "a Machine of another control plane does not matter", change: func(t *testing.T, w *kcptest.World) { create(t, w, kcptest.Machine("d", "other")) }, reads: 3},
		{reason: "a worker does not matter", change: func(t *testing.T, w *kcptest.World) {
			worker := kcptest.Machine("d", "")
			delete(worker.Labels, clusterv1.MachineControlPlaneLabel)
			create(t, w, worker)
		}, reads: 3},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			w := world(t)
			tc.change(t, w)
			got, err := snapshot.LiveReader{Reader: w.Live}.Decision(t.Context(), w.ControlPlane)
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil || len(w.API.LiveReads) != tc.reads {
				t.Errorf("%d live reads, want %d; error %v; stale (-want +got):\n%s", len(w.API.LiveReads), tc.reads, err, diff)
			}
		})
	}
}

func create(t *testing.T, w *kcptest.World, m *clusterv1.Machine) {
	t.Helper()
	testenv.Must(t, w.API.Create(t.Context(), m))
}

func TestInitialization(t *testing.T) {
	type checker = func(snapshot.LiveReader, context.Context, *snapshot.ControlPlane) (snapshot.Stale, error)
	cases := []struct {
		reason string
		check  checker
		change func(*testing.T, *kcptest.World)
		want   snapshot.Stale
	}{
		{reason: "the cluster is not initialized", check: snapshot.LiveReader.Uninitialized, change: func(*testing.T, *kcptest.World) {}},
		{reason: "another Cluster", check: snapshot.LiveReader.Uninitialized, change: func(_ *testing.T, w *kcptest.World) { w.LiveCluster.UID = "other" }, want: outdatedCluster},
		{reason: "a deleted Cluster", check: snapshot.LiveReader.Uninitialized, change: func(_ *testing.T, w *kcptest.World) {
			w.LiveCluster.DeletionTimestamp = &metav1.Time{Time: object.Now()}
		}, want: outdatedCluster},
		{reason: "a paused Cluster", check: snapshot.LiveReader.Uninitialized, change: func(_ *testing.T, w *kcptest.World) { w.LiveCluster.Spec.Paused = ptr.To(true) }, want: outdatedCluster},
		{reason: "the Cluster is initialized", check: snapshot.LiveReader.Uninitialized, change: func(_ *testing.T, w *kcptest.World) {
			condition.Set(w.LiveCluster, condition.True(clusterv1.ControlPlaneInitializedV1Beta1Condition))
		}, want: outdatedCluster},
		{reason: "the control plane is initialized", check: snapshot.LiveReader.Uninitialized, change: func(_ *testing.T, w *kcptest.World) {
			w.LiveKCP.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
		}, want: outdatedKCP},
		{reason: "other Machines do not matter", check: snapshot.LiveReader.Uninitialized, change: func(_ *testing.T, w *kcptest.World) { w.Machines = w.Machines[:1] }},
		{reason: "another Machine may initialize it", check: snapshot.LiveReader.Initialization, change: func(_ *testing.T, w *kcptest.World) { w.Machines = w.Machines[:2] }, want: "Machine c"},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			w := world(t)
			w.KCP.Status.Initialization.ControlPlaneInitialized, w.LiveKCP.Status.Initialization.ControlPlaneInitialized = nil, ptr.To(false)
			tc.change(t, w)
			got, err := tc.check(snapshot.LiveReader{Reader: w.Live}, t.Context(), w.ControlPlane)
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("error %v; stale (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestStale(t *testing.T) {
	if err := snapshot.Stale("").Err(); err != nil {
		t.Errorf("error of a cache that is up to date: %v", err)
	}
	stale := snapshot.Stale("Machine m")
	if err := stale.Err(); !step.IsStale(err) {
		t.Errorf("error %v, want a stale one", err)
	}
	if wait := stale.Wait(); !wait.Ends() || wait.After() != snapshot.StaleRetry || wait.Waiting() != "the cache to show Machine m" {
		t.Errorf("wait %+v", wait)
	}
}
