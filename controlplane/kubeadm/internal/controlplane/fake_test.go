package controlplane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	"sigs.k8s.io/cluster-api/provider/remote"
)

// fakeCluster is a workload cluster: Nodes, static Pods and etcd members, in memory. It is its own Workloads and
// Connections, and tells the controller of every change.
type fakeCluster struct {
	key types.NamespacedName

	mu          sync.Mutex
	initialised bool
	nodes       map[string]*corev1.Node
	pods        map[string]*corev1.Pod
	etcd        map[string]bool // by Node; false: it does not answer
	unstarted   int             // members that were added and have not started
	hidden      error           // why certificates cannot be seen
	deaf        error           // why no request is answered, although there is a connection
	leader      string
	did         []string
	quorumLost  []string // what was done when the members that run had no majority left
	looked      int      // how often Nodes were listed
	queue       workqueue.TypedRateLimitingInterface[reconcile.Request]
	events      remote.Events
}

func newFakeCluster(key types.NamespacedName) *fakeCluster {
	return &fakeCluster{key: key, nodes: map[string]*corev1.Node{}, pods: map[string]*corev1.Pod{}, etcd: map[string]bool{}}
}

func (f *fakeCluster) Source(events remote.Events) source.Source {
	return source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.queue, f.events = q, events
		return nil
	})
}

func (f *fakeCluster) Get(context.Context, types.NamespacedName) (Workload, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.nodes) == 0 {
		return nil, fmt.Errorf("%w: no Node is up", remote.ErrNotConnected)
	}
	return f, nil
}

// changed tells the controller, as the watches of a real connection do.
func (f *fakeCluster) changed() {
	f.mu.Lock()
	queue, events := f.queue, f.events
	f.mu.Unlock()
	if queue == nil {
		return
	}
	for _, r := range events.Connection(context.Background(), f.key) {
		queue.Add(r)
	}
}

// boot brings up a Node with everything that kubeadm puts there.
func (f *fakeCluster) boot(node string) {
	f.mu.Lock()
	f.nodes[node] = &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	for _, c := range components(true) {
		name := c.prefix + "-" + node
		f.pods[name] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		}}
	}
	f.etcd[node] = true
	f.initialised = true
	if f.leader == "" {
		f.leader = node
	}
	f.mu.Unlock()
	f.changed()
}

// gone removes a Node and its Pods; its etcd member stays, as it does when a machine is switched off.
func (f *fakeCluster) gone(node string) {
	f.mu.Lock()
	delete(f.nodes, node)
	for _, c := range components(true) {
		delete(f.pods, c.prefix+"-"+node)
	}
	if _, member := f.etcd[node]; member {
		f.etcd[node] = false
		if !f.quorum() {
			f.quorumLost = append(f.quorumLost, "gone "+node)
		}
	}
	f.mu.Unlock()
	f.changed()
}

// quorum: more than half of the members run. Without that etcd, like a real one, agrees on nothing.
func (f *fakeCluster) quorum() bool {
	up := 0
	for _, runs := range f.etcd {
		if runs {
			up++
		}
	}
	return up > (len(f.etcd)+f.unstarted)/2
}

func (f *fakeCluster) members() []string {
	var names []string
	for name := range f.etcd {
		names = append(names, name)
	}
	for range f.unstarted {
		names = append(names, "")
	}
	slices.Sort(names)
	return names
}

func (f *fakeCluster) Nodes(context.Context) ([]corev1.Node, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looked++
	var all []corev1.Node
	for _, n := range f.nodes {
		all = append(all, *n.DeepCopy())
	}
	return all, nil
}

func (f *fakeCluster) Pods(context.Context) ([]corev1.Pod, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []corev1.Pod
	for _, p := range f.pods {
		all = append(all, *p.DeepCopy())
	}
	return all, nil
}

func (f *fakeCluster) KubeadmConfigExists(context.Context) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.initialised && f.deaf == nil, f.deaf
}

func (f *fakeCluster) Etcd(_ context.Context, nodes []string) []EtcdMember {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []EtcdMember
	for _, node := range nodes {
		if up := f.etcd[node]; !up || !f.quorum() {
			all = append(all, EtcdMember{Node: node, Err: errors.New("no answer")})
			continue
		}
		all = append(all, EtcdMember{Node: node, ClusterID: 1, Name: node, Leader: f.leader == node, Members: f.members()})
	}
	return all
}

func (f *fakeCluster) MoveEtcdLeadership(_ context.Context, from, to string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.did = append(f.did, "lead "+to)
	if !f.etcd[to] || !f.quorum() {
		return errors.New("there is no quorum of members to agree on a leader")
	}
	if f.leader == from {
		f.leader = to
	}
	return nil
}

func (f *fakeCluster) RemoveEtcdMember(_ context.Context, name string, via []string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.Contains(via, name) {
		return fmt.Errorf("member %s is asked to remove itself", name)
	}
	if len(via) == 0 || !f.quorum() {
		return errors.New("there is no quorum of members to agree on a removal")
	}
	if _, member := f.etcd[name]; !member {
		return nil
	}
	f.did = append(f.did, "remove "+name)
	delete(f.etcd, name)
	if !f.quorum() {
		f.quorumLost = append(f.quorumLost, "remove "+name)
	}
	return nil
}

func (f *fakeCluster) RemoveUnstartedEtcdMembers(context.Context, []string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.did = append(f.did, "remove unstarted")
	f.unstarted = 0
	return nil
}

func (f *fakeCluster) PrepareVersion(_ context.Context, kcp *controlplanev1.KubeadmControlPlane) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.did = append(f.did, "prepare "+kcp.Spec.Version)
	return nil
}

func (f *fakeCluster) Maintain(_ context.Context, kcp *controlplanev1.KubeadmControlPlane) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.did = append(f.did, "maintain "+kcp.Spec.Version)
	return nil
}

func (f *fakeCluster) CertificateExpiry(context.Context, string) (time.Time, error) {
	return time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC), f.hidden
}

// actions returns what was done in the workload cluster so far.
func (f *fakeCluster) actions() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.did)
}
