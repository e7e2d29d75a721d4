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
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/remote"
	"sigs.k8s.io/cluster-api/provider/step"
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
	goneSoon := func(c *clusterv1.Cluster) { c.DeletionTimestamp = &metav1.Time{Time: now} }
	lives := machine(named("cp-1"), controlPlane)
	dying := plane(nil)
	dying.SetDeletionTimestamp(&metav1.Time{Time: now})
	dying.SetFinalizers([]string{"x/y"})
	cases := map[string]struct {
		reason  string
		machine *clusterv1.Machine
		cluster *clusterv1.Cluster
		there   []client.Object
		want    bool
	}{
		"Usual":             {"the cluster goes on", machine(withNode), cluster(managed), []client.Object{plane(nil), lives}, true},
		"NoNode":            {"there is nothing to work on", machine(withProviderID), cluster(managed), []client.Object{plane(nil), lives}, false},
		"NoCluster":         {"the Cluster is gone", machine(withNode), nil, []client.Object{plane(nil), lives}, false},
		"ClusterDeleting":   {"the Cluster goes", machine(withNode), cluster(managed, goneSoon), []client.Object{plane(nil), lives}, false},
		"PlaneDeleting":     {"the control plane goes", machine(withNode), cluster(managed), []client.Object{dying, lives}, false},
		"PlaneGone":         {"Machines decide without a control plane object", machine(withNode), cluster(managed), []client.Object{lives}, true},
		"NoPlane":           {"and where there never was one", machine(withNode), cluster(), []client.Object{lives}, true},
		"LastOne":           {"nobody would take over", machine(withNode, controlPlane, deleting), cluster(managed), []client.Object{plane(nil), machine(withNode, controlPlane, deleting)}, false},
		"ExternallyManaged": {"such a control plane has no Machines", machine(withNode), cluster(managed), []client.Object{plane(fields{"status": fields{"externalManagedControlPlane": true}})}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := newWorld(t, tc.there...).nodeWorkAllowed(t.Context(), &scope{machine: tc.machine, cluster: tc.cluster})
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
		"None":         {"all done", machine(withNode), clusterv1.Conditions{drained, nodeDeleting, condition.True(before), condition.True(after), detached}, false},
		"PreDrain":     {"nothing before it is lifted", machine(withNode, annotated(preDrain, ""), annotated(preTerminate, "")), clusterv1.Conditions{held(before, preDrain)}, true},
		"PreTerminate": {"everything but the machine itself", machine(withNode, annotated(preTerminate, "")), clusterv1.Conditions{drained, condition.True(before), held(after, preTerminate), detached}, true},
		"WithoutNode":  {"before termination hooks count even without a Node", machine(annotated(preDrain, ""), annotated(preTerminate, "")), clusterv1.Conditions{held(after, preTerminate)}, true},
		"NoNode":       {"no hook before termination is left, whatever happened before", machine(), clusterv1.Conditions{nodeDeleting, condition.True(after)}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, machine(named("cp-1"), controlPlane))
			s := &scope{machine: tc.machine, cluster: cluster()}
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
	others := provided("GenericMachine", infrastructure, machine(named("m-2")), nil)
	says := func(reason, message string) clusterv1.Condition {
		return condition.False(clusterv1.InfrastructureReadyCondition, clusterv1.ConditionSeverityInfo, reason, "%s", message)
	}
	cases := map[string]struct {
		reason string
		infra  client.Object
		want   clusterv1.Condition
		writes []string
		waits  bool
	}{
		"There":  {"it is deleted and awaited", held, says(clusterv1.DeletingReason, "Waiting for GenericMachine m-1 to be deleted"), []string{"delete m-1"}, true},
		"Gone":   {"deletion goes on", nil, says(clusterv1.DeletedReason, ""), nil, false},
		"Others": {"what belongs to another Machine stays", others, says(clusterv1.DeletedReason, ""), nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var there []client.Object
			if tc.infra != nil {
				there = append(there, tc.infra)
			}
			w, m := newWorld(t, there...), machine(deleting)
			for range 2 {
				r, err := w.step(t, "delete-infrastructure", &scope{machine: m, cluster: cluster()})
				if err != nil || r.Ends() != tc.waits {
					t.Errorf("%s: waits for %q, err = %v", tc.reason, r.Waiting(), err)
				}
			}
			if diff := cmp.Diff(tc.writes, w.Writes); diff != "" {
				t.Errorf("%s, and only once, -want +got:\n%s", tc.reason, diff)
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
		"Deleted":   {"there is no machine behind it any more", machine(withNode, deleting), nil, nil, []string{"delete node-1"}, false},
		"NoNode":    {"nothing to delete", machine(deleting), errors.New("asked"), nil, nil, false},
		"Away":      {"it is tried again", machine(withNode, deleting, limit(10*time.Second)), remote.ErrNotConnected, failed, nil, true},
		"GivesUp":   {"for as long as allowed", machine(withNode, deleting, limit(500*time.Millisecond)), remote.ErrNotConnected, nil, nil, false},
		"NoLimit":   {"without limit forever", machine(withNode, deleting), errors.New("forbidden"), failed, nil, true},
		"ZeroLimit": {"zero is no limit", machine(withNode, deleting, limit(0)), errors.New("forbidden"), failed, nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, machine(named("cp-1"), controlPlane))
			if err := w.workload.Create(t.Context(), node()); err != nil {
				t.Fatal(err)
			}
			w.Writes, w.away = nil, tc.away
			r, err := w.step(t, "delete-node", &scope{machine: tc.machine, cluster: cluster()})
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

// TestSkippedWorkIsDecidedLive has a cache that is older than what it is asked about.
func TestSkippedWorkIsDecidedLive(t *testing.T) {
	lives := machine(named("cp-1"), controlPlane)
	cases := map[string]struct {
		reason  string
		cluster *clusterv1.Cluster
		live    []client.Object
		want    bool
	}{
		"ControlPlane": {"the cache has no control plane Machine, but there is one", cluster(), []client.Object{cluster(), lives}, true},
		"Cluster":      {"the cache has no Cluster, but there is one", nil, []client.Object{cluster(), lives}, true},
		"Neither":      {"there really is none", nil, nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Live = newWorld(t, tc.live...).Client
			got, err := w.nodeWorkAllowed(t.Context(), &scope{machine: machine(withNode), cluster: tc.cluster})
			if err != nil || got != tc.want {
				t.Errorf("%s: got %v, err = %v", tc.reason, got, err)
			}
		})
	}
}

func TestFinishLooksLive(t *testing.T) {
	cases := map[string]struct {
		reason string
		live   client.Object
		waits  bool
	}{
		"Gone":           {"nothing is left", nil, false},
		"Infrastructure": {"a machine that the cache does not know would run forever", infraMachine(nil), true},
		"Config":         {"nor may this be left", config(nil), true},
		"Others":         {"what another Machine has is none of ours", provided("GenericMachine", infrastructure, machine(named("m-2")), nil), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var there []client.Object
			if tc.live != nil {
				there = append(there, tc.live)
			}
			w, m := newWorld(t), machine(deleting)
			w.Live = newWorld(t, there...).Client
			r, err := w.step(t, "finish", &scope{machine: m})
			if err != nil || r.Ends() != tc.waits || (len(m.Finalizers) > 0) != tc.waits || (r.After() > 0) != tc.waits {
				t.Errorf("%s: waits for %q, finalizers are %q, err = %v", tc.reason, r.Waiting(), m.Finalizers, err)
			}
		})
	}
}

// TestDeleteNodeOfAnother has a Node of the name that the Machine remembers.
func TestDeleteNodeOfAnother(t *testing.T) {
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
		ours    bool
	}{
		"Same":             {"the UID is that of the Node that was found", machine(known("uid-node-1"), deleting), node(), true},
		"ProviderIDGone":   {"the UID counts, whatever else the Node says", machine(known("uid-node-1"), deleting), node(with("")), true},
		"ProviderIDTaken":  {"it may claim to be another machine's", machine(known("uid-node-1"), deleting), node(with("test:///other")), true},
		"RegisteredAnew":   {"the same machine has registered again", machine(known("uid-before"), deleting), node(), true},
		"Successor":        {"another machine has the name now", machine(known("uid-before"), deleting), node(with("test:///other")), false},
		"SuccessorUnknown": {"nobody knows yet whose it is", machine(known("uid-before"), deleting), node(with("")), false},
		"NoUID":            {"a reference without UID is only a name", machine(withNode, deleting), node(with("")), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, machine(named("cp-1"), controlPlane))
			if err := w.workload.Create(t.Context(), tc.node); err != nil {
				t.Fatal(err)
			}
			w.Writes = nil
			s := &scope{machine: tc.machine, cluster: cluster()}
			if r, err := w.step(t, "drain", s); err != nil || r.Ends() || (w.drained > 0) != tc.ours {
				t.Errorf("%s: drained %d times, waits for %q, err = %v", tc.reason, w.drained, r.Waiting(), err)
			}
			if r, err := w.step(t, "delete-node", s); err != nil || r.Ends() || (len(w.Writes) > 0) != tc.ours {
				t.Errorf("%s: wrote %q, waits for %q, err = %v", tc.reason, w.Writes, r.Waiting(), err)
			}
			err := w.workload.Get(t.Context(), client.ObjectKeyFromObject(tc.node), &corev1.Node{})
			if gone := apierrors.IsNotFound(err); gone != tc.ours {
				t.Errorf("%s: is the Node gone? %t, err = %v", tc.reason, gone, err)
			}
		})
	}
}

// TestDeleteNodeOfStaleCache has a cache that lacks the Node, which may be another one by now: the API server must compare.
func TestDeleteNodeOfStaleCache(t *testing.T) {
	f := &forgetful{}
	m := machine(withNode, deleting)
	m.Status.NodeRef.UID = "uid-node-1"
	if err := deleteOwnNode(t.Context(), f, m); !apierrors.IsConflict(err) {
		t.Errorf("err = %v, want a conflict", err)
	}
	if diff := cmp.Diff(&metav1.Preconditions{UID: ptr.To(types.UID("uid-node-1"))}, f.preconditions); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// forgetful is a client whose cache has nothing, and whose API server has other objects than those that are deleted.
type forgetful struct {
	client.Client
	preconditions *metav1.Preconditions
}

// Get implements client.Reader.
func (*forgetful) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(corev1.Resource("nodes"), key.Name)
}

// Delete implements client.Writer.
func (f *forgetful) Delete(_ context.Context, obj client.Object, opts ...client.DeleteOption) error {
	f.preconditions = (&client.DeleteOptions{}).ApplyOptions(opts).Preconditions
	return apierrors.NewConflict(corev1.Resource("nodes"), obj.GetName(), errors.New("the UID is another one"))
}
