package topology

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// withKubelet gives a Node the version of its kubelet.
func withKubelet(version string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Status.NodeInfo.KubeletVersion = version }
}

// poolWithNodes returns a MachinePool with references to Nodes.
func poolWithNodes(names ...string) *clusterv1.MachinePool {
	p := &clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}}
	for _, name := range names {
		p.Status.NodeRefs = append(p.Status.NodeRefs, corev1.ObjectReference{Name: name})
	}
	return p
}

func TestEventsOfTheCondition(t *testing.T) {
	failed := func(message string) clusterv1.Condition {
		return condition.False(clusterv1.TopologyReconciledV1Beta1Condition, clusterv1.ConditionSeverityError, clusterv1.TopologyReconcileFailedV1Beta1Reason, "%s", message)
	}
	blocked := func(message string) clusterv1.Condition {
		return condition.False(clusterv1.TopologyReconciledV1Beta1Condition, clusterv1.ConditionSeverityInfo, clusterv1.TopologyReconciledHookBlockingV1Beta1Reason, "%s", message)
	}
	for reason, test := range map[string]struct {
		before, after clusterv1.Condition
		want          bool
	}{
		"another message of an error: the retries have their own delay": {failed("at 10:00"), failed("at 10:01"), false},
		"an error":                            {condition.True(clusterv1.TopologyReconciledV1Beta1Condition), failed("x"), true},
		"no error any more":                   {failed("x"), condition.True(clusterv1.TopologyReconciledV1Beta1Condition), true},
		"another message of what is no error": {blocked("a"), blocked("b"), true},
	} {
		before := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}
		after := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "2"}}
		condition.Set(before, test.before)
		condition.Set(after, test.after)
		if got := relevantCluster().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != test.want {
			t.Errorf("%s: selected: %t", reason, got)
		}
	}
}

func TestPoolEvents(t *testing.T) {
	cluster := types.NamespacedName{Namespace: "default", Name: "c"}
	pooled := func(n *corev1.Node) {
		n.Annotations = map[string]string{clusterv1.OwnerKindAnnotation: clusterv1.MachinePoolKind}
	}
	if diff := cmp.Diff([]reconcile.Request{{NamespacedName: cluster}}, ofPoolNode(t.Context(), cluster, object.Node("n", pooled))); diff != "" {
		t.Errorf("a Node of a pool, -want +got:\n%s", diff)
	}
	if got := ofPoolNode(t.Context(), cluster, object.Node("n")); got != nil {
		t.Errorf("another Node triggers %v", got)
	}
	if !kubeletChanged(object.Node("n", withKubelet("v1.30.0")), object.Node("n", withKubelet("v1.31.0"))) {
		t.Error("an upgrade of a kubelet does not matter")
	}
	if kubeletChanged(object.Node("n"), object.Node("n", pooled)) {
		t.Error("an annotation of a Node matters")
	}
	updated := func(before, after *clusterv1.MachinePool) bool {
		return nodesChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
	}
	if !updated(poolWithNodes("a"), poolWithNodes("b")) || updated(poolWithNodes("a"), poolWithNodes("a")) {
		t.Error("only changes of status.nodeRefs matter")
	}
}
