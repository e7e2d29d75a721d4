package object_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

var server testenv.Server

func TestMain(m *testing.M) { server.Main(m) }

// A real API server accepts what the functions return.
func TestObjectsAreValid(t *testing.T) {
	e := server.Start(t, "providers/core/config/crd")
	kind := schema.GroupVersionKind{Group: "objects.example.com", Version: "v1", Kind: "ThingTemplate"}
	e.Install(t, object.CRD(kind, "v1alpha1"))
	c := e.NewClient(t, testenv.Scheme(t))
	build := object.Builder{Namespace: e.Namespace(t), ClusterName: "mine"}
	machine := build.Machine("m", object.ControlPlane, object.WithNode("n"), object.Complete)
	check := build.MachineHealthCheck("h", func(h *clusterv1.MachineHealthCheck) {
		h.Spec.Checks.UnhealthyNodeConditions = []clusterv1.UnhealthyNodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionFalse, TimeoutSeconds: ptr.To[int32](60),
		}}
	})
	for _, obj := range []client.Object{
		build.Cluster(object.Paused), machine, build.MachineSet("s", object.Complete), build.MachineDeployment("d", object.Complete),
		build.MachinePool("p", object.Complete), check,
		build.BootstrapData("m", "data"), build.Template(kind, "t"), object.ControlledBy(build.Provided(kind, "m", nil), machine), object.Node("n"),
	} {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Errorf("%T: %v", obj, err)
		}
		if obj.GetUID() == object.UID("Machine", "m") {
			t.Errorf("%T: the API server did not replace the UID", obj)
		}
	}
	object.Running(time.Now())(machine)
	if err := c.Status().Update(t.Context(), machine); err != nil {
		t.Errorf("the status: %v", err)
	}
	cluster := build.Cluster()
	testenv.Must(t, c.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster))
	object.InfrastructureReady(cluster)
	object.Initialized(cluster)
	if err := c.Status().Update(t.Context(), cluster); err != nil {
		t.Errorf("the Cluster's status: %v", err)
	}
}

func TestMeta(t *testing.T) {
	want := metav1.ObjectMeta{Namespace: "default", Name: "m", UID: "machine-m", Generation: 1, Labels: map[string]string{"cluster.x-k8s.io/cluster-name": "c"}}
	if diff := cmp.Diff(want, object.Builder{}.Machine("m").ObjectMeta); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestDeleting(t *testing.T) {
	at := metav1.NewTime(object.Now())
	type outcome struct {
		At         *metav1.Time
		Finalizers []string
	}
	build := object.Builder{}
	tests := []struct {
		reason string
		obj    client.Object
		want   string
	}{
		{"a Cluster has its finalizer", build.Cluster(object.Deleting), clusterv1.ClusterFinalizer},
		{"and so has a Machine", build.Machine("m", object.Deleting), clusterv1.MachineFinalizer},
		{"another one replaces it", build.Machine("m", func(m *clusterv1.Machine) { m.Finalizers = []string{"mine/x"} }, object.Deleting), "mine/x"},
		{"other kinds have one, too: without, they would be gone", build.MachineSet("s", object.Deleting), "test/deleting"},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			want := outcome{&at, []string{tc.want}}
			if diff := cmp.Diff(want, outcome{tc.obj.GetDeletionTimestamp(), tc.obj.GetFinalizers()}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
