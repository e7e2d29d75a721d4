package machinepool

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// nodesOutcome is the result of the step nodes.
type nodesOutcome struct {
	Refs                          []string
	Ready, Available, Unavailable int32
	Condition                     string
	Again                         time.Duration
	// Writes are those to the workload cluster.
	Writes []string
	Error  string
}

func outcomeOfNodes(w *world, p *clusterv1.MachinePool, result step.Result, err error) nodesOutcome {
	older := p.GetV1Beta1Status()
	out := nodesOutcome{
		Ready: ptr.Deref(older.ReadyReplicas, 0), Available: ptr.Deref(older.AvailableReplicas, 0), Unavailable: ptr.Deref(older.UnavailableReplicas, 0),
		Condition: object.State(p, clusterv1.ReplicasReadyV1Beta1Condition), Again: result.After(), Writes: w.Writes,
	}
	for _, ref := range p.Status.NodeRefs {
		out.Refs = append(out.Refs, ref.Name)
	}
	if err != nil {
		out.Error = err.Error()
	}
	return out
}

// synced gives a Node the annotations of the pool.
func synced(n *corev1.Node) {
	n.Annotations = map[string]string{
		clusterv1.ClusterNameAnnotation: "c", clusterv1.ClusterNamespaceAnnotation: "default",
		clusterv1.OwnerKindAnnotation: "MachinePool", clusterv1.OwnerNameAnnotation: "p",
	}
}

func withID(id string) func(*corev1.Node) { return func(n *corev1.Node) { n.Spec.ProviderID = id } }

