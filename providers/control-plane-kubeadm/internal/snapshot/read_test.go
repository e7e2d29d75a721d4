package snapshot_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// read is what Read returns, in names.
type read struct {
	Cluster           string
	Machines, Orphans []string
	// Created are the objects that Machines were created from.
	Created []string
}

// testMachine is the kind of infrastructure machines.
func testMachine() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1", Kind: "TestMachine"}
}

func TestRead(t *testing.T) {
	machine := func(name string, age time.Duration, owner types.UID) *clusterv1.Machine {
		m := kcptest.Machine(name, owner)
		m.CreationTimestamp = metav1.NewTime(object.Now().Add(-age))
		m.Spec.Bootstrap.ConfigRef = *object.Reference(snapshot.ConfigKind(), name)
		m.Spec.InfrastructureRef = *object.Reference(testMachine(), name)
		return m
	}
	worker := machine("worker", 0, "")
	delete(worker.Labels, clusterv1.MachineControlPlaneLabel)
	objects := []client.Object{
		kcptest.Build().Cluster(),
		machine("young", 0, "cp-uid"), machine("b", time.Hour, "cp-uid"), machine("a", time.Hour, "cp-uid"),
		machine("orphan", 0, ""), machine("foreign", 0, "other"), worker,
		&bootstrapv1.KubeadmConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b"}}, kcptest.Build().Provided(testMachine(), "b", nil),
		object.CRD(testMachine()),
	}
	all := read{Cluster: "c", Machines: []string{"a", "b", "young"}, Orphans: []string{"orphan"}, Created: []string{"*v1beta2.KubeadmConfig b", "*unstructured.Unstructured b"}}
	deleting := all
	deleting.Created = nil
	cases := []struct {
		reason string
		change func(*kcptest.World)
		want   read
	}{
		{reason: "Machines are sorted by age", change: func(*kcptest.World) {}, want: all},
		{reason: "no Cluster owns the control plane yet", change: func(w *kcptest.World) { w.KCP.OwnerReferences = nil }},
		{reason: "the Cluster no longer exists", change: func(w *kcptest.World) { w.KCP.OwnerReferences[0].Name = "removed" }},
		{reason: "a control plane that is being deleted does not need what its Machines were created from", want: deleting, change: func(w *kcptest.World) {
			w.KCP.DeletionTimestamp = &metav1.Time{Time: object.Now()}
		}},
		{reason: "the Cluster was removed by force before the control plane", want: deleting, change: func(w *kcptest.World) {
			w.KCP.OwnerReferences, w.KCP.DeletionTimestamp = nil, &metav1.Time{Time: object.Now()}
			w.KCP.Labels = map[string]string{clusterv1.ClusterNameLabel: "c"}
		}},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			w := kcptest.New(t, objects...)
			w.KCP.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(w.Cluster, clusterv1.GroupVersion.WithKind("Cluster"))}
			tc.change(w)
			cp, err := snapshot.Reader{Client: w.Client, External: w.External, Clock: w.Clock}.Read(t.Context(), w.KCP)
			if err != nil {
				t.Fatal(err)
			}
			got := read{}
			if cp.Cluster != nil {
				got.Cluster = cp.Cluster.Name
			}
			for _, m := range cp.Machines {
				got.Machines = append(got.Machines, m.Name)
				for _, obj := range m.CreatedFrom() {
					got.Created = append(got.Created, fmt.Sprintf("%T %s", obj, obj.GetName()))
				}
			}
			for _, m := range cp.Orphans {
				got.Orphans = append(got.Orphans, m.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
