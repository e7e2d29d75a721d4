package rollout

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/rolloutplan"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
)

const enough = 60

func TestStepsAreDocumented(t *testing.T) {
	testenv.StepsDocumented(t, (&Controller{}).declared().Names())
}

func fleet() []client.Object {
	return []client.Object{newRollout(), newCluster("a", "canary"), newCluster("b"), newCluster("c"), newCluster("d"), newCluster("e")}
}

func TestLife(t *testing.T) {
	w := newWorld(t, fleet()...)
	w.run(t, enough)
	if got, want := w.said(t), "Completed: 5 Clusters changed"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	if got, want := w.states(t), "a:new:Done b:new:Done c:new:Done d:new:Done e:new:Done"; got != want {
		t.Errorf("Clusters are %s, want %s", got, want)
	}
	if w.most != 2 {
		t.Errorf("up to %d Clusters were in change at the same time, want 2", w.most)
	}
	r := w.rollout(t)
	if p := r.Status.Plan; p.Hash == "" || *p.Machines != 10 || *p.Replacing != 5 || w.planned != 5 {
		t.Errorf("the plan is %+v, %d Clusters were planned", p, w.planned)
	}
	// For each Cluster: the plan, the change, and its end. The ID, the plan, the end and a few states are of the rollout.
	writes := 0
	for _, one := range w.Writes {
		if strings.HasPrefix(one, "patch Cluster ") {
			writes++
		}
	}
	if writes != 15 {
		t.Errorf("there are %d writes of 5 Clusters, want 15:\n%s", writes, strings.Join(w.Writes, "\n"))
	}
}

// situation is a rollout over some Clusters, and what becomes of it.
type situation struct {
	reason   string
	rollout  func(*fleetv1.ClusterRollout)
	clusters []client.Object
	effects  map[string]rolloutplan.Effect
	states   string
	said     string
}

func TestClustersThatFailOrDoNotFit(t *testing.T) {
	halt := func(*fleetv1.ClusterRollout) {}
	back := func(r *fleetv1.ClusterRollout) { r.Spec.Strategy.OnFailure = fleetv1.RolloutRollback }
	checkSituations(t, []situation{
		{
			reason: "the first stage fails, and the rest stays as it is", rollout: halt,
			clusters: []client.Object{newCluster("bad", "canary"), newCluster("b"), newCluster("c")},
			states:   "b:old:Waiting bad:new:Failed c:old:Waiting",
			said:     "Halted: 1 Cluster of stage canary failed, at most 0 may: fix the cause, and increase spec.attempt, or set spec.abort",
		},
		{
			reason: "what has failed is set back if the strategy says so", rollout: back,
			clusters: []client.Object{newCluster("bad", "canary"), newCluster("b")},
			states:   "b:old:Waiting bad:old:RolledBack",
			said:     "Halted: 1 Cluster of stage canary failed, at most 0 may: fix the cause, and increase spec.attempt, or set spec.abort",
		},
		{
			reason: "a Cluster that has the class already is left as it is, even if it is not healthy", rollout: halt,
			clusters: []client.Object{had("a"), newCluster("b")},
			states:   "a:new:Done b:new:Done", said: "Completed: 2 Clusters changed",
		},
		{
			reason: "a Cluster that cannot be changed is skipped", rollout: halt,
			clusters: []client.Object{newCluster("a"), newCluster("b")},
			effects:  map[string]rolloutplan.Effect{"a": {Effect: fleetv1.RolloutForbidden, Reason: "no"}},
			states:   "a:old:Skipped b:new:Done", said: "Completed: 1 Cluster changed, 1 skipped",
		},
		{
			reason: "a Cluster that is not healthy before is skipped", rollout: halt,
			clusters: []client.Object{unhealthy("a"), newCluster("b")},
			states:   "a:old:Skipped b:new:Done", said: "Completed: 1 Cluster changed, 1 skipped",
		},
		{
			reason: "the rollout waits for one that is not healthy if the strategy says so",
			rollout: func(r *fleetv1.ClusterRollout) {
				r.Spec.Strategy.UnhealthyClusters = fleetv1.UnhealthyClustersBlock
			},
			clusters: []client.Object{unhealthy("a"), newCluster("b")},
			states:   "a:old:Waiting b:new:Done",
			said:     "Progressing: Stage rest: 0 Clusters in change; a is not healthy: Nodes are missing",
		},
	})
}

