package fence

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

var build = object.Builder{}

func TestDelete(t *testing.T) {
	for _, lost := range []bool{false, true} {
		m := build.Machine("m", object.ControlPlane, func(m *clusterv1.Machine) {
			m.Finalizers = []string{clusterv1.MachineFinalizer, "example.com/other"}
			m.Annotations = map[string]string{
				controlplanev1.PreTerminateHookCleanupAnnotation: "", clusterv1.ExcludeNodeDrainingAnnotation: "by a user",
			}
		})
		s := fakeapi.New(t, fakeapi.Options{Objects: []client.Object{m}})
		for range 2 {
			testenv.Must(t, s.Get(t.Context(), client.ObjectKeyFromObject(m), m), Delete(t.Context(), s.ForController(), m, lost))
		}
		testenv.Must(t, s.Get(t.Context(), client.ObjectKeyFromObject(m), m))
		if m.DeletionTimestamp.IsZero() {
			t.Error("it is not deleted")
		}
		want := map[string]string{clusterv1.ExcludeNodeDrainingAnnotation: "by a user", clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation: ""}
		if diff := cmp.Diff(want, m.Annotations); diff != "" {
			t.Errorf("annotations (-want +got):\n%s", diff)
		}
		finalizers := []string{clusterv1.MachineFinalizer, "example.com/other"}
		if lost {
			finalizers = finalizers[1:]
		}
		if diff := cmp.Diff(finalizers, m.Finalizers); diff != "" {
			t.Errorf("lost: %t: finalizers (-want +got):\n%s", lost, diff)
		}
	}
	gone := build.Machine("gone")
	if err := Delete(t.Context(), fakeapi.New(t, fakeapi.Options{}).ForController(), gone, true); err != nil {
		t.Errorf("a Machine that does not exist: %v", err)
	}
}

func TestObstacle(t *testing.T) {
	hook := func(name string) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) { metav1.SetMetaDataAnnotation(&m.ObjectMeta, name, "") }
	}
	deleting := func(m *clusterv1.Machine) {
		m.Status.Conditions = []metav1.Condition{{Type: clusterv1.DeletingCondition, Message: "* waits for InMemoryMachine m"}}
	}
	tests := []struct {
		reason string
		m      *clusterv1.Machine
		want   string
	}{
		{"nothing", build.Machine("m"), "m"},
		{"hooks of others are more than the condition", build.Machine("m", deleting,
			hook("pre-terminate.delete.hook.machine.cluster.x-k8s.io/b"), hook("pre-drain.delete.hook.machine.cluster.x-k8s.io/a")),
			"m (annotation pre-drain.delete.hook.machine.cluster.x-k8s.io/a, pre-terminate.delete.hook.machine.cluster.x-k8s.io/b " +
				"must be removed by its owner)"},
		{"the condition", build.Machine("m", deleting), "m (waits for InMemoryMachine m)"},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Obstacle(tc.m)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestOverdue(t *testing.T) {
	m := build.Machine("m")
	if Overdue(m, object.Now()) {
		t.Error("it is not deleted")
	}
	m.DeletionTimestamp = &metav1.Time{Time: object.Now()}
	if Overdue(m, object.Now().Add(LostAfter-time.Second)) || !Overdue(m, object.Now().Add(LostAfter)) {
		t.Error("it is overdue after another time than LostAfter")
	}
}
