package apiserver

import (
	"fmt"
	"runtime"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/machines"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

// fill creates the objects of one control plane machine and one worker in a cluster.
func fill(t testing.TB, c *testCluster) {
	t.Helper()
	must := func(_ bool, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"cp-0", "worker-0"} {
		if _, err := c.group.EnsureMachine(machines.Spec{Name: name, UID: types.UID(name)}); err != nil {
			t.Fatal(err)
		}
		must(store.Ensure(c.group, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""}},
			Spec:       corev1.NodeSpec{ProviderID: "in-memory://" + name},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		}))
	}
	for _, component := range []string{"kube-apiserver", "kube-scheduler", "kube-controller-manager"} {
		must(store.Ensure(c.group, staticPod(component, "cp-0")))
	}
	runEtcd(t, c, "cp-0")
	c.endpoint.StartEtcd("cp-0", c.etcdCA.pair(t, "etcd-cp-0"))
	system := metav1.ObjectMeta{Name: "kubeadm-config", Namespace: metav1.NamespaceSystem}
	must(store.Ensure(c.group, &corev1.ConfigMap{ObjectMeta: system, Data: map[string]string{"ClusterConfiguration": ""}}))
	system.Name = "coredns"
	must(store.Ensure(c.group, &corev1.ConfigMap{ObjectMeta: system, Data: map[string]string{"Corefile": "ANG"}}))
	must(store.Ensure(c.group, &appsv1.Deployment{ObjectMeta: system}))
	system.Name = "kube-proxy"
	must(store.Ensure(c.group, &appsv1.DaemonSet{ObjectMeta: system}))
	system = metav1.ObjectMeta{Name: "kubeadm:get-nodes"}
	must(store.Ensure(c.group, &rbacv1.ClusterRole{ObjectMeta: system}))
	must(store.Ensure(c.group, &rbacv1.ClusterRoleBinding{ObjectMeta: system}))
}

func heap() (bytes uint64, goroutines int) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse, runtime.NumGoroutine()
}

// clusterCost creates clusters of one control plane machine and one worker, and returns what each costs when idle: bytes of
// heap and stacks, bytes of objects, and goroutines.
func clusterCost(t testing.TB, clusters int) (bytes, objects, goroutines float64) {
	t.Helper()
	first := newTestCluster(t)
	fill(t, first) // The first cluster has the costs that all clusters share.
	ca, etcdCA := newTestCA(t, "ca"), newTestCA(t, "etcd")
	before, running := heap()
	var last *testCluster
	for i := range clusters {
		last = addTestCluster(t, first.cloud, first.server, types.NamespacedName{Namespace: "scale", Name: fmt.Sprintf("c-%d", i)}, ca, etcdCA)
		fill(t, last)
	}
	after, now := heap()
	_, size := last.group.Size()
	n := float64(clusters)
	return float64(after-before) / n, float64(size), float64(now-running) / n
}

func TestIdleClustersAreCheap(t *testing.T) {
	bytes, objects, goroutines := clusterCost(t, 50)
	t.Logf("%.1f KiB per cluster, of which %.1f KiB are objects, %.1f goroutines", bytes/1024, objects/1024, goroutines)
	if bytes-objects > 200<<10 {
		t.Errorf("a cluster costs %.0f bytes beside its objects, more than 200 KiB", bytes-objects)
	}
	if goroutines > 1 {
		t.Errorf("a cluster has %.1f goroutines: only its listener should have one", goroutines)
	}
}

func BenchmarkClusters(b *testing.B) {
	for b.Loop() {
		bytes, objects, goroutines := clusterCost(b, 1000)
		b.ReportMetric(bytes/1024, "KiB/cluster")
		b.ReportMetric(objects/1024, "KiB-of-objects/cluster")
		b.ReportMetric(goroutines, "goroutines/cluster")
	}
}

// BenchmarkWatchedClusters measures the cost of a connected client: both sides of one connection with two watches.
func BenchmarkWatchedClusters(b *testing.B) {
	const clusters = 200
	for b.Loop() {
		first := newTestCluster(b)
		ca, etcdCA := newTestCA(b, "ca"), newTestCA(b, "etcd")
		var all []*testCluster
		for i := range clusters {
			all = append(all, addTestCluster(b, first.cloud, first.server,
				types.NamespacedName{Namespace: "scale", Name: fmt.Sprintf("c-%d", i)}, ca, etcdCA))
		}
		before, _ := heap()
		for _, c := range all {
			core := c.client(b).CoreV1()
			nodes, err := core.Nodes().Watch(b.Context(), metav1.ListOptions{})
			if err != nil {
				b.Fatal(err)
			}
			pods, err := core.Pods("").Watch(b.Context(), metav1.ListOptions{})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(nodes.Stop)
			b.Cleanup(pods.Stop)
		}
		after, _ := heap()
		b.ReportMetric(float64(after-before)/1024/clusters, "KiB/client+server")
	}
}

func BenchmarkRequests(b *testing.B) {
	c := newTestCluster(b)
	fill(b, c)
	client := c.client(b)
	ctx := b.Context()
	b.Run("get", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := client.CoreV1().Nodes().Get(ctx, "cp-0", metav1.GetOptions{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("list", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("patch", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			patch := fmt.Appendf(nil, `{"metadata":{"labels":{"i":"%d"}}}`, i)
			if _, err := client.CoreV1().Nodes().Patch(ctx, "cp-0", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
