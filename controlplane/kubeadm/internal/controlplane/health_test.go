package controlplane

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
)

// pod is a Pod in a phase, ready or not.
func pod(phase corev1.PodPhase, ready bool, waiting string) *corev1.Pod {
	p := &corev1.Pod{Status: corev1.PodStatus{Phase: phase}}
	if ready {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	if waiting != "" {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: waiting}}}}
	}
	return p
}

func TestPodConditions(t *testing.T) {
	const kind = controlplanev1.MachineSchedulerPodHealthyCondition
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	away := node.DeepCopy()
	away.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}}
	const info, bad = clusterv1.ConditionSeverityInfo, clusterv1.ConditionSeverityError
	cases := []struct {
		reason string
		node   *corev1.Node
		pod    *corev1.Pod
		want   clusterv1.Condition
	}{
		{"ready", node, pod(corev1.PodRunning, true, ""), condition.True(kind)},
		{"starting", node, pod(corev1.PodPending, false, "ContainerCreating"),
			condition.False(kind, info, controlplanev1.PodProvisioningReason, "Pod kube-scheduler-n is not ready yet")},
		{"running, probes still fail", node, pod(corev1.PodRunning, false, ""),
			condition.False(kind, info, controlplanev1.PodProvisioningReason, "Pod kube-scheduler-n is not ready yet")},
		{"crashing", node, pod(corev1.PodRunning, false, "CrashLoopBackOff"),
			condition.False(kind, bad, controlplanev1.PodFailedReason, "Pod kube-scheduler-n: CrashLoopBackOff")},
		{"whatever the reason, it is told in short", node, pod(corev1.PodRunning, false, strings.Repeat("x", 1<<20)),
			condition.False(kind, bad, controlplanev1.PodFailedReason, "Pod kube-scheduler-n: %s...", strings.Repeat("x", 200))},
		{"ended", node, pod(corev1.PodSucceeded, true, ""), condition.False(kind, bad, controlplanev1.PodFailedReason, "Pod kube-scheduler-n has ended")},
		{"missing", node, nil, condition.False(kind, bad, controlplanev1.PodMissingReason, "Pod kube-scheduler-n does not exist")},
		{"Node unreachable", away, pod(corev1.PodRunning, true, ""), condition.Unknown(kind, controlplanev1.PodInspectionFailedReason, "Node n is unreachable")},
		{"no Node", nil, nil, condition.False(kind, bad, controlplanev1.PodFailedReason, "Node n does not exist")},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			o := &Observation{Nodes: map[string]*corev1.Node{}, Pods: map[string]*corev1.Pod{}}
			if tc.node != nil {
				o.Nodes["n"] = tc.node
			}
			if tc.pod != nil {
				o.Pods["kube-scheduler-n"] = tc.pod
			}
			got := podConditions(o, "n", true)
			if len(got) != 4 {
				t.Fatalf("%d conditions, want one for each component", len(got))
			}
			if diff := cmp.Diff(tc.want, got[2]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestMemberCondition(t *testing.T) {
	ab := []string{"a", "b"}
	a := EtcdMember{Node: "a", ClusterID: 1, Members: ab}
	b := EtcdMember{Node: "b", ClusterID: 1, Members: ab}
	other, alone, foreign, full := b, a, b, a
	other.Members = []string{"a", "b", "c"}
	alone.Members = []string{"b"}
	foreign.ClusterID = 2
	full.Alarms = []string{"NOSPACE"}
	const unknown, unhealthy = controlplanev1.EtcdMemberInspectionFailedReason, controlplanev1.EtcdMemberUnhealthyReason
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	away := node.DeepCopy()
	away.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}}
	up, starting := pod(corev1.PodRunning, true, ""), pod(corev1.PodPending, false, "ContainerCreating")
	cases := []struct {
		reason string
		node   *corev1.Node
		pod    *corev1.Pod
		asked  []EtcdMember
		want   string
		status corev1.ConditionStatus
	}{
		{"all agree", node, up, []EtcdMember{a, b}, "", corev1.ConditionTrue},
		{"another one does not answer", node, up, []EtcdMember{a, {Node: "b", Err: errors.New("away")}}, "", corev1.ConditionTrue},
		{"it is starting", node, starting, []EtcdMember{b}, unknown, corev1.ConditionUnknown},
		{"no answer", node, up, []EtcdMember{{Node: "a", Err: errors.New("away")}, b}, unhealthy, corev1.ConditionFalse},
		{"no Node", nil, up, []EtcdMember{b}, unhealthy, corev1.ConditionFalse},
		{"the Node is unreachable", away, up, []EtcdMember{b}, unhealthy, corev1.ConditionFalse},
		{"no Pod", node, nil, []EtcdMember{b}, unhealthy, corev1.ConditionFalse},
		{"it crashes", node, pod(corev1.PodRunning, false, "CrashLoopBackOff"), []EtcdMember{b}, unhealthy, corev1.ConditionFalse},
		{"it has ended", node, pod(corev1.PodFailed, false, ""), []EtcdMember{b}, unhealthy, corev1.ConditionFalse},
		{"not a member", node, up, []EtcdMember{alone}, unhealthy, corev1.ConditionFalse},
		{"an alarm", node, up, []EtcdMember{full, b}, unhealthy, corev1.ConditionFalse},
		{"another list of members", node, up, []EtcdMember{a, other}, unhealthy, corev1.ConditionFalse},
		{"another cluster", node, up, []EtcdMember{a, foreign}, unhealthy, corev1.ConditionFalse},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			o := &Observation{Nodes: map[string]*corev1.Node{}, Pods: map[string]*corev1.Pod{}, Etcd: map[string]EtcdMember{}}
			if tc.node != nil {
				o.Nodes["a"] = tc.node
			}
			if tc.pod != nil {
				o.Pods["etcd-a"] = tc.pod
			}
			for _, m := range tc.asked {
				o.Etcd[m.Node] = m
			}
			got := memberCondition(o, "a")
			if got.Reason != tc.want || got.Status != tc.status {
				t.Errorf("%s: %+v, want %s %s", tc.reason, got, tc.status, tc.want)
			}
		})
	}
}

