package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/rolloutplan"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// errKilled is the error of requests of a process that was killed.
var errKilled = errors.New("killed")

// world has a rollout from class old to class new, and Clusters, whose topology controller is simulated.
type world struct {
	*fakeapi.Server
	runner *step.Runner[*fleetv1.ClusterRollout]
	// class is the class that each Cluster was last seen with, and age how often it was simulated since.
	class map[string]string
	age   map[string]int
	// most is how many Clusters were in change at the same time.
	most int
	// effects are those of the planner; without one, Machines are replaced.
	effects map[string]rolloutplan.Effect
	planned int
}

// Effect implements Planner.
func (w *world) Effect(_ context.Context, c *clusterv1.Cluster, _ *fleetv1.RolloutChange, _ bool) (rolloutplan.Effect, error) {
	w.planned++
	if e, ok := w.effects[c.Name]; ok {
		return e, nil
	}
	return rolloutplan.Effect{Effect: fleetv1.RolloutReplacing, Machines: 2}, nil
}

// Forget implements Planner.
func (*world) Forget() {}

func newRollout(change ...func(*fleetv1.ClusterRollout)) *fleetv1.ClusterRollout {
	r := &fleetv1.ClusterRollout{ObjectMeta: object.Builder{}.Meta(fleetv1.ClusterRolloutKind, "weekly")}
	r.Generation = 1
	r.Spec = fleetv1.ClusterRolloutSpec{
		Change: fleetv1.RolloutChange{ClassRef: fleetv1.RolloutClassReference{Name: "new"}},
		Strategy: &fleetv1.RolloutStrategy{
			ProgressDeadlineSeconds: ptr.To[int32](60),
			Stages: []fleetv1.RolloutStage{
				{Name: "canary", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "canary"}}},
				{Name: "rest", MaxConcurrent: ptr.To(intstr.FromInt32(2))},
			},
		},
	}
	for _, f := range change {
		f(r)
	}
	return r
}

// newCluster returns a healthy Cluster. One whose name begins with "bad" is not healthy with the class new.
func newCluster(name string, labels ...string) *clusterv1.Cluster {
	return object.Builder{ClusterName: name}.Cluster(object.Initialized, func(c *clusterv1.Cluster) {
		c.Labels = map[string]string{}
		for _, l := range labels {
			c.Labels["stage"] = l
		}
		c.Spec.Topology = clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: "old"}, Version: "v1.34.1"}
		c.Generation = 1
		healthy(c, true)
	})
}

func healthy(c *clusterv1.Cluster, available bool) {
	c.Status.Conditions = nil
	is := report.If(clusterv1.ClusterAvailableCondition, available, "Available", "NodesMissing")
	if !available {
		is.Message = "Nodes are missing"
	}
	report.Set(c, c.Generation, object.Now(), is, report.True(clusterv1.ClusterTopologyReconciledCondition, "ReconcileSucceeded", ""),
		report.False(clusterv1.RollingOutCondition, "NotRollingOut", ""))
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	class := &clusterv1.ClusterClass{ObjectMeta: object.Builder{}.Meta(clusterv1.ClusterClassKind, "new")}
	class.Generation = 1
	w := &world{
		Server: fakeapi.New(t, fakeapi.Options{Kinds: []func(*runtime.Scheme) error{fleetv1.AddToScheme}, Objects: append(objects, class)}),
		class:  map[string]string{}, age: map[string]int{}, effects: map[string]rolloutplan.Effect{},
	}
	w.restart()
	w.simulate(t)
	return w
}

func (w *world) restart() {
	c := New(w.ForController(), Options{Planner: w})
	w.runner = c.declared().Runner(c.Clients)
}

func (w *world) reconcile(t *testing.T) time.Duration {
	t.Helper()
	result, err := w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(newRollout())})
	if err != nil && !step.IsStale(err) && !strings.Contains(err.Error(), errKilled.Error()) {
		t.Fatal(err)
	}
	return result.RequeueAfter
}

// simulate does what the topology controller does in the meantime: a changed Cluster has a new generation at once, and is up to date two
// rounds later.
func (w *world) simulate(t *testing.T) {
	t.Helper()
	changing := 0
	for _, c := range w.clusters(t) {
		if e := entryOf(t, &c); e != nil && (e.State == fleetv1.RolloutStateUpdating || e.State == fleetv1.RolloutStateRollingBack) {
			changing++
		}
		is := c.Spec.Topology.ClassRef.Name
		switch was, known := w.class[c.Name]; {
		case !known:
			w.class[c.Name], w.age[c.Name] = is, 3
		case was != is:
			w.class[c.Name], w.age[c.Name] = is, 0
			c.Generation++
			testenv.Must(t, w.Update(t.Context(), &c))
		default:
			w.age[c.Name]++
			if w.age[c.Name] == 2 && w.class[c.Name] == is {
				healthy(&c, !strings.HasPrefix(c.Name, "bad") || is == "old")
				testenv.Must(t, w.Status().Update(t.Context(), &c))
			}
		}
	}
	w.most = max(w.most, changing)
}

// run reconciles until the rollout has ended or halted, or for a number of rounds.
func (w *world) run(t *testing.T, rounds int) {
	t.Helper()
	for range rounds {
		after := w.reconcile(t)
		if r := w.rollout(t); r.Ended() {
			return
		}
		w.Clock.Step(max(min(after, 5*time.Second), time.Second))
		w.simulate(t)
	}
}

func (w *world) rollout(t *testing.T) *fleetv1.ClusterRollout {
	t.Helper()
	r := newRollout()
	testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(r), r))
	return r
}

// edit changes the spec of the rollout, as a user does.
func (w *world) edit(t *testing.T, change func(*fleetv1.ClusterRolloutSpec)) {
	t.Helper()
	r := w.rollout(t)
	change(&r.Spec)
	r.Generation++
	testenv.Must(t, w.Update(t.Context(), r))
}

func (w *world) clusters(t *testing.T) []clusterv1.Cluster {
	t.Helper()
	list := &clusterv1.ClusterList{}
	testenv.Must(t, w.List(t.Context(), list))
	return list.Items
}

func entryOf(t *testing.T, c *clusterv1.Cluster) *fleetv1.RolloutEntry {
	t.Helper()
	e, err := fleetv1.RolloutEntryOf(c)
	testenv.Must(t, err)
	return e
}

// states are the Clusters with their classes and states, sorted.
func (w *world) states(t *testing.T) string {
	t.Helper()
	var all []string
	for _, c := range w.clusters(t) {
		state := "-"
		if e := entryOf(t, &c); e != nil {
			state = string(e.State)
		}
		all = append(all, fmt.Sprintf("%s:%s:%s", c.Name, c.Spec.Topology.ClassRef.Name, state))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// said is the phase and the message of the rollout.
func (w *world) said(t *testing.T) string {
	t.Helper()
	r := w.rollout(t)
	c := report.Get(r, fleetv1.RolloutCompletedCondition)
	if c == nil {
		return string(r.Status.Phase)
	}
	return string(r.Status.Phase) + ": " + c.Message
}
