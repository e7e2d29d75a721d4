package kcptest

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

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/quorum"
	"sigs.k8s.io/cluster-api/sdk/remote"
)

// Workload is a workload cluster in memory: Nodes, static Pods and etcd members. It implements connection.Workload, and is the
// source of its events. Hold Mu to access its fields while a controller is running.
type Workload struct {
	Key types.NamespacedName
	// Since is when the connection was established.
	Since time.Time

	Mu sync.Mutex
	// Initialized is true if kubeadm has uploaded its configuration.
	Initialized bool
	// NodeObjects are the Nodes by name.
	NodeObjects map[string]*corev1.Node
	// PodObjects are the static Pods by name.
	PodObjects map[string]*corev1.Pod
	// Members are the etcd members by Node. The value is false if the member does not respond.
	Members map[string]bool
	// Versions are the versions of etcd that members report, by Node.
	Versions map[string]string
	// Unstarted is the number of members that were added and have not started.
	Unstarted int
	// Tokens are the IDs of the bootstrap tokens.
	Tokens map[string]bool
	// CertificateError is the error of CertificateExpiry.
	CertificateError error
	// Unresponsive is the error of requests, although there is a connection.
	Unresponsive error
	// Leader is the etcd member that is the leader.
	Leader string
	// QuorumLost are the actions after which the members that respond had no quorum.
	QuorumLost []string
	// Observed counts how often Nodes were listed.
	Observed int

	did    []string
	queue  workqueue.TypedRateLimitingInterface[reconcile.Request]
	events remote.Events
}

// NewWorkload returns a workload cluster without Nodes.
func NewWorkload(key types.NamespacedName) *Workload {
	return &Workload{Key: key, NodeObjects: map[string]*corev1.Node{}, PodObjects: map[string]*corev1.Pod{}, Members: map[string]bool{}}
}

// Source returns the source of the events of the cluster.
func (w *Workload) Source(events remote.Events) source.Source {
	return source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		w.Mu.Lock()
		defer w.Mu.Unlock()
		w.queue, w.events = q, events
		return nil
	})
}

// Connected returns an error if there is no connection. There is one if there is a Node.
func (w *Workload) Connected() error {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if len(w.NodeObjects) == 0 {
		return fmt.Errorf("%w: there is no Node", remote.ErrNotConnected)
	}
	return nil
}

// Changed sends an event, as the watches of a real connection do.
func (w *Workload) Changed() {
	w.Mu.Lock()
	queue, events := w.queue, w.events
	w.Mu.Unlock()
	if queue == nil {
		return
	}
	for _, r := range events.Connection(context.Background(), w.Key) {
		queue.Add(r)
	}
}

// components returns the prefixes of the static Pods of a Node.
func components() []string {
	return []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"}
}

// Boot adds a Node with its Pods and etcd member.
func (w *Workload) Boot(node string) {
	w.Mu.Lock()
	w.NodeObjects[node] = &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	for _, c := range components() {
		name := c + "-" + node
		w.PodObjects[name] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		}}
	}
	w.Members[node] = true
	w.Initialized = true
	if w.Leader == "" {
		w.Leader = node
	}
	w.Mu.Unlock()
	w.Changed()
}

// Gone removes a Node and its Pods. Its etcd member remains in the list and does not respond, as if the machine was switched
// off.
func (w *Workload) Gone(node string) {
	w.Mu.Lock()
	delete(w.NodeObjects, node)
	for _, c := range components() {
		delete(w.PodObjects, c+"-"+node)
	}
	if _, member := w.Members[node]; member {
		w.Members[node] = false
		if !w.quorum() {
			w.QuorumLost = append(w.QuorumLost, "gone "+node)
		}
	}
	w.Mu.Unlock()
	w.Changed()
}

// quorum reports whether more than half of the members respond.
func (w *Workload) quorum() bool {
	up := 0
	for _, runs := range w.Members {
		if runs {
			up++
		}
	}
	return up > (len(w.Members)+w.Unstarted)/2
}

