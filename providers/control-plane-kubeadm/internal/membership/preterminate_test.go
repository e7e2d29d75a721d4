package membership

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/health"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func TestPreTerminate(t *testing.T) {
	const hook, others = controlplanev1.PreTerminateHookCleanupAnnotation, clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/mine"
	external := func(b *bench) { b.KCP.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.CAFile = "ca" }
	cases := []struct {
		reason   string
		deleting []string
		draining string // not drained yet
		arrange  func(*testing.T, *bench, *kcptest.Workload)
		away     bool
		actions  []string
		held     []string // Machines that still have our hook
		again    bool
		message  string // of Machine b
	}{
		{reason: "nothing is being deleted", held: []string{"a", "b", "c"}},
		{reason: "the member is removed before the infrastructure is deleted", deleting: []string{"b"}, actions: []string{"remove b"}, held: []string{"a", "c"}},
		{reason: "the drain needs the member", deleting: []string{"b"}, draining: "b", held: []string{"a", "b", "c"}},
		{
			reason: "other hooks may need it, too", deleting: []string{"b"}, held: []string{"a", "b", "c"},
			arrange: func(t *testing.T, b *bench, _ *kcptest.Workload) {
				b.Annotate(t, "b", map[string]string{hook: "", others: ""})
			},
		},
		{reason: "leadership moves to the newest Machine that is not being deleted", deleting: []string{"a"}, actions: []string{"lead c", "remove a"}, held: []string{"b", "c"}},
		{reason: "two are removed one after another", deleting: []string{"a", "b"}, actions: []string{"lead c", "remove a", "remove b"}, held: []string{"c"}},
		{
			reason: "the last member is not removed", deleting: []string{"a", "c", "b"}, again: true,
			actions: []string{"lead c", "remove a", "lead b", "remove c"}, held: []string{"b"}, message: "the last one cannot be removed",
		},
		{
			reason: "the others would have no quorum", deleting: []string{"b"}, again: true, held: []string{"a", "b", "c"},
			arrange: func(_ *testing.T, _ *bench, f *kcptest.Workload) { f.Members["c"] = false }, message: "2 healthy etcd members other than b (found 1)",
		},
		{
			reason: "there is no quorum", deleting: []string{"b"}, again: true, held: []string{"a", "b", "c"},
			arrange: func(_ *testing.T, _ *bench, f *kcptest.Workload) { f.Members["c"], f.Members["a"] = false, false }, message: "an etcd member that responds",
		},
		{
			reason: "the member was removed before an interruption", deleting: []string{"b"}, held: []string{"a", "c"},
			arrange: func(_ *testing.T, _ *bench, f *kcptest.Workload) { delete(f.Members, "b") },
		},
		{reason: "the workload cluster is unreachable", away: true, deleting: []string{"b"}, again: true, held: []string{"a", "b", "c"}, message: "the workload cluster to be reachable"},
		{
			reason: "without our hook, the member is removed immediately", deleting: []string{"b"}, draining: "b", actions: []string{"remove b"}, held: []string{"a", "c"},
			arrange: func(t *testing.T, b *bench, _ *kcptest.Workload) { b.Annotate(t, "b", nil) },
		},
		{
			reason: "members of an external etcd are not removed", deleting: []string{"b"}, draining: "b", held: []string{"a", "c"},
			arrange: func(_ *testing.T, b *bench, _ *kcptest.Workload) { external(b) },
		},
		{
			reason: "before the cluster is initialized there is nothing to lose", away: true, deleting: []string{"b"}, held: []string{"a", "c"},
			arrange: func(_ *testing.T, b *bench, _ *kcptest.Workload) {
				b.KCP.Status.Initialization.ControlPlaneInitialized = nil
			},
		},
		{
			reason: "the cluster is initialized, and the cache is stale", away: true, deleting: []string{"b"}, held: []string{"a", "b", "c"},
			arrange: func(_ *testing.T, b *bench, _ *kcptest.Workload) {
				b.Diverge()
				b.KCP.Status.Initialization.ControlPlaneInitialized = nil
			},
		},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			b, f := three(t)
			if tc.arrange != nil {
				tc.arrange(t, b, f)
			}
			b.Deleted(t, tc.deleting...)
			for _, name := range tc.deleting {
				if name != tc.draining {
					b.Drained(t, name)
				}
			}
			reload(t, b, f)
			for i, name := range tc.deleting { // one after another
				b.Named(name).DeletionTimestamp = &metav1.Time{Time: object.Now().Add(time.Duration(i) * time.Second)}
			}
			if tc.away {
				b.workload, b.observed, b.lost = nil, nil, true
			}
			result, err := b.remover().PreTerminate(t.Context(), b.state())
			if err != nil || (result.After() > 0) != tc.again {
				t.Errorf("result %+v, error %v", result, err)
			}
			if diff := cmp.Diff(tc.actions, f.Actions()); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
			if got := b.Held(t); !slices.Equal(tc.held, got) || len(f.QuorumLost) > 0 {
				t.Errorf("held are %q, want %q; quorum lost: %q", got, tc.held, f.QuorumLost)
			}
			reported := condition.Get(b.Named("b"), controlplanev1.MachineEtcdMemberHealthyV1Beta1Condition)
			if (reported.Message == "") != (tc.message == "") || !strings.Contains(reported.Message, tc.message) {
				t.Errorf("message %q, want %q", reported.Message, tc.message)
			}
		})
	}
}

