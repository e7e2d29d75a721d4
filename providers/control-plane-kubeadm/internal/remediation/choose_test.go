package remediation

import (
	"strings"
	"testing"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/health"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/membership"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// TestChoose checks which of several unhealthy Machines is remediated.
func TestChoose(t *testing.T) {
	fail := func(types ...clusterv1.ConditionType) func(*snapshot.Machine) {
		return func(m *snapshot.Machine) {
			for _, kind := range types {
				fails(m, kind)
			}
		}
	}
	marked := fail(clusterv1.MachineHealthCheckSucceededV1Beta1Condition, clusterv1.MachineOwnerRemediatedV1Beta1Condition)
	asked := func(m *snapshot.Machine) { m.Annotations[clusterv1.RemediateMachineAnnotation] = "" }
	nodeless := func(m *snapshot.Machine) { m.Status.NodeRef = clusterv1.MachineNodeReference{} }
	member, etcd := fail(controlplanev1.MachineEtcdMemberHealthyV1Beta1Condition), fail(controlplanev1.MachineEtcdPodHealthyV1Beta1Condition)
	server, scheduler := fail(controlplanev1.MachineAPIServerPodHealthyV1Beta1Condition), fail(controlplanev1.MachineSchedulerPodHealthyV1Beta1Condition)
	unlabeled := func(m *snapshot.Machine) {
		const t = controlplanev1.KubeadmControlPlaneMachineNodeKubeadmLabelsAndTaintsSetCondition
		m.SetConditions(append(m.GetConditions(), report.False(t, "NotSet", "")))
	}
	type changes map[string][]func(*snapshot.Machine)
	for name, tc := range map[string]struct {
		reason  string
		changes changes
		dead    string // its etcd member
		order   string
		want    string
	}{
		"None":      {reason: "no Machine is unhealthy"},
		"One":       {reason: "the unhealthy one", changes: changes{"b": {marked}}, order: "b", want: "b"},
		"Oldest":    {reason: "the oldest of equal ones", changes: changes{"b": {marked}, "a": {marked}}, order: "a b", want: "a"},
		"Asked":     {reason: "users come first", changes: changes{"a": {marked, member}, "b": {marked, asked}}, order: "b a", want: "b"},
		"Nodeless":  {reason: "then those without a Node", changes: changes{"a": {marked, member}, "b": {marked, nodeless}}, order: "b a", want: "b"},
		"Member":    {reason: "then those whose etcd member fails", changes: changes{"a": {marked, etcd}, "b": {marked, member}}, order: "b a", want: "b"},
		"Etcd":      {reason: "its Pod before the API server", changes: changes{"a": {marked, server}, "b": {marked, etcd}}, order: "b a", want: "b"},
		"Server":    {reason: "the API server before the scheduler", changes: changes{"a": {marked, scheduler}, "b": {marked, server}}, order: "b a", want: "b"},
		"Labels":    {reason: "at last those whose Node has not the labels and taints of a control plane", changes: changes{"a": {marked}, "b": {marked, unlabeled}}, order: "b a", want: "b"},
		"Scheduler": {reason: "the scheduler before those", changes: changes{"a": {marked, unlabeled}, "b": {marked, scheduler}}, order: "b a", want: "b"},
		"Safe": {
			reason:  "a Machine whose removal would cost the quorum does not keep another one from being replaced",
			changes: changes{"a": {marked, asked}, "b": {marked}}, dead: "b", order: "a b", want: "b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, f := kcptest.Three(t)
			if tc.dead != "" {
				f.Members[tc.dead] = false
			}
			observed, err := health.Observe(t.Context(), w.ControlPlane, f)
			if err != nil {
				t.Fatal(err)
			}
			for machine, all := range tc.changes {
				for _, change := range all {
					change(w.Named(machine))
				}
			}
			var order []string
			all := candidates(w.ControlPlane, nil)
			for _, m := range all {
				order = append(order, m.Name)
			}
			got := ""
			state := membership.State{ControlPlane: w.ControlPlane, Workload: f, Observed: observed}
			if m, _ := choose(t.Context(), state, all, nil, object.Now()); m != nil {
				got = m.Name
			}
			if strings.Join(order, " ") != tc.order || got != tc.want {
				t.Errorf("%s: order %q, chosen %q; want %q, %q", tc.reason, order, got, tc.order, tc.want)
			}
		})
	}
}