// MemberNames returns the names of the etcd members, empty for those that have not started.
func (w *Workload) MemberNames() []string {
	var names []string
	for name := range w.Members {
		names = append(names, name)
	}
	for range w.Unstarted {
		names = append(names, "")
	}
	slices.Sort(names)
	return names
}

// ConnectedSince implements connection.Workload.
func (w *Workload) ConnectedSince() time.Time { return w.Since }

// Nodes implements connection.Workload.
func (w *Workload) Nodes(context.Context) ([]corev1.Node, error) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.Observed++
	var all []corev1.Node
	for _, n := range w.NodeObjects {
		all = append(all, *n.DeepCopy())
	}
	return all, nil
}

// Pods implements connection.Workload.
func (w *Workload) Pods(context.Context) ([]corev1.Pod, error) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	var all []corev1.Pod
	for _, p := range w.PodObjects {
		all = append(all, *p.DeepCopy())
	}
	return all, nil
}

// KubeadmConfigExists implements connection.Workload.
func (w *Workload) KubeadmConfigExists(context.Context) (bool, error) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return w.Initialized && w.Unresponsive == nil, w.Unresponsive
}

// Etcd implements connection.Workload.
func (w *Workload) Etcd(_ context.Context, nodes []string) []quorum.Member {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	var all []quorum.Member
	for _, node := range nodes {
		if up := w.Members[node]; !up || !w.quorum() {
			all = append(all, quorum.Member{Node: node, Err: errors.New("no response")})
			continue
		}
		all = append(all, quorum.Member{
			Node: node, ClusterID: 1, Name: node, Leader: w.Leader == node, Version: w.Versions[node], Members: w.MemberNames(),
		})
	}
	return all
}

// MoveEtcdLeadership implements connection.Workload.
func (w *Workload) MoveEtcdLeadership(_ context.Context, from, to string) error {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.did = append(w.did, "lead "+to)
	if !w.Members[to] || !w.quorum() {
		return errors.New("no quorum")
	}
	if w.Leader == from {
		w.Leader = to
	}
	return nil
}

// RemoveEtcdMember implements connection.Workload.
func (w *Workload) RemoveEtcdMember(_ context.Context, name string, via []string) error {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if slices.Contains(via, name) {
		return fmt.Errorf("member %s cannot remove itself", name)
	}
	if len(via) == 0 || !w.quorum() {
		return errors.New("no quorum")
	}
	if _, member := w.Members[name]; !member {
		return nil
	}
	w.did = append(w.did, "remove "+name)
	delete(w.Members, name)
	if !w.quorum() {
		w.QuorumLost = append(w.QuorumLost, "remove "+name)
	}
	return nil
}

// RemoveUnstartedEtcdMembers implements connection.Workload.
func (w *Workload) RemoveUnstartedEtcdMembers(context.Context, []string) error {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.did = append(w.did, "remove unstarted")
	w.Unstarted = 0
	return nil
}

// RevokeToken implements connection.Workload.
func (w *Workload) RevokeToken(_ context.Context, id string) (bool, error) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if !w.Tokens[id] {
		return false, nil
	}
	w.did = append(w.did, "revoke "+id)
	delete(w.Tokens, id)
	return true, nil
}

// PrepareVersion implements connection.Workload.
func (w *Workload) PrepareVersion(_ context.Context, kcp *controlplanev1.KubeadmControlPlane) error {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.did = append(w.did, "prepare "+kcp.Spec.Version)
	return nil
}

// Maintain implements connection.Workload.
func (w *Workload) Maintain(_ context.Context, kcp *controlplanev1.KubeadmControlPlane) error {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.did = append(w.did, "maintain "+kcp.Spec.Version)
	return nil
}

// CertificateExpiry implements connection.Workload.
func (w *Workload) CertificateExpiry(context.Context, string) (time.Time, error) {
	return time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC), w.CertificateError
}

// Actions returns all changes of the workload cluster so far.
func (w *Workload) Actions() []string {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return slices.Clone(w.did)
}
