package health

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/quorum"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// pod returns a Pod in a phase, ready or not.
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
	const kind = controlplanev1.MachineSchedulerPodHealthyV1Beta1Condition
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
			condition.False(kind, info, controlplanev1.PodProvisioningV1Beta1Reason, "Pod kube-scheduler-n is not ready yet")},
		{"running, probes still fail", node, pod(corev1.PodRunning, false, ""),
			condition.False(kind, info, controlplanev1.PodProvisioningV1Beta1Reason, "Pod kube-scheduler-n is not ready yet")},
		{"crashing", node, pod(corev1.PodRunning, false, "CrashLoopBackOff"),
			condition.False(kind, bad, controlplanev1.PodFailedV1Beta1Reason, "Pod kube-scheduler-n: CrashLoopBackOff")},
		{"a long reason is truncated", node, pod(corev1.PodRunning, false, strings.Repeat("x", 1<<20)),
			condition.False(kind, bad, controlplanev1.PodFailedV1Beta1Reason, "Pod kube-scheduler-n: %s...", strings.Repeat("x", condition.BriefLength-len("...")))},
		{"terminated", node, pod(corev1.PodSucceeded, true, ""), condition.False(kind, bad, controlplanev1.PodFailedV1Beta1Reason, "Pod kube-scheduler-n has terminated")},
		{"missing", node, nil, condition.False(kind, bad, controlplanev1.PodMissingV1Beta1Reason, "Pod kube-scheduler-n does not exist")},
		{"Node unreachable", away, pod(corev1.PodRunning, true, ""), condition.Unknown(kind, controlplanev1.PodInspectionFailedV1Beta1Reason, "Node n is unreachable")},
		{"no Node", nil, nil, condition.False(kind, bad, controlplanev1.PodFailedV1Beta1Reason, "Node n does not exist")},
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
	a := quorum.Member{Node: "a", ClusterID: 1, Members: ab}
	b := quorum.Member{Node: "b", ClusterID: 1, Members: ab}
	other, alone, foreign, full := b, a, b, a
	other.Members = []string{"a", "b", "c"}
	alone.Members = []string{"b"}
	foreign.ClusterID = 2
	full.Alarms = []string{"NOSPACE"}
	const unknown, unhealthy = controlplanev1.EtcdMemberInspectionFailedV1Beta1Reason, controlplanev1.EtcdMemberUnhealthyV1Beta1Reason
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	away := node.DeepCopy()
	away.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}}
	up, starting := pod(corev1.PodRunning, true, ""), pod(corev1.PodPending, false, "ContainerCreating")
	cases := []struct {
		reason string
		node   *corev1.Node
		pod    *corev1.Pod
		asked  []quorum.Member
		want   string
		status corev1.ConditionStatus
	}{
		{"all agree", node, up, []quorum.Member{a, b}, "", corev1.ConditionTrue},
		{"another one does not respond", node, up, []quorum.Member{a, {Node: "b", Err: errors.New("unreachable")}}, "", corev1.ConditionTrue},
		{"it is starting", node, starting, []quorum.Member{b}, unknown, corev1.ConditionUnknown},
		{"it does not respond", node, up, []quorum.Member{{Node: "a", Err: errors.New("unreachable")}, b}, unhealthy, corev1.ConditionFalse},
		{"no Node", nil, up, []quorum.Member{b}, unhealthy, corev1.ConditionFalse},
		{"the Node is unreachable", away, up, []quorum.Member{b}, unhealthy, corev1.ConditionFalse},
		{"no Pod", node, nil, []quorum.Member{b}, unhealthy, corev1.ConditionFalse},
		{"it crashes", node, pod(corev1.PodRunning, false, "CrashLoopBackOff"), []quorum.Member{b}, unhealthy, corev1.ConditionFalse},
		{"it has terminated", node, pod(corev1.PodFailed, false, ""), []quorum.Member{b}, unhealthy, corev1.ConditionFalse},
		{"not a member", node, up, []quorum.Member{alone}, unhealthy, corev1.ConditionFalse},
		{"an alarm", node, up, []quorum.Member{full, b}, unhealthy, corev1.ConditionFalse},
		{"another list of members", node, up, []quorum.Member{a, other}, unhealthy, corev1.ConditionFalse},
		{"another cluster", node, up, []quorum.Member{a, foreign}, unhealthy, corev1.ConditionFalse},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			o := &Observation{Nodes: map[string]*corev1.Node{}, Pods: map[string]*corev1.Pod{}, Etcd: map[string]quorum.Member{}}
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