func TestNodes(t *testing.T) {
	at := func(d time.Duration) []func(*corev1.Node) { return []func(*corev1.Node){ready(d), synced} }
	minReady := func(p *clusterv1.MachinePool) { p.Spec.Template.Spec.MinReadySeconds = ptr.To(int32(60)) }
	external := func(p *clusterv1.MachinePool) {
		p.Annotations = map[string]string{clusterv1.ReplicasManagedByAnnotation: ""}
		p.Spec.Replicas = ptr.To(int32(7))
	}
	more := func(p *clusterv1.MachinePool) { p.Spec.Replicas = ptr.To(int32(3)) }
	wasReady := func(p *clusterv1.MachinePool) {
		setCounts(p, 1, 1, nil)
		condition.Set(p, condition.True(clusterv1.ReplicasReadyV1Beta1Condition))
	}
	a := object.ProviderID("a")
	tests := map[string]struct {
		reason  string
		pool    *clusterv1.MachinePool
		cluster *clusterv1.Cluster
		err     error
		nodes   map[string][]func(*corev1.Node)
		others  []client.Object
		want    nodesOutcome
	}{
		"Early": {reason: "no machine can join yet: do not connect", pool: pool(withIDs("a")), cluster: build.Cluster(), err: errors.New("connected"),
			want: nodesOutcome{Condition: "False Info WaitingForReplicasReady Waiting for the control plane to be initialized"}},
		"Nothing": {reason: "there are no machines: do not connect", pool: pool(), err: errors.New("connected"),
			want: nodesOutcome{Condition: "False Info WaitingForReplicasReady 0 of 1 replicas are ready"}},
		"Zero": {reason: "none are desired", pool: pool(withIDs()), err: errors.New("connected"), want: nodesOutcome{Condition: "True"}},
		"Connecting": {reason: "the connection is being established", pool: pool(withIDs("a")), err: remote.ErrNotConnected,
			want: nodesOutcome{Condition: "False Info WaitingForReplicasReady Waiting for not connected to the workload cluster"}},
		"Lost": {reason: "without a connection, what was observed last is kept", pool: pool(withIDs("a"), withNodes("a"), wasReady), err: remote.ErrNotConnected,
			want: nodesOutcome{Refs: []string{"a"}, Ready: 1, Available: 1, Condition: "True"}},
		"Rejected": {reason: "a user has to change the kubeconfig", pool: pool(withIDs("a"), withNodes("a"), wasReady),
			err: &remote.NotConnectedError{Cause: &remote.RejectedError{What: "a program", Allow: "exec"}},
			want: nodesOutcome{Refs: []string{"a"}, Ready: 1, Available: 1,
				Condition: "False Info WaitingForReplicasReady Waiting for not connected to the workload cluster /: rejected: a program (only allowed with --workload-cluster-allow=exec)"}},
		"Ready": {reason: "all Nodes are ready", pool: pool(withIDs("a", "b")), nodes: map[string][]func(*corev1.Node){"a": at(0), "b": at(0)},
			want: nodesOutcome{Refs: []string{"a", "b"}, Ready: 2, Available: 2, Condition: "True"}},
		"NotReady": {reason: "one has not joined, another is not ready", pool: pool(withIDs("a", "b", "x")), nodes: map[string][]func(*corev1.Node){"a": at(0), "b": {synced}},
			want: nodesOutcome{Refs: []string{"a", "b"}, Ready: 1, Available: 1, Unavailable: 2, Condition: "False Info WaitingForReplicasReady 1 of 3 replicas are ready"}},
		"ScalingUp": {reason: "the provider has fewer machines than desired", pool: pool(withIDs("a"), more), nodes: map[string][]func(*corev1.Node){"a": at(0)},
			want: nodesOutcome{Refs: []string{"a"}, Ready: 1, Available: 1, Condition: "False Info WaitingForReplicasReady 1 of 3 replicas are ready"}},
		"External": {reason: "spec.replicas of an autoscaler may lag behind", pool: pool(withIDs("a"), external), nodes: map[string][]func(*corev1.Node){"a": at(0)},
			want: nodesOutcome{Refs: []string{"a"}, Ready: 1, Available: 1, Condition: "True"}},
		"MinReady": {reason: "a Node becomes available after a minute", pool: pool(withIDs("a", "b", "d"), minReady),
			nodes: map[string][]func(*corev1.Node){"a": at(time.Minute), "b": at(20 * time.Second), "d": at(50 * time.Second)},
			want:  nodesOutcome{Refs: []string{"a", "b", "d"}, Ready: 3, Available: 1, Unavailable: 2, Condition: "True", Again: 10 * time.Second}},
		"New": {reason: "a new Node is annotated, and its taint removed, with one request", pool: pool(withIDs("a")),
			nodes: map[string][]func(*corev1.Node){"a": {ready(0), func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{clusterv1.NodeUninitializedTaint} }}},
			want:  nodesOutcome{Refs: []string{"a"}, Ready: 1, Available: 1, Condition: "True", Writes: []string{"patch Node a"}}},
		"Managed": {reason: "the Machine controller annotates a Node that has a Machine", pool: pool(withIDs("a")), nodes: map[string][]func(*corev1.Node){"a": {ready(0)}},
			others: []client.Object{object.ControlledBy(build.Machine("m", object.WithNode("a")), pool())},
			want:   nodesOutcome{Refs: []string{"a"}, Ready: 1, Available: 1, Condition: "True"}},
		"Machine": {reason: "the Node of a Machine outside of the pool is not touched", pool: pool(withIDs("a")), nodes: map[string][]func(*corev1.Node){"a": {ready(0)}},
			others: []client.Object{build.Machine("m", object.ControlPlane, object.WithNode("a"))},
			want: nodesOutcome{Unavailable: 1, Again: rivalBackstop,
				Condition: "False Info WaitingForReplicasReady Node a with provider ID test:///a belongs to Machine m"}},
		"OtherCluster": {reason: "a Machine of another Cluster may have the same provider ID", pool: pool(withIDs("a")), nodes: map[string][]func(*corev1.Node){"a": at(0)},
			others: []client.Object{object.Builder{ClusterName: "d"}.Machine("m", object.WithNode("a"))},
			want:   nodesOutcome{Refs: []string{"a"}, Ready: 1, Available: 1, Condition: "True"}},
		"Pool": {reason: "the older of two pools gets a Node", pool: pool(withIDs("a")), nodes: map[string][]func(*corev1.Node){"a": {ready(0)}},
			others: []client.Object{named("older", withIDs("a"), older)},
			want: nodesOutcome{Unavailable: 1, Again: rivalBackstop,
				Condition: "False Info WaitingForReplicasReady Node a with provider ID test:///a belongs to MachinePool older"}},
		"Twins": {reason: "two Nodes claim a provider ID", pool: pool(withIDs("a")), nodes: map[string][]func(*corev1.Node){"a": {ready(0)}, "evil": {ready(0), withID(a)}},
			want: nodesOutcome{Unavailable: 1, Again: rivalBackstop,
				Condition: "False Info WaitingForReplicasReady Nodes a and evil both have provider ID test:///a: delete the one whose machine no longer exists"}},
		"Impostor": {reason: "the Node that the pool has already is the right one", pool: pool(withIDs("a"), withNodes("a")), nodes: map[string][]func(*corev1.Node){"a": at(0), "evil": {ready(0), withID(a)}},
			want: nodesOutcome{Refs: []string{"a"}, Ready: 1, Available: 1, Condition: "True"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(tc.others, tc.pool)...)
			w.workload.Err = tc.err
			for name, with := range tc.nodes {
				w.node(t, name, with...)
			}
			cluster := tc.cluster
			if cluster == nil {
				cluster = build.Cluster(object.Initialized)
			}
			result, err := w.step(t, "nodes", &scope{pool: tc.pool, cluster: cluster})
			if diff := cmp.Diff(tc.want, outcomeOfNodes(w, tc.pool, result, err)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func older(p *clusterv1.MachinePool) { p.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour)) }

// TestSyncedNode compares the whole Node after it was annotated.
func TestSyncedNode(t *testing.T) {
	w := newWorld(t)
	other := corev1.Taint{Key: "other", Effect: corev1.TaintEffectNoSchedule}
	labels := func(n *corev1.Node) { n.Labels = map[string]string{"users": ""} }
	w.node(t, "a", labels, func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{other, clusterv1.NodeUninitializedTaint} })
	p := pool(withIDs("a"))
	if _, err := w.step(t, "nodes", &scope{pool: p, cluster: build.Cluster(object.Initialized)}); err != nil {
		t.Fatal(err)
	}
	got := object.Node("a")
	testenv.Must(t, w.workload.Client.Get(t.Context(), client.ObjectKeyFromObject(got), got))
	want := object.Node("a", labels, synced, func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{other} })
	want.TypeMeta, want.ResourceVersion = got.TypeMeta, got.ResourceVersion
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(refsTo("a"), p.Status.NodeRefs); diff != "" {
		t.Errorf("references (-want +got):\n%s", diff)
	}
}

