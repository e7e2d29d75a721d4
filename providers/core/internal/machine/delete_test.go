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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func plane(f fields) *unstructured.Unstructured {
	u := provided("GenericControlPlane", "controlplane.cluster.x-k8s.io", nil, f)
	u.SetName("cp")
	return u
}

func managed(c *clusterv1.Cluster) {
	c.Spec.ControlPlaneRef = &corev1.ObjectReference{APIVersion: "controlplane.cluster.x-k8s.io/v1", Kind: "GenericControlPlane", Name: "cp"}
}

func TestNodeWorkAllowed(t *testing.T) {
	beingDeleted := func(c *clusterv1.Cluster) { c.DeletionTimestamp = &metav1.Time{Time: now} }
	remaining := machine(named("cp-1"), object.ControlPlane)
	terminating := plane(nil)
	terminating.SetDeletionTimestamp(&metav1.Time{Time: now})
	terminating.SetFinalizers([]string{"x/y"})
	cases := map[string]struct {
		reason  string
		machine *clusterv1.Machine
		cluster *clusterv1.Cluster
		objects []client.Object
		want    bool
	}{
		"AllRemain":         {"Cluster, control plane and a control plane Machine remain", machine(withNode), build.Cluster(managed), []client.Object{plane(nil), remaining}, true},
		"NoNode":            {"there is nothing to drain", machine(withProviderID), build.Cluster(managed), []client.Object{plane(nil), remaining}, false},
		"NoCluster":         {"the Cluster does not exist", machine(withNode), nil, []client.Object{plane(nil), remaining}, false},
		"ClusterDeleting":   {"the Cluster is being deleted", machine(withNode), build.Cluster(managed, beingDeleted), []client.Object{plane(nil), remaining}, false},
		"PlaneDeleting":     {"the control plane is being deleted", machine(withNode), build.Cluster(managed), []client.Object{terminating, remaining}, false},
		"PlaneGone":         {"the control plane object does not exist, but a control plane Machine remains", machine(withNode), build.Cluster(managed), []client.Object{remaining}, true},
		"NoPlane":           {"there is no control plane object, but a control plane Machine remains", machine(withNode), build.Cluster(), []client.Object{remaining}, true},
		"LastOne":           {"the last control plane Machine is being deleted", machine(withNode, object.ControlPlane, deleting), build.Cluster(managed), []client.Object{plane(nil), machine(withNode, object.ControlPlane, deleting)}, false},
		"ExternallyManaged": {"the control plane has no Machines, but remains", machine(withNode), build.Cluster(managed), []client.Object{plane(fields{"status": fields{"externalManagedControlPlane": true}})}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := newWorld(t, tc.objects...).nodeWorkAllowed(t.Context(), &scope{machine: tc.machine, cluster: tc.cluster})
			if err != nil || got != tc.want {
				t.Errorf("%s: got %v, err = %v", tc.reason, got, err)
			}
		})
	}
}

