package workload

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"sigs.k8s.io/cluster-api/sdk/remote"
)

// connections has one connection, which can be lost.
type connections struct {
	current *remote.Cluster
	events  chan remote.Events
}

func (c *connections) Get(context.Context, types.NamespacedName) (*remote.Cluster, error) {
	if c.current == nil {
		return nil, fmt.Errorf("%w: it is lost", remote.ErrNotConnected)
	}
	return c.current, nil
}

func (c *connections) Source(events remote.Events) source.Source {
	return source.Func(func(context.Context, workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		c.events <- events
		return nil
	})
}

func TestWorkloadsFollowConnections(t *testing.T) {
	connected := func() *remote.Cluster { return &remote.Cluster{Config: &rest.Config{Host: "https://c"}} }
	connections := &connections{events: make(chan remote.Events, 1)}
	w := New(Options{Connections: connections, Secrets: fake.NewClientBuilder().Build()})
	get := func() *Cluster {
		t.Helper()
		got, err := w.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		return got.(*Cluster)
	}
	closed := func(c *Cluster) bool {
		_, err := c.etcd.View(t.Context(), "a")
		return err != nil && err.Error() == "the connection to the workload cluster was lost"
	}
	if _, err := w.Get(t.Context(), key); !remote.IsNotConnected(err) {
		t.Fatalf("Get(): %v, want that there is no connection", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- w.Start(ctx) }()
	events := <-connections.events

	connections.current = connected()
	first := get()
	if get() != first {
		t.Error("the Cluster was replaced although its connection is the same")
	}
	if requests := events.Connection(ctx, types.NamespacedName{Namespace: "default", Name: "other"}); len(requests) > 0 || closed(first) {
		t.Error("the loss of another cluster has an effect")
	}
	events.Connection(ctx, key)
	if !closed(first) {
		t.Error("connections to etcd are not closed with the connection to their cluster")
	}
	second := get()
	if second == first || closed(second) {
		t.Error("the Cluster was not replaced after a new connection")
	}
	connections.current = connected() // before its event
	third := get()
	if third == second || !closed(second) {
		t.Error("connections to etcd are not closed after a new connection")
	}
	cancel()
	if err := <-done; err != nil || !closed(third) {
		t.Errorf("Start(): %v; connections to etcd must end with it", err)
	}
}

func TestReads(t *testing.T) {
	node := func(name string, labels map[string]string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	pod := func(namespace, name string, labels map[string]string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
	}
	static := map[string]string{"tier": "control-plane"}
	c, _ := newCluster(t,
		node("a", map[string]string{"node-role.kubernetes.io/control-plane": ""}), node("worker", nil),
		pod("kube-system", "etcd-a", static), pod("kube-system", "coredns-1", nil), pod("default", "etcd-b", static),
	)
	var got []string
	nodes, err := c.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		got = append(got, n.Name)
	}
	pods, err := c.Pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods {
		got = append(got, p.Name)
	}
	if diff := cmp.Diff([]string{"a", "etcd-a"}, got); diff != "" {
		t.Errorf("Nodes and Pods: -want +got:\n%s", diff)
	}
	for _, want := range []bool{false, true} {
		if exists, err := c.KubeadmConfigExists(t.Context()); err != nil || exists != want {
			t.Errorf("KubeadmConfigExists(): %v (%v), want %v", exists, err, want)
		}
		if err := c.Client.Create(t.Context(), configMap("kubeadm-config", nil)); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
	}
}

// The cache must have all fields that this package and package health read.
func TestCached(t *testing.T) {
	ready := []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	probe := &corev1.Probe{PeriodSeconds: 1}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "etcd-a", Labels: map[string]string{"tier": "control-plane"}, Annotations: map[string]string{"long": "text"}},
		Spec:       corev1.PodSpec{NodeName: "a", HostNetwork: true, Containers: []corev1.Container{{Name: "etcd", Image: "i", LivenessProbe: probe}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "1.2.3.4", Conditions: ready, ContainerStatuses: []corev1.ContainerStatus{{Name: "etcd"}}},
	}
	taints := []corev1.Taint{{Key: corev1.TaintNodeUnreachable}}
	conditions := []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""}, Annotations: map[string]string{"long": "text"}},
		Spec:       corev1.NodeSpec{ProviderID: "p", PodCIDR: "10.0.0.0/24", Taints: taints},
		Status:     corev1.NodeStatus{Conditions: conditions, Images: []corev1.ContainerImage{{SizeBytes: 1}}},
	}
	want := []any{
		&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: node.Labels},
			Spec:       corev1.NodeSpec{ProviderID: "p", Taints: taints}, Status: corev1.NodeStatus{Conditions: conditions},
		},
		&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "etcd-a", Labels: pod.Labels},
			Spec:       corev1.PodSpec{NodeName: "a", Containers: []corev1.Container{{Name: "etcd", LivenessProbe: probe}}},
			Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: ready, ContainerStatuses: pod.Status.ContainerStatuses},
		},
	}
	for i, in := range []client.Object{node, pod} {
		cached := Cached()[i]
		if !cached.Labels.Matches(labels.Set(in.GetLabels())) || cached.Labels.Matches(labels.Set{}) {
			t.Errorf("%T: the selector %s does not match, or matches others", in, cached.Labels)
		}
		got, err := cached.Transform(in)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[i], got); diff != "" {
			t.Errorf("%T: -want +got:\n%s", in, diff)
		}
	}
}