func TestWhatRolloutsWaitFor(t *testing.T) {
	checkSituations(t, []situation{
		{
			reason: "a stage with a gate waits for its approval",
			rollout: func(r *fleetv1.ClusterRollout) {
				r.Spec.Strategy.Stages[1].Gate = fleetv1.RolloutGateApproval
			},
			clusters: []client.Object{newCluster("a", "canary"), newCluster("b")},
			states:   "a:new:Done b:old:Waiting", said: "WaitingForApproval: Stage rest waits for its approval",
		},
		{
			reason: "an approval of another plan does not count",
			rollout: func(r *fleetv1.ClusterRollout) {
				r.Spec.Strategy.Stages[1].Gate = fleetv1.RolloutGateApproval
				r.Spec.Approvals = []fleetv1.RolloutApproval{{Stage: "rest", PlanHash: "other"}}
			},
			clusters: []client.Object{newCluster("b")},
			states:   "b:old:Waiting", said: "WaitingForApproval: Stage rest waits for its approval",
		},
		{
			reason: "outside of windows nothing begins",
			rollout: func(r *fleetv1.ClusterRollout) {
				r.Spec.Strategy.Windows = []fleetv1.RolloutWindow{{Schedule: "0 22 * * *", DurationSeconds: 3600}}
			},
			clusters: []client.Object{newCluster("b")},
			states:   "b:old:Waiting", said: "Progressing: No window is open, the next one opens at 2026-01-02 22:00:00 UTC",
		},
		{
			reason: "a health check in CEL that no Cluster meets",
			rollout: func(r *fleetv1.ClusterRollout) {
				r.Spec.Strategy.HealthChecks = []fleetv1.RolloutHealthCheck{{Expression: "self.metadata.name == 'b'", Message: "wrong name"}}
			},
			clusters: []client.Object{newCluster("a"), newCluster("b")},
			states:   "a:old:Skipped b:new:Done", said: "Completed: 1 Cluster changed, 1 skipped",
		},
		{
			reason: "an invalid expression is refused",
			rollout: func(r *fleetv1.ClusterRollout) {
				r.Spec.Strategy.HealthChecks = []fleetv1.RolloutHealthCheck{{Expression: "self.metadata.name"}, {Expression: "1"}}
			},
			clusters: []client.Object{newCluster("a")},
			states:   "a:old:-", said: "Planning: healthChecks[1].expression: must be true or false, and is of type int",
		},
		{
			reason:   "the class does not exist",
			rollout:  func(r *fleetv1.ClusterRollout) { r.Spec.Change.ClassRef.Name = "none" },
			clusters: []client.Object{newCluster("a")},
			states:   "a:old:-", said: "Planning: spec.change.classRef: ClusterClass default/none does not exist",
		},
		{
			reason:   "nothing begins while it is paused",
			rollout:  func(r *fleetv1.ClusterRollout) { r.Spec.Paused = ptr.To(true) },
			clusters: []client.Object{newCluster("a")},
			states:   "a:old:Waiting", said: "Paused: spec.paused is set",
		},
	})
}

func checkSituations(t *testing.T, all []situation) {
	t.Helper()
	for _, tc := range all {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, append(tc.clusters, newRollout(tc.rollout))...)
			if tc.effects != nil {
				w.effects = tc.effects
			}
			w.run(t, 40)
			if got := w.states(t); got != tc.states {
				t.Errorf("Clusters are %s, want %s", got, tc.states)
			}
			if got := w.said(t); got != tc.said {
				t.Errorf("it says %q, want %q", got, tc.said)
			}
		})
	}
}

// had returns a Cluster that has the class new, and is not healthy.
func had(name string) *clusterv1.Cluster {
	c := unhealthy(name)
	c.Spec.Topology.ClassRef.Name = "new"
	return c
}

func unhealthy(name string) *clusterv1.Cluster {
	c := newCluster(name)
	healthy(c, false)
	return c
}