func TestHooks(t *testing.T) {
	const preDrain, preTerminate = clusterv1.PreDrainDeleteHookAnnotationPrefix + "/a", clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/b"
	nodeDeleting := condition.False(clusterv1.MachineNodeHealthyCondition, clusterv1.ConditionSeverityInfo, clusterv1.DeletingReason, "")
	drained, detached := condition.True(clusterv1.DrainingSucceededCondition), condition.True(clusterv1.VolumeDetachSucceededCondition)
	held := func(t clusterv1.ConditionType, hook string) clusterv1.Condition {
		return condition.False(t, clusterv1.ConditionSeverityInfo, clusterv1.WaitingExternalHookReason, "Waiting for annotation %s to be removed", hook)
	}
	before, after := clusterv1.PreDrainDeleteHookSucceededCondition, clusterv1.PreTerminateDeleteHookSucceededCondition
	cases := map[string]struct {
		reason  string
		machine *clusterv1.Machine
		want    clusterv1.Conditions
		waits   bool
	}{
		"None":         {"no hook is set", machine(withNode), clusterv1.Conditions{drained, nodeDeleting, condition.True(before), condition.True(after), detached}, false},
		"PreDrain":     {"the pre-drain hook blocks all steps", machine(withNode, annotated(preDrain, ""), annotated(preTerminate, "")), clusterv1.Conditions{held(before, preDrain)}, true},
		"PreTerminate": {"the Node is drained, the pre-terminate hook blocks the rest", machine(withNode, annotated(preTerminate, "")), clusterv1.Conditions{drained, condition.True(before), held(after, preTerminate), detached}, true},
		"WithoutNode":  {"without Node, the pre-drain hook is ignored, and the pre-terminate hook counts", machine(annotated(preDrain, ""), annotated(preTerminate, "")), clusterv1.Conditions{held(after, preTerminate)}, true},
		"NoNode":       {"there is neither a Node nor a hook", machine(), clusterv1.Conditions{nodeDeleting, condition.True(after)}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, machine(named("cp-1"), object.ControlPlane))
			s := &scope{machine: tc.machine, cluster: build.Cluster()}
			r, err := step.Try(t.Context(), tc.machine, s, w.declared().Deletion[:3]...)
			if err != nil || r.Ends() != tc.waits {
				t.Errorf("%s: waits for %q, err = %v", tc.reason, r.Waiting(), err)
			}
			if diff := cmp.Diff(tc.want, tc.machine.Status.Conditions); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDeleteReferenced(t *testing.T) {
	held := infraMachine(nil)
	held.SetFinalizers([]string{"provider/x"})
	foreign := provided("GenericMachine", infrastructure, machine(named("m-2")), nil)
	state := func(reason, message string) clusterv1.Condition {
		return condition.False(clusterv1.InfrastructureReadyCondition, clusterv1.ConditionSeverityInfo, reason, "%s", message)
	}
	cases := map[string]struct {
		reason string
		infra  client.Object
		want   clusterv1.Condition
		writes []string
		waits  bool
	}{
		"Exists":  {"it is deleted, and the Machine waits", held, state(clusterv1.DeletingReason, "Waiting for GenericMachine m-1 to be deleted"), []string{"delete GenericMachine m-1"}, true},
		"Gone":    {"deletion continues", nil, state(clusterv1.DeletedReason, ""), nil, false},
		"Foreign": {"it belongs to another Machine", foreign, state(clusterv1.DeletedReason, ""), nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if tc.infra != nil {
				objects = append(objects, tc.infra)
			}
			w, m := newWorld(t, objects...), machine(deleting)
			for range 2 {
				r, err := w.step(t, "delete-infrastructure", &scope{machine: m, cluster: build.Cluster()})
				if err != nil || r.Ends() != tc.waits {
					t.Errorf("%s: waits for %q, err = %v", tc.reason, r.Waiting(), err)
				}
			}
			if diff := cmp.Diff(tc.writes, w.Writes); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(clusterv1.Conditions{tc.want}, m.Status.Conditions); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDeleteNode(t *testing.T) {
	limit := func(d time.Duration) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) { m.Spec.NodeDeletionTimeout = &metav1.Duration{Duration: d} }
	}
	failed := &clusterv1.Condition{Type: clusterv1.MachineNodeHealthyCondition, Status: corev1.ConditionFalse, Severity: clusterv1.ConditionSeverityWarning, Reason: clusterv1.DeletionFailedReason}
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
		"Unreachable": {"the deletion is retried", machine(withNode, deleting, limit(10*time.Second)), remote.ErrNotConnected, failed, nil, true},
		"GivesUp":     {"the timeout has passed", machine(withNode, deleting, limit(500*time.Millisecond)), remote.ErrNotConnected, nil, nil, false},
		"NoLimit":     {"without timeout, the deletion is retried forever", machine(withNode, deleting), errors.New("forbidden"), failed, nil, true},
		"ZeroLimit":   {"zero is no timeout", machine(withNode, deleting, limit(0)), errors.New("forbidden"), failed, nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, machine(named("cp-1"), object.ControlPlane))
			testenv.Must(t, w.workload.Client.Create(t.Context(), node()))
			w.workload.Err = tc.away
			r, err := w.step(t, "delete-node", &scope{machine: tc.machine, cluster: build.Cluster()})
			if err != nil || r.Ends() != tc.waits || (r.After() > 0) != tc.waits {
				t.Errorf("%s: waits for %q at most %s, err = %v", tc.reason, r.Waiting(), r.After(), err)
			}
			if diff := cmp.Diff(tc.want, condition.Get(tc.machine, clusterv1.MachineNodeHealthyCondition)); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.writes, w.Writes); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNodeWorkWithStaleCache has objects in the API server that are not in the cache.
func TestNodeWorkWithStaleCache(t *testing.T) {
	remaining := machine(named("cp-1"), object.ControlPlane)
	cases := map[string]struct {
		reason  string
		cluster *clusterv1.Cluster
		live    []client.Object
		want    bool
	}{
		"ControlPlane": {"a control plane Machine is not in the cache", build.Cluster(), []client.Object{build.Cluster(), remaining}, true},
		"Cluster":      {"the Cluster is not in the cache", nil, []client.Object{build.Cluster(), remaining}, true},
		"Neither":      {"there is none in the API server", nil, nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.live...)
			w.Cache.Hide(tc.live...)
			got, err := w.nodeWorkAllowed(t.Context(), &scope{machine: machine(withNode), cluster: tc.cluster})
			if err != nil || got != tc.want {
				t.Errorf("%s: got %v, err = %v", tc.reason, got, err)
			}
		})
	}
}

func TestFinish(t *testing.T) {
	cases := map[string]struct {
		reason string
		live   client.Object
		waits  bool
	}{
		"Gone":           {"no objects are left", nil, false},
		"Infrastructure": {"an infrastructure machine that is not in the cache must not be orphaned", infraMachine(nil), true},
		"Config":         {"a bootstrap config that is not in the cache must not be orphaned", config(nil), true},
		"Foreign":        {"it belongs to another Machine", provided("GenericMachine", infrastructure, machine(named("m-2")), nil), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if tc.live != nil {
				objects = append(objects, tc.live)
			}
			w, m := newWorld(t, objects...), machine(deleting)
			w.Cache.Hide(objects...)
			r, err := w.step(t, "finish", &scope{machine: m})
			if err != nil || r.Ends() != tc.waits || (len(m.Finalizers) > 0) != tc.waits || (r.After() > 0) != tc.waits {
				t.Errorf("%s: waits for %q, finalizers are %q, err = %v", tc.reason, r.Waiting(), m.Finalizers, err)
			}
		})
	}
}