// What a deletion waits for is reported once. A connection that is missing for a moment is not reported.
func TestWaitsAreReportedOnce(t *testing.T) {
	b, f := three(t)
	f.Members["c"] = false
	b.Deleted(t, "b")
	b.Drained(t, "b")
	for round, want := range []int{1, 0, 0} {
		reload(t, b, f)
		if round == 2 {
			b.workload, b.observed = nil, nil
		} else {
			for _, m := range b.Machines { // as the step inspect does
				testenv.Must(t, b.SetConditions(t.Context(), m.Machine, health.Conditions(b.ControlPlane, m, b.observed)...))
			}
		}
		b.API.Writes = nil
		if _, err := b.remover().PreTerminate(t.Context(), b.state()); err != nil {
			t.Fatal(err)
		}
		if b.StatusWrites() != want {
			t.Errorf("round %d: %d writes of status, want %d", round, b.StatusWrites(), want)
		}
	}
}

// A failure is an event. A wait is none: when the last Machine is deleted, nothing has failed.
func TestEventsAreAboutFailures(t *testing.T) {
	for _, tc := range []struct {
		reason string
		change func(b *bench, f *kcptest.Workload)
		want   string
	}{
		{"a wait for a healthy member", func(_ *bench, f *kcptest.Workload) { f.Members["c"] = false }, ""},
		{
			"a rejected removal", func(b *bench, f *kcptest.Workload) { b.workload = &refusing{Workload: f} },
			"Warning FailedScaleDown Machine b is held until its etcd member is removed, which failed and is retried: ",
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			b, f := three(t)
			b.Deleted(t, "b")
			b.Drained(t, "b")
			reload(t, b, f)
			tc.change(b, f)
			if b.workload == Workload(f) {
				reload(t, b, f)
			}
			declared := step.Controller[*controlplanev1.KubeadmControlPlane, *bench]{
				Name:  "test",
				New:   func() *controlplanev1.KubeadmControlPlane { return &controlplanev1.KubeadmControlPlane{} },
				Scope: func(context.Context, *controlplanev1.KubeadmControlPlane) (*bench, error) { return b, nil },
				Steps: []step.Step[*bench]{step.Do("pre-terminate", func(ctx context.Context, b *bench) (step.Result, error) {
					return b.remover().PreTerminate(ctx, b.state())
				})},
			}
			kcp := b.KCP.DeepCopy()
			kcp.ResourceVersion = ""
			testenv.Must(t, b.API.Create(t.Context(), kcp))
			runner := declared.Runner(step.Clients{Client: b.Client, Live: b.API, Recorder: b.Recorder, Clock: b.Clock})
			_, err := runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b.KCP)})
			if (err != nil) != (tc.want != "") {
				t.Errorf("error %v", err)
			}
			if got := strings.Join(b.API.Events(), "\n"); (got == "") != (tc.want == "") || !strings.HasPrefix(got, tc.want) {
				t.Errorf("events %q, want %q", got, tc.want)
			}
		})
	}
}

// refusing is a workload cluster that rejects removals with different messages.
type refusing struct {
	*kcptest.Workload
	refused int
}

func (r *refusing) RemoveEtcdMember(context.Context, string, []string) error {
	r.refused++
	return fmt.Errorf("rejected %d times by %s", r.refused, strings.Repeat("x", 2*condition.BriefLength))
}

// An error is reported once, and truncated.
func TestErrorsAreReportedOnce(t *testing.T) {
	b, f := three(t)
	b.Deleted(t, "b")
	b.Drained(t, "b")
	r := &refusing{Workload: f}
	for round, want := range []int{1, 0} {
		reload(t, b, f)
		b.workload, b.API.Writes = r, nil
		if _, err := b.remover().PreTerminate(t.Context(), b.state()); err == nil {
			t.Fatal("there is no error")
		}
		if b.StatusWrites() != want {
			t.Errorf("round %d: %d writes of status, want %d", round, b.StatusWrites(), want)
		}
		reported := condition.Get(b.Named("b"), controlplanev1.MachineEtcdMemberHealthyV1Beta1Condition).Message
		if !strings.Contains(reported, "removing etcd member b: rejected 1 times") || len(reported) > condition.BriefLength+100 {
			t.Errorf("round %d: message %q", round, reported)
		}
	}
}

// Another leader may have answered an operation that this process has not seen. Whether there is one is read once.
func TestMembersOfAHeldControlPlaneStay(t *testing.T) {
	b, f := three(t)
	b.Diverge()
	b.LiveKCP.Annotations = map[string]string{fleetv1.OperationAnnotation: "{}"}
	r := b.remover()
	remove := func(name string) error {
		b.Deleted(t, name)
		b.Drained(t, name)
		reload(t, b, f)
		_, err := r.PreTerminate(t.Context(), b.state())
		return err
	}
	if err := remove("b"); !step.IsStale(err) || len(f.Actions()) != 0 {
		t.Errorf("error %v, actions %q; want to wait for the cache", err, f.Actions())
	}
	delete(b.LiveKCP.Annotations, fleetv1.OperationAnnotation)
	b.API.LiveReads = nil
	testenv.Must(t, remove("b"))
	testenv.Must(t, remove("c"))
	if members := f.MemberNames(); len(members) != 1 || len(b.API.LiveReads) != 1 {
		t.Errorf("members %q, %d reads past the cache", members, len(b.API.LiveReads))
	}
}
