package machineset

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/internal/step"
)

func TestRetire(t *testing.T) {
	for name, c := range map[string]struct {
		reason       string
		counted      int32 // by the last status
		cached, live int   // Machines that stay
		leaving      int   // Machines that are being deleted
		generation   string
		want         string
	}{
		"New":      {reason: "the first Machines have names of no generation"},
		"Complete": {reason: "nobody left", counted: 2, cached: 2, live: 2},
		"More":     {reason: "growing takes no names away", counted: 1, cached: 3, live: 3},
		"Leaving":  {reason: "one is being deleted", counted: 2, cached: 1, live: 1, leaving: 1, want: "1"},
		"Left":     {reason: "one is gone, and nobody saw it leave", counted: 2, cached: 1, live: 1, generation: "4", want: "5"},
		"All":      {reason: "the only one is gone", counted: 1, want: "1"},
		"Known":    {reason: "one that leaves is counted once", counted: 1, cached: 1, live: 1, leaving: 1, generation: "1", want: "1"},
		"Stale":    {reason: "the cache does not show one yet that is there: it would be made again under another name", counted: 2, cached: 1, live: 2},
		"Nonsense": {reason: "somebody wrote what is no number", counted: 1, generation: "x", want: "1"},
	} {
		t.Run(name, func(t *testing.T) {
			set := &clusterv1.MachineSet{
				ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s", UID: "uid"},
				Spec:       clusterv1.MachineSetSpec{ClusterName: "c"},
				Status:     clusterv1.MachineSetStatus{Replicas: c.counted},
			}
			if c.generation != "" {
				set.Annotations = map[string]string{generationAnnotation: c.generation}
			}
			scheme := runtime.NewScheme()
			if err := clusterv1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			live := fake.NewClientBuilder().WithScheme(scheme)
			s := &scope{set: set}
			for i := range max(c.cached, c.live) {
				m := machineOf(set, i)
				if i < c.live {
					live = live.WithObjects(m)
				}
				if i < c.cached {
					s.machines = append(s.machines, m)
				}
			}
			live = live.WithObjects(&clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "stranger", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}}})
			for i := range c.leaving {
				m := machineOf(set, 10+i)
				m.DeletionTimestamp, m.Finalizers = ptr.To(metav1.Now()), []string{clusterv1.MachineFinalizer}
				live, s.machines = live.WithObjects(m), append(s.machines, m)
			}
			controller := &Controller{Outside: step.Outside{Live: live.Build()}}
			if _, err := controller.retire(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, set.Annotations[generationAnnotation]); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

func machineOf(set *clusterv1.MachineSet, number int) *clusterv1.Machine {
	return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: set.Namespace, Name: fmt.Sprintf("m-%d", number), Labels: map[string]string{clusterv1.ClusterNameLabel: set.Spec.ClusterName},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, clusterv1.GroupVersion.WithKind("MachineSet"))},
	}}
}