// TestDeleteOwnNodeOnly has a Node with the name in status.nodeRef.
func TestDeleteOwnNodeOnly(t *testing.T) {
	known := func(uid types.UID) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) { withNode(m); m.Status.NodeRef.UID = uid }
	}
	with := func(provider string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Spec.ProviderID = provider }
	}
	cases := map[string]struct {
		reason  string
		machine *clusterv1.Machine
		node    *corev1.Node
		own     bool
	}{
		"Same":             {"the UID is equal", machine(known("node-node-1"), deleting), node(), true},
		"ProviderIDGone":   {"the UID is equal, the provider ID was removed", machine(known("node-node-1"), deleting), node(with("")), true},
		"ProviderIDTaken":  {"the UID is equal, the provider ID was changed", machine(known("node-node-1"), deleting), node(with("test:///other")), true},
		"RegisteredAgain":  {"the same machine has registered again, with the same provider ID", machine(known("uid-before"), deleting), node(), true},
		"Successor":        {"another machine has registered with the name", machine(known("uid-before"), deleting), node(with("test:///other")), false},
		"SuccessorUnknown": {"another machine may have registered, the provider ID is not set yet", machine(known("uid-before"), deleting), node(with("")), false},
		"NoUID":            {"the reference has no UID to compare", machine(withNode, deleting), node(with("")), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, machine(named("cp-1"), object.ControlPlane))
			testenv.Must(t, w.workload.Client.Create(t.Context(), tc.node))
			s := &scope{machine: tc.machine, cluster: build.Cluster()}
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

// TestDeleteNodeWithStaleCache has a Node that is not in the cache: the API server must compare the UID.
func TestDeleteNodeWithStaleCache(t *testing.T) {
	f := &emptyCache{}
	m := machine(withNode, deleting)
	m.Status.NodeRef.UID = "node-node-1"
	if err := deleteOwnNode(t.Context(), f, m); !apierrors.IsConflict(err) {
		t.Errorf("err = %v, want a conflict", err)
	}
	if diff := cmp.Diff(&metav1.Preconditions{UID: ptr.To(types.UID("node-node-1"))}, f.preconditions); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// emptyCache is a client with an empty cache, whose API server has objects with other UIDs.
type emptyCache struct {
	client.Client
	preconditions *metav1.Preconditions
}

// Get implements client.Reader.
func (*emptyCache) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(corev1.Resource("nodes"), key.Name)
}

// Delete implements client.Writer.
func (f *emptyCache) Delete(_ context.Context, obj client.Object, opts ...client.DeleteOption) error {
	f.preconditions = (&client.DeleteOptions{}).ApplyOptions(opts).Preconditions
	return apierrors.NewConflict(corev1.Resource("nodes"), obj.GetName(), errors.New("the UID differs"))
}