// TestKilled kills the process at its writes, before and after they take effect: at each in soak, at some in CI.
func TestKilled(t *testing.T) {
	reference := newWorld(t, fleet()...)
	reference.run(t, enough)
	writes := len(reference.Writes)
	for n := range writes {
		if n%3 != 0 && !testenv.Soaks() {
			continue
		}
		for _, lose := range []bool{false, true} {
			w := newWorld(t, fleet()...)
			seen, dead := 0, false
			w.Before = func(r fakeapi.Request) error {
				if r.IsWrite() {
					seen++
				}
				if dead = dead || seen == n+1 && r.IsWrite() && !lose; dead {
					return errKilled
				}
				return nil
			}
			w.After = func(r fakeapi.Request, err error) error {
				if seen == n+1 && r.IsWrite() {
					dead = true
					return errKilled
				}
				return err
			}
			for range 2 * enough {
				w.run(t, 1)
				if dead {
					w.Before, w.After, dead = nil, nil, false
					w.restart()
				}
			}
			if got := w.said(t); got != "Completed: 5 Clusters changed" || w.most > 2 {
				t.Errorf("killed at write %d (%s), lost response: %t: %s; up to %d Clusters were in change", n, reference.Writes[n], lose, got, w.most)
			}
		}
	}
}

// TestStaleCache: a process whose cache shows none of the changes that another one has begun changes no further Clusters.
func TestStaleCache(t *testing.T) {
	for rounds := range 8 {
		t.Run(fmt.Sprint(rounds), func(t *testing.T) {
			w := newWorld(t, fleet()...)
			w.run(t, 3)
			w.Cache.Freeze(&clusterv1.ClusterList{}, &fleetv1.ClusterRolloutList{})
			successor := w.Cache
			w.Cache = w.NewCache()
			w.restart()
			w.run(t, 2+rounds)
			w.Cache = successor
			w.restart()
			w.run(t, 5)
			if w.most > 2 {
				t.Errorf("%d Clusters were in change at the same time", w.most)
			}
			w.Cache.Thaw()
			w.run(t, enough)
			if got := w.said(t); got != "Completed: 5 Clusters changed" || w.most > 2 {
				t.Errorf("it says %q; up to %d Clusters were in change", got, w.most)
			}
		})
	}
}

// TestStalePauses: in the cache of the successor, the Clusters that its predecessor has changed are still paused, so that others would be
// next.
func TestStalePauses(t *testing.T) {
	w := newWorld(t, newRollout(), newCluster("b"), newCluster("c"), newCluster("d"), newCluster("e"))
	pause := func(paused bool) {
		all := w.clusters(t)
		slices.SortFunc(all, func(a, b clusterv1.Cluster) int { return rolloutplan.Order(a.UID, b.UID) })
		for _, c := range all[:2] {
			c.Spec.Paused = ptr.To(paused)
			testenv.Must(t, w.Update(t.Context(), &c))
		}
	}
	w.edit(t, func(s *fleetv1.ClusterRolloutSpec) { s.Paused = ptr.To(true) })
	pause(true)
	w.run(t, 5)
	w.edit(t, func(s *fleetv1.ClusterRolloutSpec) { s.Paused = ptr.To(false) })
	w.Cache.Freeze(&clusterv1.ClusterList{})
	successor := w.Cache
	w.Cache = w.NewCache()
	pause(false)
	w.restart()
	w.run(t, 2)
	w.Cache = successor
	w.restart()
	w.run(t, 2)
	if w.most != 2 {
		t.Errorf("%d Clusters were in change at the same time, want 2: %s", w.most, w.states(t))
	}
	w.Cache.Thaw()
	w.run(t, enough)
	if got := w.said(t); got != "Completed: 4 Clusters changed" || w.most > 2 {
		t.Errorf("it says %q; up to %d Clusters were in change", got, w.most)
	}
}

// TestSlowCache: a cache that has not shown what the process has written itself does not make it begin more.
func TestSlowCache(t *testing.T) {
	w := newWorld(t, newRollout(), newCluster("b"), newCluster("c"), newCluster("d"), newCluster("e"))
	w.run(t, 2)
	w.Cache.Freeze(&clusterv1.ClusterList{})
	w.run(t, 6)
	if w.most > 2 {
		t.Errorf("%d Clusters were in change at the same time, want 2: %s", w.most, w.states(t))
	}
	w.Cache.Thaw()
	w.run(t, enough)
	if got := w.said(t); got != "Completed: 4 Clusters changed" || w.most > 2 {
		t.Errorf("it says %q; up to %d Clusters were in change", got, w.most)
	}
}

