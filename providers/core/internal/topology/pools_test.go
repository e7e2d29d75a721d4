package topology

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/upgrade"
	"sigs.k8s.io/cluster-api/sdk/remote"
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

func TestFindUpgradingPool(t *testing.T) {
	const at = "v1.31.0"
	offline := fmt.Errorf("no route: %w", remote.ErrNotConnected)
	for _, tt := range []struct {
		reason   string
		version  string
		kubelets []string
		refs     []string
		offline  error
		want     upgrade.Workers
		fails    bool
	}{
		{reason: "a pool without Nodes needs no connection", offline: offline},
		{reason: "all Nodes have the version", kubelets: []string{at, at}, refs: []string{"n0", "n1"}},
		{reason: "one Node has another version", kubelets: []string{at, "v1.30.0"}, refs: []string{"n0", "n1"}, want: upgrade.Workers{Upgrading: true}},
		{reason: "a Node is ahead of the pool", kubelets: []string{"v1.31.1"}, refs: []string{"n0"}, want: upgrade.Workers{Upgrading: true}},
		{reason: "a kubelet without the build metadata of the spec", version: at + "+vendor.1", kubelets: []string{at}, refs: []string{"n0"}},
		{reason: "a Node that is gone, but not from status.nodeRefs yet", kubelets: []string{at}, refs: []string{"n0", "gone"}, want: upgrade.Workers{Upgrading: true}},
		{reason: "a kubelet with an invalid version", kubelets: []string{"latest"}, refs: []string{"n0"}, want: upgrade.Workers{Upgrading: true}},
		{reason: "an unreachable workload cluster", refs: []string{"n0"}, offline: offline, want: upgrade.Workers{Upgrading: true, Unreachable: true}},
		{reason: "another error", refs: []string{"n0"}, offline: errors.New("broken"), fails: true},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			nodes := fake.NewClientBuilder()
			for i, v := range tt.kubelets {
				nodes.WithObjects(object.Node(fmt.Sprintf("n%d", i), withKubelet(v)))
			}
			workload := nodes.Build()
			p := &Planner{PoolVersions: poolVersions(func(context.Context, types.NamespacedName) (client.Reader, error) { return workload, tt.offline })}
			have := upgrade.Workers{Version: at}
			if tt.version != "" {
				have.Version = tt.version
			}
			tt.want.Version = have.Version
			err := p.findUpgradingPool(t.Context(), &clusterv1.Cluster{}, poolWithNodes(tt.refs...), &have)
			if (err != nil) != tt.fails {
				t.Fatalf("err = %v", err)
			}
			if diff := cmp.Diff(tt.want, have); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
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
