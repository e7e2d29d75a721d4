package watch

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestInfrastructure(t *testing.T) {
	cluster := func(ref clusterv1.ContractVersionedObjectReference) client.Object {
		return &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}, Spec: clusterv1.ClusterSpec{InfrastructureRef: ref}}
	}
	refers := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}}
	refers.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{Kind: "Rack", Name: "m"}
	tests := []struct {
		reason string
		obj    client.Object
		want   []reconcile.Request
	}{
		{"a Cluster's infrastructure", cluster(clusterv1.ContractVersionedObjectReference{Kind: "Rack", Name: "c"}), request("c")},
		{"a Machine's infrastructure", refers, request("m")},
		{"another provider's", cluster(clusterv1.ContractVersionedObjectReference{Kind: "Cloud", Name: "c"}), nil},
		{"a Cluster without infrastructure", cluster(clusterv1.ContractVersionedObjectReference{}), nil},
		{"an object of another kind", &corev1.Secret{}, nil},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Infrastructure("Rack")(t.Context(), tc.obj)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func request(name string) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}}}
}

func TestLabeled(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	a, b := machine("a", "blue"), machine("b", "green")
	a.Labels, b.Labels = map[string]string{clusterv1.ClusterNameLabel: "blue"}, map[string]string{clusterv1.ClusterNameLabel: "green"}
	list := &clusterv1.MachineList{}
	concerns := Labeled(fake.NewClientBuilder().WithScheme(scheme).WithObjects(a, b).Build(), list)
	blue := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "blue"}}
	for range 2 {
		if diff := cmp.Diff(request("a"), concerns(t.Context(), blue)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	if len(list.Items) > 0 {
		t.Error("events that are handled at the same time would share the list")
	}
}

func TestBootstrapped(t *testing.T) {
	waits, has := machine("a", "c"), machine("a", "c")
	has.Spec.Bootstrap.DataSecretName = ptr.To("data")
	p := Bootstrapped()
	got := []bool{
		p.Create(event.CreateEvent{Object: waits}), p.Update(event.UpdateEvent{ObjectOld: waits, ObjectNew: has}),
		p.Update(event.UpdateEvent{ObjectOld: has, ObjectNew: has}), p.Delete(event.DeleteEvent{Object: has}),
	}
	if diff := cmp.Diff([]bool{true, true, false, false}, got); diff != "" {
		t.Errorf("new, gets its data, has its data, deleted (-want +got):\n%s", diff)
	}
}