func TestVerdict(t *testing.T) {
	const kind clusterv1.ConditionType = "Health"
	bad := condition.False(kind, clusterv1.ConditionSeverityError, "R", "")
	warn := condition.False(kind, clusterv1.ConditionSeverityWarning, "R", "")
	info := condition.False(kind, clusterv1.ConditionSeverityInfo, "R", "")
	good, unknown := condition.True(kind), condition.Unknown(kind, "R", "")
	cases := []struct {
		reason string
		of     []*clusterv1.Condition
		want   *clusterv1.Condition
	}{
		{"nothing is known", []*clusterv1.Condition{nil, nil}, nil},
		{"all are well", []*clusterv1.Condition{&good, &good}, &good},
		{"one is well, the rest unknown", []*clusterv1.Condition{&unknown, &good}, &good},
		{"all are unknown", []*clusterv1.Condition{&unknown}, new(condition.Unknown(kind, "Unknown", ""))},
		{"an error beats all", []*clusterv1.Condition{&good, &info, &bad, &warn},
			new(condition.False(kind, clusterv1.ConditionSeverityError, "Unhealthy", "Not healthy: m2"))},
		{"a warning beats an info", []*clusterv1.Condition{&good, &info, &warn, &warn},
			new(condition.False(kind, clusterv1.ConditionSeverityWarning, "Unhealthy", "Not healthy: m2, m3"))},
		{"a long list is cut off", slices.Repeat([]*clusterv1.Condition{&bad}, 12),
			new(condition.False(kind, clusterv1.ConditionSeverityError, "Unhealthy", "Not healthy: m0, m1, m2, m3, m4, m5, m6, m7, m8, m9 and 2 more"))},
		{"an info beats what is well", []*clusterv1.Condition{&good, &info}, new(condition.False(kind, clusterv1.ConditionSeverityInfo, "Unhealthy", "Not healthy: m1"))},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			v := verdict{kind: kind, unhealthy: "Unhealthy", unknown: "Unknown"}
			for i, c := range tc.of {
				v.add("m"+string(rune('0'+i)), c)
			}
			kcp := &controlplanev1.KubeadmControlPlane{}
			v.state(kcp)
			if diff := cmp.Diff(tc.want, condition.Get(kcp, kind)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
