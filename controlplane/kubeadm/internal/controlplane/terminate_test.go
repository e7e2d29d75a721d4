package controlplane

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/internal/plan"
	"sigs.k8s.io/cluster-api/provider/condition"
)

// annotate sets annotations of a Machine that does not have them yet; a nil map removes all.
func (b *bench) annotate(t *testing.T, name string, annotations map[string]string) {
	t.Helper()
	m := &clusterv1.Machine{}
	if err := b.Client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, m); err != nil {
		t.Fatal(err)
	}
	m.Annotations = annotations
	if err := b.Client.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

func TestTerminate(t *testing.T) {
	const hook, others = controlplanev1.PreTerminateHookCleanupAnnotation, clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/mine"
	external := func(b *bench) {
		b.kcp.Spec.KubeadmConfigSpec.ClusterConfiguration = &bootstrapv1.ClusterConfiguration{Etcd: bootstrapv1.Etcd{External: &bootstrapv1.ExternalEtcd{}}}
	}
	cases := []struct {
		reason   string
		deleting []string
		draining string // is not drained yet
		arrange  func(*testing.T, *bench, *fakeCluster)
		away     bool
		actions  []string
		held     []string // Machines that our hook still holds up
		again    bool
		says     string // of Machine b
	}{
		{reason: "nothing is being deleted", held: []string{"a", "b", "c"}},
		{reason: "whoever deletes a Machine, its member leaves before its infrastructure goes", deleting: []string{"b"}, actions: []string{"remove b"}, held: []string{"a", "c"}},
		{reason: "the drain needs the member", deleting: []string{"b"}, draining: "b", held: []string{"a", "b", "c"}},
		{
			reason: "so may hooks of others", deleting: []string{"b"}, held: []string{"a", "b", "c"},
			arrange: func(t *testing.T, b *bench, _ *fakeCluster) {
				b.annotate(t, "b", map[string]string{hook: "", others: ""})
			},
		},
		{reason: "a leader hands over to the newest that stays", deleting: []string{"a"}, actions: []string{"lead c", "remove a"}, held: []string{"b", "c"}},
		{reason: "two at once leave one after another", deleting: []string{"a", "b"}, actions: []string{"lead c", "remove a", "remove b"}, held: []string{"c"}},
		{
			reason: "the last member stays, and its Machine with it", deleting: []string{"a", "c", "b"}, again: true,
			actions: []string{"lead c", "remove a", "lead b", "remove c"}, held: []string{"b"}, says: "the last one cannot be removed",
		},
		{
			reason: "the others would have no quorum", deleting: []string{"b"}, again: true, held: []string{"a", "b", "c"},
			arrange: func(_ *testing.T, _ *bench, f *fakeCluster) { f.etcd["c"] = false }, says: "2 healthy etcd members besides b, there are 1",
		},
		{
			reason: "there is no quorum already", deleting: []string{"b"}, again: true, held: []string{"a", "b", "c"},
			arrange: func(_ *testing.T, _ *bench, f *fakeCluster) { f.etcd["c"], f.etcd["a"] = false, false }, says: "an etcd member that answers",
		},
		{
			reason: "a member that has left already, before an interruption", deleting: []string{"b"}, held: []string{"a", "c"},
			arrange: func(_ *testing.T, _ *bench, f *fakeCluster) { delete(f.etcd, "b") },
		},
		{reason: "the workload cluster is away", away: true, deleting: []string{"b"}, again: true, held: []string{"a", "b", "c"}, says: "the workload cluster to be reachable"},
		{
			reason: "without our hook it leaves at once, as nothing holds up the rest", deleting: []string{"b"}, draining: "b", actions: []string{"remove b"}, held: []string{"a", "c"},
			arrange: func(t *testing.T, b *bench, _ *fakeCluster) { b.annotate(t, "b", nil) },
		},
		{
			reason: "an external etcd has no members here", deleting: []string{"b"}, draining: "b", held: []string{"a", "c"},
			arrange: func(_ *testing.T, b *bench, _ *fakeCluster) { external(b) },
		},
		{
			reason: "before the cluster is initialised there is nothing to lose", away: true, deleting: []string{"b"}, held: []string{"a", "c"},
			arrange: func(_ *testing.T, b *bench, _ *fakeCluster) { b.kcp.Status.Initialized = false },
		},
		{
			reason: "that the cache says so is not enough", away: true, deleting: []string{"b"}, held: []string{"a", "b", "c"},
			arrange: func(_ *testing.T, b *bench, _ *fakeCluster) {
				b.live = b.kcp.DeepCopy()
				b.kcp.Status.Initialized = false
			},
		},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			b, f := three(t)
			if tc.arrange != nil {
				tc.arrange(t, b, f)
			}
			b.deleted(t, tc.deleting...)
			for _, name := range tc.deleting {
				if name != tc.draining {
					b.drained(t, name)
				}
			}
			reload(t, b, f)
			for i, name := range tc.deleting { // one after another
				b.named(name).DeletionTimestamp = &metav1.Time{Time: now.Add(time.Duration(i) * time.Second)}
			}
			if tc.away {
				b.workload, b.observed, b.lost = nil, nil, true
			}
			result, err := b.terminate(t.Context(), b.scope)
			if err != nil || (result.After() > 0) != tc.again {
				t.Errorf("result %+v, error %v", result, err)
			}
			if diff := cmp.Diff(tc.actions, f.actions()); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
			if got := b.held(t); !slices.Equal(tc.held, got) || len(f.quorumLost) > 0 {
				t.Errorf("held are %q, want %q; quorum lost: %q", got, tc.held, f.quorumLost)
			}
			said := condition.Get(b.named("b"), controlplanev1.MachineEtcdMemberHealthyCondition)
			if (said.Message == "") != (tc.says == "") || !strings.Contains(said.Message, tc.says) {
				t.Errorf("it says %q, want %q", said.Message, tc.says)
			}
		})
	}
}

