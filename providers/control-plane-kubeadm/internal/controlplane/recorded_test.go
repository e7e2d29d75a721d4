package controlplane

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/credentials"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/replicas"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv/recorded"
)

// TestRecordedControlPlanes: conditions and counters follow from the Machines as v1.14.0 wrote them.
func TestRecordedControlPlanes(t *testing.T) {
	ignored := cmpopts.IgnoreFields(metav1.Condition{}, "ObservedGeneration", "LastTransitionTime")
	// In these states, v1.14 waits for its checks, which here depend on the workload cluster, or Machines changed while they were recorded.
	inMotion := map[string][]string{
		"1-creating": {clusterv1.ScalingUpCondition, clusterv1.MachinesReadyCondition},
		"3-upgrading": {clusterv1.ScalingDownCondition, clusterv1.MachinesReadyCondition, "EtcdClusterHealthy",
			"ControlPlaneComponentsHealthy", clusterv1.RollingOutCondition, clusterv1.MachinesUpToDateCondition, clusterv1.AvailableCondition},
		"5-scaling": {clusterv1.MachinesReadyCondition, clusterv1.AvailableCondition},
	}
	for _, state := range recorded.States(t, "../../../..") {
		kcp := state.ControlPlane
		cp := &snapshot.ControlPlane{KCP: kcp, Cluster: state.Cluster}
		var newest metav1.Time
		var machines []*clusterv1.Machine
		for _, m := range state.Machines {
			if _, ok := m.Labels[clusterv1.MachineControlPlaneLabel]; ok {
				cp.Machines, machines = append(cp.Machines, &snapshot.Machine{Machine: m}), append(machines, m)
				if newest.Before(&m.CreationTimestamp) {
					newest = m.CreationTimestamp
				}
			}
		}
		c := &Controller{
			Clients:     step.Clients{Clock: clocktesting.NewFakePassiveClock(newest.Time)},
			credentials: &credentials.Provider{},
		}
		skipped := func(c metav1.Condition) bool {
			return c.Type == clusterv1.PausedCondition || slices.Contains(inMotion[state.Name], c.Type) // The engine adds Paused.
		}
		want := slices.DeleteFunc(slices.Clone(kcp.Status.Conditions), skipped)
		got := slices.DeleteFunc(c.reports(&scope{ControlPlane: cp}), skipped)
		report.Sort(got)
		if diff := cmp.Diff(want, got, ignored); diff != "" {
			t.Errorf("%s: -recorded +ours:\n%s", state.Name, diff)
		}
		if inMotion[state.Name] != nil {
			continue
		}
		n, is := replicas.Count(machines), kcp.Status
		ours := []int32{n.Ready, n.Available, n.UpToDate}
		if diff := cmp.Diff([]int32{*is.ReadyReplicas, *is.AvailableReplicas, *is.UpToDateReplicas}, ours); diff != "" {
			t.Errorf("%s: counters -recorded +ours:\n%s", state.Name, diff)
		}
		if diff := cmp.Diff(kcp.Status.Versions, replicas.VersionsOf(machines).Status()); diff != "" {
			t.Errorf("%s: versions -recorded +ours:\n%s", state.Name, diff)
		}
	}
}
