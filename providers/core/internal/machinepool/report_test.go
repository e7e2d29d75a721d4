package machinepool

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// TestReports is what a MachinePool of three replicas reports about itself.
func TestReports(t *testing.T) {
	notYet := report.Unknown("Available", "WaitingForAvailableReplicasSet", "Waiting for status.availableReplicas set")
	noUp, noDown := report.False("ScalingUp", "NotScalingUp", ""), report.False("ScalingDown", "NotScalingDown", "")
	notDeleting := report.False("Deleting", "NotDeleting", "")
	provided := report.True("BootstrapConfigReady", "DataSecretProvided", "")
	nodes := func(n int, version string) []*corev1.Node {
		var all []*corev1.Node
		for range n {
			all = append(all, &corev1.Node{Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: version}}})
		}
		return all
	}
	for _, tt := range []struct {
		reason    string
		change    func(p *clusterv1.MachinePool)
		available metav1.Condition
		others    []metav1.Condition
		upToDate  *int32
	}{
		{
			"nothing is known yet", func(*clusterv1.MachinePool) {}, notYet,
			[]metav1.Condition{report.True("ScalingUp", "ScalingUp", "Scaling up from 0 to 3 replicas"), noDown, notDeleting}, nil,
		},
		{
			"one Node is missing, and one is old", func(p *clusterv1.MachinePool) {
				p.Status.Replicas = ptr.To[int32](3)
				setCounts(p, 0, 2, append(nodes(1, "v1.30.0"), nodes(1, "v1.31.0")...))
			}, report.False("Available", "NotAvailable", "2 available replicas, at least 3 required"),
			[]metav1.Condition{noUp, noDown, notDeleting}, ptr.To[int32](1),
		},
		{
			"one Node too many is no harm", func(p *clusterv1.MachinePool) {
				p.Status.Replicas = ptr.To[int32](4)
				setCounts(p, 0, 4, nodes(4, "v1.31.0"))
			}, report.True("Available", "Available", ""),
			[]metav1.Condition{noUp, report.True("ScalingDown", "ScalingDown", "Scaling down from 4 to 3 replicas"), notDeleting},
			ptr.To[int32](4),
		},
		{
			"a deletion makes all of them too many", func(p *clusterv1.MachinePool) {
				p.DeletionTimestamp = ptr.To(metav1.Now())
				p.Status.Replicas = ptr.To[int32](2)
			}, report.False("Available", "NotAvailable", "Deletion in progress"),
			[]metav1.Condition{
				noUp, report.True("ScalingDown", "ScalingDown", "Scaling down from 2 to 0 replicas"),
				report.True("Deleting", "Deleting", "Deleting 2 Machines"),
			}, nil,
		},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			p := &clusterv1.MachinePool{}
			p.Spec.Replicas, p.Spec.Template.Spec.Version = ptr.To[int32](3), "v1.31.0"
			tt.change(p)
			want := append(append([]metav1.Condition{tt.available}, tt.others...), provided)
			if diff := cmp.Diff(want, reports(&scope{pool: p})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(tt.upToDate, p.Status.UpToDateReplicas); diff != "" {
				t.Errorf("up to date, -want +got:\n%s", diff)
			}
		})
	}
}