// TestClaims has two pools with the provider ID of one Node: both agree to whom it belongs.
func TestClaims(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		a, b   *clusterv1.MachinePool
		want   string
	}{
		"Older":  {"the older one", named("a", withIDs("n")), named("b", withIDs("n"), older), "b"},
		"Holder": {"the one that has it, even if it is newer", named("a", withIDs("n"), withNodes("n")), named("b", withIDs("n"), older), "a"},
		"Both":   {"the older one, if both believe to have it", named("a", withIDs("n"), withNodes("n")), named("b", withIDs("n"), withNodes("n"), older), "b"},
		"Twins":  {"that of the smaller UID, if they were created at the same time", named("a", withIDs("n")), named("b", withIDs("n")), "a"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.a, tc.b)
			var got string
			for _, p := range []*clusterv1.MachinePool{tc.a, tc.b} {
				_, rival, err := w.claims(t.Context(), &scope{pool: p}, object.Node("n"))
				testenv.Must(t, err)
				if rival == "" {
					got += p.Name
				}
			}
			if got != tc.want {
				t.Errorf("%s: the Node belongs to %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestRetire(t *testing.T) {
	left := "left"
	tests := map[string]struct {
		reason string
		pool   *clusterv1.MachinePool
		// live is what the infrastructure object has in the API server; the pool has copied the IDs of none of them but a.
		live   []string
		gone   bool
		nodes  map[string][]func(*corev1.Node)
		others []client.Object
		fail   bool
		// removed are the Nodes whose provider IDs were removed from the pool in this reconcile.
		removed []string
		want    nodesOutcome
	}{
		"Late": {reason: "a Node joined right before its machine was removed", pool: pool(withIDs("a"), withNodes("a")), live: []string{"a"}, removed: []string{left},
			nodes: map[string][]func(*corev1.Node){left: nil}, want: nodesOutcome{Refs: []string{"a"}, Writes: []string{"delete Node left"}}},
		"LateFailing": {reason: "it is kept in mind until it is deleted", pool: pool(withIDs("a"), withNodes("a")), live: []string{"a"}, removed: []string{left}, fail: true,
			nodes: map[string][]func(*corev1.Node){left: nil},
			want:  nodesOutcome{Refs: []string{"a", left}, Writes: []string{"delete Node left"}, Error: "deleting Node left: no"}},
		"LateTwins": {reason: "of two Nodes with its ID, at least one is wrong", pool: pool(withIDs("a"), withNodes("a")), live: []string{"a"}, removed: []string{left},
			nodes: map[string][]func(*corev1.Node){left: nil, "twin": {withID(object.ProviderID(left))}}, want: nodesOutcome{Refs: []string{"a"}}},
		"Retired": {reason: "a Node that left the pool is deleted", pool: pool(withIDs("a"), withNodes("a", left)), live: []string{"a"},
			nodes: map[string][]func(*corev1.Node){left: nil}, want: nodesOutcome{Refs: []string{"a"}, Writes: []string{"delete Node left"}}},
		"Gone": {reason: "it is gone already", pool: pool(withIDs("a"), withNodes("a", left)), live: []string{"a"}, want: nodesOutcome{Refs: []string{"a"}}},
		"Stale": {reason: "the provider added it again, and the cache is stale", pool: pool(withIDs("a"), withNodes("a", left)), live: []string{"a", left},
			nodes: map[string][]func(*corev1.Node){left: nil}, want: nodesOutcome{Refs: []string{"a", left}, Error: "GenericMachinePool p is stale in the cache"}},
		"Unknown": {reason: "the infrastructure object is missing: only the provider can remove machines", pool: pool(withIDs("a"), withNodes("a", left)), gone: true,
			nodes: map[string][]func(*corev1.Node){left: nil}, want: nodesOutcome{Refs: []string{"a", left}}},
		"Another": {reason: "another machine registered under its name", pool: pool(withIDs("a"), withNodes("a", left)), live: []string{"a"},
			nodes: map[string][]func(*corev1.Node){left: {func(n *corev1.Node) { n.UID = "another" }}}, want: nodesOutcome{Refs: []string{"a"}}},
		"Machine": {reason: "the Machine controller drains and deletes a Node that has a Machine", pool: pool(withIDs("a"), withNodes("a", left)), live: []string{"a"},
			nodes: map[string][]func(*corev1.Node){left: nil}, others: []client.Object{object.ControlledBy(build.Machine("m", object.WithNode(left)), pool())},
			want: nodesOutcome{Refs: []string{"a"}}},
		"Stolen": {reason: "also if it is that of the control plane", pool: pool(withIDs("a"), withNodes("a", left)), live: []string{"a"},
			nodes: map[string][]func(*corev1.Node){left: nil}, others: []client.Object{build.Machine("m", object.ControlPlane, object.WithNode(left))},
			want: nodesOutcome{Refs: []string{"a"}}},
		"Failing": {reason: "it is kept in mind until it is deleted", pool: pool(withIDs("a"), withNodes("a", left)), live: []string{"a"}, fail: true,
			nodes: map[string][]func(*corev1.Node){left: nil},
			want:  nodesOutcome{Refs: []string{"a", left}, Writes: []string{"delete Node left"}, Error: "deleting Node left: no"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(tc.others, tc.pool)...)
			s := &scope{pool: tc.pool, cluster: build.Cluster(object.Initialized)}
			for _, node := range tc.removed {
				s.removedIDs = append(s.removedIDs, object.ProviderID(node))
			}
			if !tc.gone {
				testenv.Must(t, w.Server.Create(t.Context(), infraWith(tc.live...)))
				infra := contract.InfrastructureMachinePoolOf(contract.Object{Unstructured: infraWith("a")})
				s.infra = &infra
			}
			w.node(t, "a", ready(0), synced)
			for name, with := range tc.nodes {
				w.node(t, name, with...)
			}
			if tc.fail {
				w.workload.After = func(r fakeapi.Request, err error) error {
					if r.Verb == "delete" {
						return errors.New("no")
					}
					return err
				}
			}
			result, err := w.step(t, "nodes", s)
			tc.want.Ready, tc.want.Available = 1, 1
			got := outcomeOfNodes(w, tc.pool, result, err)
			got.Condition = ""
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNodeThatCannotBeWritten does not keep others from being annotated, unless the workload cluster does not respond.
func TestNodeThatCannotBeWritten(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   []string
	}{
		"Rejected": {"a response of the API server", apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "a", nil), []string{"patch Node a", "patch Node b"}},
		"Timeout":  {"no response", errors.New("timeout"), []string{"patch Node a"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.node(t, "a")
			w.node(t, "b")
			w.workload.After = func(r fakeapi.Request, err error) error {
				if r.Verb == "patch" && r.Name == "a" {
					return tc.err
				}
				return err
			}
			p := pool(withIDs("a", "b"))
			_, err := w.step(t, "nodes", &scope{pool: p, cluster: build.Cluster(object.Initialized)})
			if !errors.Is(err, tc.err) {
				t.Errorf("err = %v, want %v", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, w.Writes); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestConflictIsAnEvent reconciles a pool with an ambiguous provider ID twice: one event reports it.
func TestConflictIsAnEvent(t *testing.T) {
	p := pool(withIDs("a"))
	w := newWorld(t, p, build.Cluster(object.Initialized), infraWith("a"))
	w.node(t, "a", ready(0))
	w.node(t, "evil", ready(0), withID(object.ProviderID("a")))
	declared := w.declared()
	declared.Progress = nil
	runner := declared.Runner(w.Controller.Clients)
	for range 2 {
		if _, err := runner.Reconcile(t.Context(), requestFor(p)); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"Warning FailedSetNodeRef Nodes a and evil both have provider ID test:///a: delete the one whose machine no longer exists"}
	if diff := cmp.Diff(want, w.Events()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
