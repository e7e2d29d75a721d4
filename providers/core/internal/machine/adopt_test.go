package machine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestAdopt(t *testing.T) {
	byCluster := []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "c", UID: "cluster-c"}}
	set := []metav1.OwnerReference{*metav1.NewControllerRef(&metav1.ObjectMeta{Name: "set", UID: "uid-set"}, clusterv1.GroupVersion.WithKind("MachineSet"))}
	cases := map[string]struct {
		reason string
		labels map[string]string
		owners []metav1.OwnerReference
		want   []metav1.OwnerReference
	}{
		"Standalone":      {"the Cluster becomes its owner", nil, nil, byCluster},
		"StandaloneAgain": {"the Cluster is its owner already", nil, byCluster, byCluster},
		"Controlled":      {"it has a controller", nil, set, set},
		"OfSet":           {"a MachineSet is about to adopt it", map[string]string{clusterv1.MachineSetNameLabel: "set"}, nil, nil},
		"OfPool":          {"a MachinePool is about to adopt it", map[string]string{clusterv1.MachinePoolNameLabel: "pool"}, nil, nil},
		"OfControlPlane":  {"a control plane is about to adopt it", map[string]string{clusterv1.MachineControlPlaneNameLabel: "cp"}, nil, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := machine(func(m *clusterv1.Machine) { m.Labels, m.OwnerReferences = tc.labels, tc.owners })
			if _, err := newWorld(t).adopt(t.Context(), &scope{machine: m, cluster: build.Cluster()}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, m.OwnerReferences); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
			if m.Labels[clusterv1.ClusterNameLabel] != "c" || len(m.Finalizers) != 1 || m.Finalizers[0] != clusterv1.MachineFinalizer {
				t.Errorf("labels = %v, finalizers = %v; want the cluster name label and the finalizer", m.Labels, m.Finalizers)
			}
		})
	}
}