// held are the Machines that have our hook, as the API server has them.
func (b *bench) held(t *testing.T) []string {
	t.Helper()
	list := &clusterv1.MachineList{}
	if err := b.Client.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		if hooked(&list.Items[i]) {
			names = append(names, list.Items[i].Name)
		}
	}
	return names
}

// Whoever deletes all Machines of a control plane gets new ones: the last member stays until another one has joined.
func TestTheLastMachineIsReplacedBeforeItGoes(t *testing.T) {
	b, f := three(t)
	b.deleted(t, "a", "b", "c")
	for _, name := range []string{"a", "b", "c"} {
		b.drained(t, name)
	}
	b.play(t, f) // all but one leave
	for _, name := range []string{"a", "b", "c"} {
		if m := b.named(name); !hooked(m.Machine) { // the Machine controller finishes
			m.Finalizers = nil
			if err := b.Client.Update(t.Context(), m.Machine); err != nil {
				t.Fatal(err)
			}
		}
	}
	reload(t, b, f)
	if len(b.machines) != 1 || len(f.members()) != 1 {
		t.Fatalf("%d Machines and members %q are left, want one of each", len(b.machines), f.members())
	}
	if action := plan.Next(b.planned()); action.Kind != plan.ScaleUp || len(action.Blocked) > 0 {
		t.Errorf("the plan is %+v, want another Machine", action)
	}
	if len(f.quorumLost) > 0 {
		t.Errorf("the quorum was lost: %q", f.quorumLost)
	}
}

// What holds up a deletion is announced once, and a connection that is away for a moment is not worth it.
func TestWhatHoldsUpADeletionIsSaidOnce(t *testing.T) {
	b, f := three(t)
	f.etcd["c"] = false
	b.deleted(t, "b")
	b.drained(t, "b")
	for round, want := range []int{1, 0, 0} {
		reload(t, b, f)
		if round == 2 {
			b.workload, b.observed = nil, nil
		}
		b.writes = nil
		if _, err := b.inspect(t.Context(), b.scope); err != nil {
			t.Fatal(err)
		}
		b.statusWrites = 0
		if _, err := b.terminate(t.Context(), b.scope); err != nil {
			t.Fatal(err)
		}
		if b.statusWrites != want {
			t.Errorf("round %d: %d writes of status, want %d", round, b.statusWrites, want)
		}
	}
}

// refusing is a workload cluster that refuses removals, each time in other words.
type refusing struct {
	*fakeCluster
	refused int
}

func (r *refusing) RemoveEtcdMember(context.Context, string, []string) error {
	r.refused++
	return fmt.Errorf("refused %d times by %s", r.refused, strings.Repeat("x", 2*maxBrief))
}

// Why a Machine cannot be let go is stated with the reason, once, and not at length.
func TestWhyAMachineCannotBeLetGo(t *testing.T) {
	b, f := three(t)
	b.deleted(t, "b")
	b.drained(t, "b")
	r := &refusing{fakeCluster: f}
	for round, want := range []int{1, 0} {
		reload(t, b, f)
		b.workload, b.statusWrites = r, 0
		if _, err := b.terminate(t.Context(), b.scope); err == nil {
			t.Fatal("the refusal is not an error")
		}
		if b.statusWrites != want {
			t.Errorf("round %d: %d writes of status, want %d", round, b.statusWrites, want)
		}
		said := condition.Get(b.named("b"), controlplanev1.MachineEtcdMemberHealthyCondition).Message
		if !strings.Contains(said, "removing etcd member b: refused 1 times") || len(said) > maxBrief+100 {
			t.Errorf("round %d: it says %q", round, said)
		}
	}
}
