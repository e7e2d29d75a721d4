package topology

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/lifecycle"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/plan"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/upgrade"
	"sigs.k8s.io/cluster-api/sdk/report"
)

func TestReconciledReport(t *testing.T) {
	blocked := func(hook lifecycle.Hook) lifecycle.Outcome {
		var o lifecycle.Outcome
		o.Record(hook, lifecycle.Answer{RetryAfter: time.Second, Message: "later"})
		return o
	}
	upgrading := upgrade.Compute(upgrade.Input{Version: "v1.30.0", ControlPlane: upgrade.ControlPlane{Exists: true, Version: "v1.30.0", Upgrading: true}})
	no := func(reason, message string) metav1.Condition {
		return report.False("TopologyReconciled", reason, "%s", message)
	}
	for _, tt := range []struct {
		reason string
		plan   plan.Plan
		err    error
		want   metav1.Condition
	}{
		{reason: "all is applied", want: report.True("TopologyReconciled", "ReconcileSucceeded", "")},
		{reason: "an error", err: errors.New("no such template"), want: no("ReconcileFailed", "no such template")},
		{reason: "an error of the class", err: &plan.ClassNotReconciledError{Class: "quick", Reason: errors.New("it does not exist")},
			want: no("ClusterClassNotReconciled", "it does not exist")},
		{reason: "a hook holds the creation", plan: plan.Plan{Hooks: blocked(lifecycle.BeforeClusterCreate)},
			want: no("ClusterCreating", "Following hooks are blocking create: BeforeClusterCreate: later")},
		{reason: "the control plane upgrades", plan: plan.Plan{Versions: upgrading, ControlPlaneRef: clusterv1.ContractVersionedObjectReference{Kind: "KubeadmControlPlane"}},
			want: no("ClusterUpgrading", "Cluster is upgrading to v1.30.0\n  * KubeadmControlPlane upgrading to version v1.30.0")},
		{reason: "a hook holds what follows", plan: plan.Plan{Versions: upgrade.Plan{Version: "v1.30.0"}, Hooks: blocked(lifecycle.AfterControlPlaneUpgrade)},
			want: no("ClusterUpgrading", "Cluster is upgrading to v1.30.0\n  * Following hooks are blocking upgrade: AfterControlPlaneUpgrade: later")},
		{reason: "workers are created later", plan: plan.Plan{Versions: upgrade.Plan{Version: "v1.30.0", MachineDeployments: upgrade.Sequence{NameTaken: []string{"md"}}}},
			want: no("ClusterCreating", "MachineDeployment(s) for topologies md creation on hold until objects with the same name are deleted.")},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, reconciledReport(&tt.plan, tt.err)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestTopologyReconciledReport: both forms of the condition are written together, and follow a Cluster to its deletion.
func TestTopologyReconciledReport(t *testing.T) {
	w := newWorld(t)
	c := w.cluster("c")
	w.created(c)
	w.reconciled(c)
	current := report.Get(c, "TopologyReconciled")
	if current == nil || current.Status != metav1.ConditionTrue || current.ObservedGeneration == 0 {
		t.Errorf("after its creation: %v", current)
	}
	changed(w, c, func(c *clusterv1.Cluster) { c.Finalizers = append(c.Finalizers, "test/x") })
	if err := w.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
		t.Fatal(err)
	}
	w.waitCached(c)
	w.reconciled(c)
	want := report.False("TopologyReconciled", "Deleting", "Cluster is deleting")
	if current = report.Get(c, "TopologyReconciled"); current == nil || current.Reason != want.Reason || current.Message != want.Message {
		t.Errorf("in deletion: %v", current)
	}
}
