package templates

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestDeletionChanges(t *testing.T) {
	object := func(change func(*clusterv1.MachineSet)) *clusterv1.MachineSet {
		set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{
			Finalizers: []string{clusterv1.MachineSetTopologyFinalizer},
			Labels:     map[string]string{clusterv1.ClusterTopologyOwnedLabel: "", clusterv1.WatchLabel: "a"},
		}}
		if change != nil {
			change(set)
		}
		return set
	}
	pause := func(set *clusterv1.MachineSet) { set.Annotations = map[string]string{clusterv1.PausedAnnotation: ""} }
	for name, tc := range map[string]struct {
		reason        string
		before, after func(*clusterv1.MachineSet)
		want          bool
	}{
		"Nothing":   {"the spec is no concern of theirs", nil, func(set *clusterv1.MachineSet) { set.Spec.Replicas = ptr.To[int32](2) }, false},
		"Deleting":  {"templates may have to be deleted", nil, func(set *clusterv1.MachineSet) { set.DeletionTimestamp = ptr.To(metav1.Now()) }, true},
		"Finalizer": {"it is added again", nil, func(set *clusterv1.MachineSet) { set.Finalizers = nil }, true},
		"Label":     {"another manager's object may be this one's now", nil, func(set *clusterv1.MachineSet) { set.Labels[clusterv1.WatchLabel] = "b" }, true},
		"Paused":    {"a paused object is not reconciled", nil, pause, false},
		"Unpaused": {"it is reconciled again, whatever else changes", pause, func(set *clusterv1.MachineSet) {
			set.Annotations = map[string]string{"other": ""}
		}, true},
		"Revision": {"annotations of others do not matter", nil, func(set *clusterv1.MachineSet) { set.Annotations = map[string]string{"other": ""} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := event.UpdateEvent{ObjectOld: object(tc.before), ObjectNew: object(tc.after)}
			if got := deletionChanges().Update(e); got != tc.want {
				t.Errorf("%s: selected is %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}
