package machinepool

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// TestMachinesInPlace changes the template: metadata and timeouts follow, the version does not, and what users set is kept. A
// Machine that lost its owner reference gets it back.
func TestMachinesInPlace(t *testing.T) {
	w := newStale(t)
	w.infraMachine("w-1")
	w.mustReconcile()
	before := w.machine("w-1")
	change(w, before, func(m *clusterv1.Machine) {
		m.Labels["users"], m.Spec.ProviderID, m.OwnerReferences = "label", "test:///w-1", nil
	})
	change(w, w.pool, func(p *clusterv1.MachinePool) {
		template := &p.Spec.Template
		template.Labels, template.Annotations = map[string]string{"zone": "a"}, map[string]string{"note": "new"}
		template.Spec.Version, template.Spec.Deletion = "v1.36.3", clusterv1.MachineDeletionSpec{}
		template.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "Checked"}}
	})
	w.mustReconcile()
	type outcome struct {
		Labels, Annotations map[string]string
		Owners              []metav1.OwnerReference
		Finalizers          []string
		Spec                clusterv1.MachineSpec
	}
	want := outcome{
		Labels:      map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachinePoolNameLabel: "p", "zone": "a", "users": "label"},
		Annotations: map[string]string{"note": "new"}, Finalizers: []string{clusterv1.MachineFinalizer},
		Owners: []metav1.OwnerReference{*metav1.NewControllerRef(w.pool, clusterv1.GroupVersion.WithKind("MachinePool"))},
		Spec: clusterv1.MachineSpec{
			ClusterName: "c", Version: "v1.35.4", ProviderID: "test:///w-1", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("")},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: machineKind.GroupVersion().Group, Kind: machineKind.Kind, Name: "w-1"},
			ReadinessGates:    []clusterv1.MachineReadinessGate{{ConditionType: "Checked"}},
		},
	}
	m := w.machine("w-1")
	if diff := cmp.Diff(want, outcome{m.Labels, m.Annotations, m.OwnerReferences, m.Finalizers, m.Spec}); diff != "" || m.UID != before.UID {
		t.Errorf("UID %s, was %s; -want +got:\n%s", m.UID, before.UID, diff)
	}
}

// TestMachinesHaveTheVersionOfTheirKubelet: the infrastructure decides which version a machine has.
func TestMachinesHaveTheVersionOfTheirKubelet(t *testing.T) {
	for _, tc := range []struct{ reason, kubelet, want string }{
		{"it reports another version", "v1.36.3", "v1.36.3"},
		{"a distribution adds to it", "v1.36.3-eks-5e0fdde", "v1.36.3-eks-5e0fdde"},
		{"it reports none yet", "", "v1.35.4"},
		{"what it reports is no version", "1.x", "v1.35.4"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newStale(t)
			w.infraMachine("w-1")
			w.mustReconcile()
			m := w.machine("w-1")
			m.Status.NodeInfo = &corev1.NodeSystemInfo{KubeletVersion: tc.kubelet}
			testenv.Must(t, w.Status().Update(t.Context(), m))
			w.mustReconcile()
			w.mustReconcile()
			if got := w.machine("w-1").Spec.Version; got != tc.want {
				t.Errorf("the version is %s, want %s", got, tc.want)
			}
		})
	}
}
