package ownership_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/ownership"
)

func TestInCluster(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	machine := func(namespace, name string, labels map[string]string) client.Object {
		return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
	}
	of := func(cluster string, more ...string) map[string]string {
		labels := map[string]string{clusterv1.ClusterNameLabel: cluster}
		for _, key := range more {
			labels[key] = ""
		}
		return labels
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		machine("ns", "worker", of("c")), machine("ns", "plane", of("c", clusterv1.MachineControlPlaneLabel)),
		machine("ns", "another-cluster", of("d")), machine("other", "another-namespace", of("c")), machine("ns", "unlabeled", nil),
	).Build()
	for _, tt := range []struct {
		reason string
		more   []client.ListOption
		want   []string
	}{
		{reason: "namespace and label select", want: []string{"plane", "worker"}},
		{reason: "other options select, too", more: []client.ListOption{client.HasLabels{clusterv1.MachineControlPlaneLabel}}, want: []string{"plane"}},
	} {
		for _, last := range []bool{false, true} {
			options := append([]client.ListOption{ownership.InCluster("ns", "c")}, tt.more...)
			if last {
				options = append(slices.Clip(tt.more), ownership.InCluster("ns", "c"))
			}
			list := &clusterv1.MachineList{}
			if err := reader.List(t.Context(), list, options...); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range list.Items {
				got = append(got, m.Name)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s: last %t, -want +got:\n%s", tt.reason, last, diff)
			}
		}
	}
}
