package machine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func TestDeleteNode(t *testing.T) {
	limit := func(seconds int32) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) { m.Spec.Deletion.NodeDeletionTimeoutSeconds = &seconds }
	}
	failed := &clusterv1.Condition{Type: clusterv1.MachineNodeHealthyV1Beta1Condition, Status: corev1.ConditionFalse, Severity: clusterv1.ConditionSeverityWarning, Reason: clusterv1.DeletionFailedV1Beta1Reason}
	deletedAt := func(since time.Duration) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) { m.DeletionTimestamp = &metav1.Time{Time: now.Add(-since)} }
	}
	late := func(since time.Duration, with ...func(*clusterv1.Machine)) *clusterv1.Machine {
		return machine(append(with, withProviderID, deletedAt(since))...)
	}
	cases := map[string]struct {
		reason  string
		machine *clusterv1.Machine
		away    error
		want    *clusterv1.Condition
		writes  []string
		waits   bool
	}{
		"Deleted":     {"the infrastructure machine is gone", machine(withNode, deleting), nil, nil, []string{"delete Node node-1"}, false},
		"NoNode":      {"there is no Node to delete", machine(deleting), errors.New("unexpected connection"), nil, nil, false},
		"Unreachable": {"the deletion is retried", machine(withNode, deleting, limit(10)), remote.ErrNotConnected, failed, nil, true},
		"GivesUp":     {"the timeout has passed", machine(withNode, deleting, limit(1), deletedAt(time.Minute)), remote.ErrNotConnected, nil, nil, false},
		"NoLimit":     {"without timeout, the deletion is retried forever", machine(withNode, deleting), errors.New("forbidden"), failed, nil, true},
		"LateNoLimit": {"a Node that may have joined, but is not known, does not hold the Machine forever", late(time.Minute), remote.ErrNotConnected, nil, nil, false},
		"LateZero":    {"nor with zero", late(time.Minute, limit(0)), remote.ErrNotConnected, nil, nil, false},
		"LateRetry":   {"but for a while", late(time.Second, limit(0)), remote.ErrNotConnected, failed, nil, true},
		"LateLimit":   {"a timeout of the Machine counts", late(time.Minute, limit(3600)), remote.ErrNotConnected, failed, nil, true},
		"ZeroLimit":   {"zero is no timeout", machine(withNode, deleting, limit(0)), errors.New("forbidden"), failed, nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, machine(named("cp-1"), object.ControlPlane))
			testenv.Must(t, w.workload.Client.Create(t.Context(), node()))
			w.workload.Err = tc.away
			r, err := w.step(t, "delete-node", &scope{machine: tc.machine, cluster: build.Cluster(object.Initialized)})
			if err != nil || r.Ends() != tc.waits || (r.After() > 0) != tc.waits {
				t.Errorf("%s: waits for %q at most %s, err = %v", tc.reason, r.Waiting(), r.After(), err)
			}
			if diff := cmp.Diff(tc.want, condition.Get(tc.machine, clusterv1.MachineNodeHealthyV1Beta1Condition)); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.writes, w.Writes); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDeleteOwnNodeOnly has a Node with the name in status.nodeRef.
func TestDeleteOwnNodeOnly(t *testing.T) {
	with := func(provider string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Spec.ProviderID = provider }
	}
	cases := map[string]struct {
		reason string
		node   *corev1.Node
		own    bool
	}{
		"Same":             {"the provider ID is equal", node(), true},
		"Successor":        {"another machine has registered with the name", node(with("test:///other")), false},
		"SuccessorUnknown": {"another machine may have registered, the provider ID is not set yet", node(with("")), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, machine(named("cp-1"), object.ControlPlane))
			testenv.Must(t, w.workload.Client.Create(t.Context(), tc.node))
			s := &scope{machine: machine(withNode, deleting), cluster: build.Cluster()}
			if r, err := w.step(t, "drain", s); err != nil || r.Ends() || (w.drained > 0) != tc.own {
				t.Errorf("%s: drained %d times, waits for %q, err = %v", tc.reason, w.drained, r.Waiting(), err)
			}
			if r, err := w.step(t, "delete-node", s); err != nil || r.Ends() || (len(w.Writes) > 0) != tc.own {
				t.Errorf("%s: wrote %q, waits for %q, err = %v", tc.reason, w.Writes, r.Waiting(), err)
			}
			err := w.workload.Client.Get(t.Context(), client.ObjectKeyFromObject(tc.node), &corev1.Node{})
			if gone := apierrors.IsNotFound(err); gone != tc.own {
				t.Errorf("%s: Node deleted = %t, err = %v", tc.reason, gone, err)
			}
		})
	}
}

// TestDeleteNodeWithStaleCache has a Node of another machine with the name in status.nodeRef, which is not in the cache yet.
func TestDeleteNodeWithStaleCache(t *testing.T) {
	w := newWorld(t)
	own, successor := node(), node(func(n *corev1.Node) { n.Spec.ProviderID = "test:///other" })
	testenv.Must(t, w.workload.Client.Create(t.Context(), own))
	w.workload.Cache.Freeze(&corev1.NodeList{})
	testenv.Must(t, w.workload.Client.Delete(t.Context(), own))
	testenv.Must(t, w.workload.Client.Create(t.Context(), successor))
	workload, err := w.workload.Get(t.Context(), types.NamespacedName{})
	testenv.Must(t, err)
	if err := deleteOwnNode(t.Context(), workload, machine(withNode, deleting)); err != nil || len(w.Writes) > 0 {
		t.Errorf("wrote %q, err = %v", w.Writes, err)
	}
}

// TestDeleteReplacedNode has a Node that another one replaces after it was read: the API server must compare the UID.
func TestDeleteReplacedNode(t *testing.T) {
	f := &replacing{}
	if err := deleteOwnNode(t.Context(), &remote.Cluster{Client: f, Live: f}, machine(withNode, deleting)); !apierrors.IsConflict(err) {
		t.Errorf("err = %v, want a conflict", err)
	}
	if diff := cmp.Diff(&metav1.Preconditions{UID: ptr.To(types.UID("node-node-1"))}, f.preconditions); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// replacing is a client of an API server whose Nodes have another UID as soon as they were read.
type replacing struct {
	client.Client
	preconditions *metav1.Preconditions
}

// Get implements client.Reader.
func (*replacing) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if n, ok := obj.(*corev1.Node); ok {
		node().DeepCopyInto(n)
	}
	return nil
}

// Delete implements client.Writer.
func (f *replacing) Delete(_ context.Context, obj client.Object, opts ...client.DeleteOption) error {
	f.preconditions = (&client.DeleteOptions{}).ApplyOptions(opts).Preconditions
	return apierrors.NewConflict(corev1.Resource("nodes"), obj.GetName(), errors.New("the UID differs"))
}
