package clusterrollout

import (
	"context"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// world is a management cluster with a rollout, whose user is alice. meanwhile, if set, happens once before the next patch.
type world struct {
	t *testing.T
	client.Client
	meanwhile func(*fleetv1.ClusterRollout)
	patches   int
}

func newWorld(t *testing.T, r *fleetv1.ClusterRollout) *world {
	t.Helper()
	w := &world{t: t}
	inner := server(t, r)
	w.Client = interceptor.NewClient(inner, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if review, ok := obj.(*authenticationv1.SelfSubjectReview); ok {
				review.Status.UserInfo.Username = "alice"
				return nil
			}
			return c.Create(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			w.patches++
			if change := w.meanwhile; change != nil {
				w.meanwhile = nil
				other := &fleetv1.ClusterRollout{}
				testenv.Must(t, c.Get(ctx, client.ObjectKeyFromObject(obj), other))
				change(other)
				testenv.Must(t, c.Status().Update(ctx, other))
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
	})
	return w
}

func (w *world) changes() *Changes {
	return &Changes{
		Client: w, Key: client.ObjectKey{Namespace: "default", Name: "up"}, Now: func() time.Time { return now }, Backoff: wait.Backoff{Steps: 3},
	}
}

func (w *world) rollout() *fleetv1.ClusterRollout {
	w.t.Helper()
	r, err := Get(w.t.Context(), w, client.ObjectKey{Namespace: "default", Name: "up"})
	testenv.Must(w.t, err)
	return r
}

// TestApprove approves the stage that waits, once.
func TestApprove(t *testing.T) {
	w := newWorld(t, running(fleetv1.RolloutWaitingForApproval))
	w.meanwhile = func(r *fleetv1.ClusterRollout) { r.Status.Done = ptr.To[int32](1) }
	stage, done, err := w.changes().Approve(t.Context(), "", "abc")
	testenv.Must(t, err)
	got := w.rollout().Spec.Approvals
	if stage != "rest" || done.Before || w.patches != 2 || len(got) != 1 || got[0].User != "alice" || got[0].PlanHash != "abc" || !got[0].Time.Time.Equal(now) {
		t.Errorf("stage %s, %d patches, approvals %+v", stage, w.patches, got)
	}
	if _, done, err = w.changes().Approve(t.Context(), "rest", ""); err != nil || !done.Before || w.patches != 2 {
		t.Errorf("again: %+v, %v, %d patches", done, err, w.patches)
	}
}

// TestApproveChangedPlan: what was not seen is not approved.
func TestApproveChangedPlan(t *testing.T) {
	w := newWorld(t, running(fleetv1.RolloutWaitingForApproval))
	w.meanwhile = func(r *fleetv1.ClusterRollout) { r.Status.Plan.Hash = "def" }
	_, _, err := w.changes().Approve(t.Context(), "", "")
	if err == nil || !strings.Contains(err.Error(), "its plan is now def, not abc") || len(w.rollout().Spec.Approvals) > 0 {
		t.Errorf("error %v, approvals %+v", err, w.rollout().Spec.Approvals)
	}
}

func TestRefusedChanges(t *testing.T) {
	planning := running(fleetv1.RolloutPlanning)
	planning.Status.Plan.Hash = ""
	versionOnly := running(fleetv1.RolloutHalted)
	versionOnly.Spec.Change.ClassRef.Name = ""
	aborted := running(fleetv1.RolloutHalted)
	aborted.Spec.Abort = fleetv1.RolloutAbortStop
	approve := func(stage, hash string) func(*Changes) error {
		return func(c *Changes) error { _, _, err := c.Approve(t.Context(), stage, hash); return err }
	}
	abort := func(rollback bool) func(*Changes) error {
		return func(c *Changes) error { _, err := c.Abort(t.Context(), rollback); return err }
	}
	retry := func(c *Changes) error { _, err := c.Retry(t.Context()); return err }
	for _, tc := range []struct {
		reason  string
		rollout *fleetv1.ClusterRollout
		do      func(*Changes) error
		want    string
	}{
		{"a plan is required", planning, approve("", ""), "its plan is not complete yet"},
		{"another plan", running(fleetv1.RolloutWaitingForApproval), approve("", "old"), "its plan is now abc, not old"},
		{"no stage waits", running(fleetv1.RolloutProgressing), approve("", ""), "no stage waits for an approval, its phase is Progressing"},
		{"a stage without gate", running(fleetv1.RolloutProgressing), approve("canary", ""), "stage canary needs no approval: those that do are: rest"},
		{"approval after the end", running(fleetv1.RolloutCompleted), approve("", ""), "it has ended, as Completed"},
		{"abort after the end", running(fleetv1.RolloutCompleted), abort(false), "it has ended, as Completed"},
		{"nothing goes back", versionOnly, abort(true), "nothing of it can go back: version v1.31.0"},
		{"nothing to retry", running(fleetv1.RolloutProgressing), retry, "there is nothing to retry"},
		{"retry after abort", aborted, retry, "it is aborted"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, tc.rollout)
			if err := tc.do(w.changes()); err == nil || !strings.Contains(err.Error(), tc.want) || w.patches > 0 {
				t.Errorf("error %v, want %q; %d patches", err, tc.want, w.patches)
			}
		})
	}
}

// TestAbort ends a rollout; a rollback may follow.
func TestAbort(t *testing.T) {
	w := newWorld(t, running(fleetv1.RolloutProgressing))
	for _, tc := range []struct {
		rollback, before bool
		want             fleetv1.RolloutAbort
	}{{false, false, fleetv1.RolloutAbortStop}, {false, true, fleetv1.RolloutAbortStop}, {true, false, fleetv1.RolloutAbortRollback}} {
		done, err := w.changes().Abort(t.Context(), tc.rollback)
		if err != nil || done.Before != tc.before || w.rollout().Spec.Abort != tc.want {
			t.Errorf("abort is %s, done %+v, %v, want %+v", w.rollout().Spec.Abort, done, err, tc)
		}
	}
}

// TestRetry increases the attempt once until the controller has seen it.
func TestRetry(t *testing.T) {
	w := newWorld(t, running(fleetv1.RolloutHalted))
	done, err := w.changes().Retry(t.Context())
	if err != nil || done.Before || ptr.Deref(w.rollout().Spec.Attempt, 0) != 1 {
		t.Errorf("attempt %v, %+v, %v", w.rollout().Spec.Attempt, done, err)
	}
	r := w.rollout()
	r.Generation = 2
	testenv.Must(t, w.Update(t.Context(), r))
	if done, err = w.changes().Retry(t.Context()); err != nil || !done.Before || ptr.Deref(w.rollout().Spec.Attempt, 0) != 1 {
		t.Errorf("again: attempt %v, %+v, %v", w.rollout().Spec.Attempt, done, err)
	}
}