// TestRetry: a user mends what was wrong, and tries again.
func TestRetry(t *testing.T) {
	w := newWorld(t, newRollout(), newCluster("bad", "canary"), newCluster("b"))
	w.run(t, 40)
	bad := &clusterv1.Cluster{}
	testenv.Must(t, w.Get(t.Context(), client.ObjectKey{Namespace: newRollout().Namespace, Name: "bad"}, bad))
	healthy(bad, true)
	testenv.Must(t, w.Status().Update(t.Context(), bad))
	w.run(t, 5)
	if got := w.states(t); got != "b:old:Waiting bad:new:Failed" {
		t.Errorf("before it is tried again, Clusters are %s", got)
	}
	w.edit(t, func(s *fleetv1.ClusterRolloutSpec) { s.Attempt = ptr.To[int32](1) })
	w.run(t, enough)
	if got := w.said(t); got != "Completed: 2 Clusters changed" {
		t.Errorf("it says %q: %s", got, w.states(t))
	}
}

// TestAbort: a rollout that is aborted sets back what it has changed.
func TestAbort(t *testing.T) {
	w := newWorld(t, newRollout(), newCluster("a", "canary"), newCluster("bad"), newCluster("c"))
	w.run(t, 40)
	w.edit(t, func(s *fleetv1.ClusterRolloutSpec) { s.Abort = fleetv1.RolloutAbortRollback })
	w.run(t, enough)
	if got := w.said(t); got != "Aborted: spec.abort has ended it" {
		t.Errorf("it says %q", got)
	}
	for _, c := range w.clusters(t) {
		if c.Spec.Topology.ClassRef.Name != "old" {
			t.Errorf("Cluster %s has class %s", c.Name, c.Spec.Topology.ClassRef.Name)
		}
	}
}

// TestChangedClass: a class that is changed under a rollout halts it; the user has it planned anew.
func TestChangedClass(t *testing.T) {
	w := newWorld(t, fleet()...)
	w.run(t, 6)
	class := &clusterv1.ClusterClass{}
	testenv.Must(t, w.Get(t.Context(), client.ObjectKey{Namespace: newRollout().Namespace, Name: "new"}, class))
	class.Generation++
	testenv.Must(t, w.Update(t.Context(), class))
	w.run(t, 20)
	want := "Halted: ClusterClass default/new was changed since the plan (generation 1, now 2): increase spec.attempt to plan anew, or set spec.abort"
	if got := w.said(t); got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	before := w.rollout(t).Status.Plan.Hash
	w.edit(t, func(s *fleetv1.ClusterRolloutSpec) { s.Attempt = ptr.To[int32](1) })
	w.run(t, enough)
	if got := w.said(t); got != "Completed: 5 Clusters changed" || w.rollout(t).Status.Plan.Hash == before {
		t.Errorf("it says %q, with plan %s: %s", got, before, w.states(t))
	}
}

// TestSecondRollout: a Cluster takes part in one rollout at a time.
func TestSecondRollout(t *testing.T) {
	w := newWorld(t, fleet()...)
	other := newRollout(func(r *fleetv1.ClusterRollout) { r.Name, r.UID = "other", "other" })
	other.Annotations = map[string]string{fleetv1.RolloutIDAnnotation: "other"}
	other.Status.Phase = fleetv1.RolloutHalted
	testenv.Must(t, w.Create(t.Context(), other))
	a := w.clusters(t)[0]
	testenv.Must(t, fleetv1.SetRolloutEntry(&a, &fleetv1.RolloutEntry{Rollout: "other", ID: "other", State: fleetv1.RolloutStateDone}),
		w.Update(t.Context(), &a))
	w.run(t, 10)
	if got := w.said(t); got != "Planning: a takes part in ClusterRollout other" {
		t.Errorf("it says %q", got)
	}
	testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(other), other))
	other.Status.Phase = fleetv1.RolloutAborted
	testenv.Must(t, w.Status().Update(t.Context(), other))
	w.run(t, enough)
	if got := w.said(t); got != "Completed: 5 Clusters changed" {
		t.Errorf("after the other has ended, it says %q", got)
	}
}
