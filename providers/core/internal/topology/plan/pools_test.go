package plan

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

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
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
			p := &Planner{PoolVersions: NodeVersions(func(context.Context, types.NamespacedName) (client.Reader, error) { return workload, tt.offline })}
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
