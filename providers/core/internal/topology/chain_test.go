package topology

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/plan"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/upgrade"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// detailsOf returns the versions of a request: the current and next one, or the one that is reached, then those that remain.
func detailsOf(request runtimehooksv1.RequestObject) string {
	list := func(steps []runtimehooksv1.UpgradeStepInfo) string {
		var out []string
		for _, s := range steps {
			out = append(out, s.Version)
		}
		return strings.Join(out, ",")
	}
	switch r := request.(type) {
	case *runtimehooksv1.BeforeClusterUpgradeRequest:
		return fmt.Sprintf(" %s-%s cp %s workers %s", r.FromKubernetesVersion, r.ToKubernetesVersion, list(r.ControlPlaneUpgrades), list(r.WorkersUpgrades))
	case *runtimehooksv1.BeforeControlPlaneUpgradeRequest:
		return fmt.Sprintf(" %s-%s cp %s workers %s", r.FromKubernetesVersion, r.ToKubernetesVersion, list(r.ControlPlaneUpgrades), list(r.WorkersUpgrades))
	case *runtimehooksv1.AfterControlPlaneUpgradeRequest:
		return fmt.Sprintf(" %s cp %s workers %s", r.KubernetesVersion, list(r.ControlPlaneUpgrades), list(r.WorkersUpgrades))
	case *runtimehooksv1.BeforeWorkersUpgradeRequest:
		return fmt.Sprintf(" %s-%s cp %s workers %s", r.FromKubernetesVersion, r.ToKubernetesVersion, list(r.ControlPlaneUpgrades), list(r.WorkersUpgrades))
	case *runtimehooksv1.AfterWorkersUpgradeRequest:
		return fmt.Sprintf(" %s cp %s workers %s", r.KubernetesVersion, list(r.ControlPlaneUpgrades), list(r.WorkersUpgrades))
	case *runtimehooksv1.AfterClusterUpgradeRequest:
		return " " + r.KubernetesVersion
	}
	return ""
}

// listVersions makes the class list versions.
func (w *world) listVersions(versions ...string) {
	w.t.Helper()
	class := &clusterv1.ClusterClass{}
	class.Namespace, class.Name = w.namespace, "simple"
	changed(w, class, func(c *clusterv1.ClusterClass) { c.Spec.KubernetesVersions = versions })
	w.reconciledClass("simple")
}

// chained is the state of an upgrade by several steps.
type chained struct {
	ControlPlane, Workers any
	Step, Pending         string
	Plans                 [2][]clusterv1.UpgradePlanVersion
	Calls                 []string
}

func (w *world) chained(c *clusterv1.Cluster, e *extensions) chained {
	w.t.Helper()
	out := chained{
		ControlPlane: fieldOf(w.one("KubeadmControlPlane", "c", c), "spec.version"),
		Workers:      fieldOf(w.one("MachineDeployment", "c-md-0", c), "spec.template.spec.version"),
		Step:         c.Annotations[clusterv1.ClusterTopologyUpgradeStepAnnotation],
		Pending:      c.Annotations[runtimev1.PendingHooksAnnotation],
	}
	if e != nil {
		out.Calls = e.take()
	}
	if c.Status.ControlPlane != nil {
		out.Plans[0] = c.Status.ControlPlane.UpgradePlan
	}
	if c.Status.Workers != nil {
		out.Plans[1] = c.Status.Workers.UpgradePlan
	}
	return out
}

// TestChainedUpgrade is an upgrade by five minor versions, change by change, with what the Cluster records and reports, and all hooks.
func TestChainedUpgrade(t *testing.T) {
	w, e, _ := hooked(t)
	w.listVersions("v1.30.0", "v1.31.0", "v1.32.0", "v1.33.0", "v1.34.0", "v1.35.0")
	c := w.cluster("c")
	w.created(c)
	w.reconciled(c)
	w.provisioned(c)
	w.initialized(c)
	w.reconciled(c)
	e.take()
	e.detailed = true
	changed(w, c, func(c *clusterv1.Cluster) { c.Spec.Topology.Version = "v1.35.0" })
	v := func(minor int) string { return fmt.Sprintf("v1.%d.0", minor) }
	steps := func(minors ...int) []clusterv1.UpgradePlanVersion {
		var out []clusterv1.UpgradePlanVersion
		for _, minor := range minors {
			out = append(out, clusterv1.UpgradePlanVersion{Version: v(minor)})
		}
		return out
	}
	plans := func(cp, workers []clusterv1.UpgradePlanVersion) [2][]clusterv1.UpgradePlanVersion {
		return [2][]clusterv1.UpgradePlanVersion{cp, workers}
	}
	const controlPlane, workers = "AfterClusterUpgrade,AfterControlPlaneUpgrade", "AfterClusterUpgrade,AfterWorkersUpgrade"
	for _, step := range []struct {
		reason string
		want   chained
	}{
		{"the first step begins", chained{v(31), v(30), v(31), controlPlane, plans(steps(32, 33, 34, 35), steps(33, 35)), []string{
			"BeforeClusterUpgrade v1.30.0-v1.35.0 cp v1.31.0,v1.32.0,v1.33.0,v1.34.0,v1.35.0 workers v1.33.0,v1.35.0",
			"BeforeControlPlaneUpgrade v1.30.0-v1.31.0 cp v1.31.0,v1.32.0,v1.33.0,v1.34.0,v1.35.0 workers v1.33.0,v1.35.0",
		}}},
		{"the second follows", chained{v(32), v(30), v(32), controlPlane, plans(steps(33, 34, 35), steps(33, 35)), []string{
			"AfterControlPlaneUpgrade v1.31.0 cp v1.32.0,v1.33.0,v1.34.0,v1.35.0 workers v1.33.0,v1.35.0",
			"BeforeControlPlaneUpgrade v1.31.0-v1.32.0 cp v1.32.0,v1.33.0,v1.34.0,v1.35.0 workers v1.33.0,v1.35.0",
		}}},
		{"the third follows", chained{v(33), v(30), v(33), controlPlane, plans(steps(34, 35), steps(33, 35)), []string{
			"AfterControlPlaneUpgrade v1.32.0 cp v1.33.0,v1.34.0,v1.35.0 workers v1.33.0,v1.35.0",
			"BeforeControlPlaneUpgrade v1.32.0-v1.33.0 cp v1.33.0,v1.34.0,v1.35.0 workers v1.33.0,v1.35.0",
		}}},
		{"workers stop here", chained{v(33), v(33), v(33), workers, plans(steps(34, 35), steps(35)), []string{
			"AfterControlPlaneUpgrade v1.33.0 cp v1.34.0,v1.35.0 workers v1.33.0,v1.35.0",
			"BeforeWorkersUpgrade v1.30.0-v1.33.0 cp v1.34.0,v1.35.0 workers v1.33.0,v1.35.0",
		}}},
		{"then the control plane goes on", chained{v(34), v(33), v(34), controlPlane, plans(steps(35), steps(35)), []string{
			"AfterWorkersUpgrade v1.33.0 cp v1.34.0,v1.35.0 workers v1.35.0", "BeforeControlPlaneUpgrade v1.33.0-v1.34.0 cp v1.34.0,v1.35.0 workers v1.35.0",
		}}},
		{"its last step is recorded, too", chained{v(35), v(33), v(35), controlPlane, plans(nil, steps(35)), []string{
			"AfterControlPlaneUpgrade v1.34.0 cp v1.35.0 workers v1.35.0", "BeforeControlPlaneUpgrade v1.34.0-v1.35.0 cp v1.35.0 workers v1.35.0",
		}}},
		{"workers arrive", chained{v(35), v(35), v(35), workers, plans(nil, nil), []string{
			"AfterControlPlaneUpgrade v1.35.0 cp  workers v1.35.0", "BeforeWorkersUpgrade v1.33.0-v1.35.0 cp  workers v1.35.0",
		}}},
		{"the upgrade ends", chained{v(35), v(35), "", "", plans(nil, nil), []string{"AfterWorkersUpgrade v1.35.0 cp  workers ", "AfterClusterUpgrade v1.35.0"}}},
	} {
		w.reconciled(c)
		w.expectCached(c, step.reason)
		w.expect(step.reason, step.want, w.chained(c, e))
		w.provisioned(c)
	}
	w.expectSteady(c, "at the end")
}

// TestChainWithoutHooks is about Clusters without the feature gate RuntimeSDK: an annotation holds the beginning, and only that.
func TestChainWithoutHooks(t *testing.T) {
	w := newWorld(t)
	w.listVersions("v1.30.0", "v1.31.0", "v1.32.0")
	c := w.cluster("c")
	w.created(c)
	w.reconciled(c)
	w.provisioned(c)
	const held = clusterv1.BeforeClusterUpgradeHookAnnotationPrefix + "/backup"
	changed(w, c, func(c *clusterv1.Cluster) {
		c.Annotations = map[string]string{held: ""}
		c.Spec.Topology.Version = "v1.32.0"
	})
	w.reconciled(c)
	w.expect("held", "v1.30.0", w.chained(c, nil).ControlPlane)
	w.expect("the old condition", `hook "BeforeClusterUpgrade" is blocking: annotation `+held+" is set",
		condition.Get(c, clusterv1.TopologyReconciledV1Beta1Condition).Message)
	w.expect("the condition", "Cluster is upgrading to v1.32.0\n  * Following hooks are blocking upgrade: BeforeClusterUpgrade: annotation "+held+
		" is set\n  * KubeadmControlPlane pending upgrade to version v1.31.0, v1.32.0", strings.Split(report.Get(c, clusterv1.ClusterTopologyReconciledCondition).Message, "\n  * Machine")[0])
	w.expectSteady(c, "held")
	changed(w, c, func(c *clusterv1.Cluster) { delete(c.Annotations, held) })
	for _, step := range []struct{ reason, controlPlane, workers, step string }{
		{"released", "v1.31.0", "v1.30.0", "v1.31.0"}, {"an annotation that comes later holds nothing", "v1.32.0", "v1.30.0", "v1.32.0"},
		{"the end", "v1.32.0", "v1.32.0", "v1.32.0"}, {"nothing is recorded", "v1.32.0", "v1.32.0", ""},
	} {
		w.reconciled(c)
		w.expectCached(c, step.reason)
		now := w.chained(c, nil)
		w.expect(step.reason, []any{step.controlPlane, step.workers, step.step}, []any{now.ControlPlane, now.Workers, now.Step})
		w.provisioned(c)
		if step.reason == "released" {
			changed(w, c, func(c *clusterv1.Cluster) { c.Annotations[held] = "" })
		}
	}
}

// TestChainGoesOnAfterCrashes lets a process crash after any of its writes, before each reconcile of another one: no version is skipped or
// repeated, and hooks that may be called once only are not called again after a write has recorded them.
func TestChainGoesOnAfterCrashes(t *testing.T) {
	want := []string{
		"v1.31.0 v1.30.0", "v1.32.0 v1.30.0", "v1.33.0 v1.30.0", "v1.33.0 v1.33.0", "v1.34.0 v1.33.0", "v1.34.0 v1.34.0",
	}
	for writes := range 3 {
		t.Run(fmt.Sprint(writes), func(t *testing.T) {
			got, calls := upgradedWithCrashes(t, writes)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("versions (-want +got):\n%s", diff)
			}
			for _, hook := range []string{"AfterClusterUpgrade", "BeforeClusterUpgrade v1.30.0 v1.34.0"} {
				once := func(call string) bool { return call != hook }
				if n := len(slices.DeleteFunc(slices.Clone(calls), once)); n < 1 || n > 2 {
					t.Errorf("%s is called %d times, want once, or once more if its record was lost", hook, n)
				}
			}
		})
	}
}

// upgradedWithCrashes upgrades a Cluster from v1.30.0 to v1.34.0. Before each reconcile, another process crashes after some writes. It
// returns the versions of control plane and workers, change by change, and the hooks that are called.
func upgradedWithCrashes(t *testing.T, writes int) (got, calls []string) {
	t.Helper()
	w, e, clock := hooked(t)
	w.listVersions("v1.30.0", "v1.31.0", "v1.32.0", "v1.33.0", "v1.34.0")
	c := w.cluster("c")
	w.created(c)
	w.reconciled(c)
	w.provisioned(c)
	w.initialized(c)
	w.reconciled(c)
	w.expectCached(c, "creation")
	changed(w, c, func(c *clusterv1.Cluster) { c.Spec.Topology.Version = "v1.34.0" })
	e.take()
	last := ""
	seen := func() {
		testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(c), c))
		w.waitCached(c)
		w.expectCached(c, last)
		now := w.chained(c, nil)
		if versions := fmt.Sprint(now.ControlPlane, " ", now.Workers); versions != last {
			got, last = append(got, versions), versions
		}
	}
	seen()
	for range 12 {
		clients := w.runner.Clients
		clients.Client = &crashing{Client: clients.Client, left: writes}
		crashed := newController(clients, w.cached, plan.NewClasses(nil))
		crashed.hooks = newLifecycleHooks(e, clock)
		crashed.Planner.Hooks = crashed.hooks
		_, _ = crashed.declared().Runner(crashed.Clients).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)})
		seen()
		w.reconciled(c)
		seen()
		w.provisioned(c)
	}
	w.expect("nothing is pending, and no step", []string{"", ""},
		[]string{c.Annotations[runtimev1.PendingHooksAnnotation], c.Annotations[clusterv1.ClusterTopologyUpgradeStepAnnotation]})
	return got[1:], e.take()
}

// TestALeaderWithAStaleStepWaits lets another leader, whose cache has the Cluster as it was at an earlier step, but has the upgraded control
// plane, reconcile it: it would record another step, and call hooks for it.
func TestALeaderWithAStaleStepWaits(t *testing.T) {
	w := newWorld(t)
	w.listVersions("v1.30.0", "v1.31.0", "v1.32.0", "v1.33.0")
	c := w.cluster("c")
	w.created(c)
	w.reconciled(c)
	w.provisioned(c)
	changed(w, c, func(c *clusterv1.Cluster) { c.Spec.Topology.Version = "v1.33.0" })
	w.reconciled(c)
	w.provisioned(c)
	w.expectCached(c, "the first step")
	old := c.DeepCopy()
	w.reconciled(c)
	w.provisioned(c)
	w.expectCached(c, "the second step")
	before := w.chained(c, nil)
	other := w.stale(&frozen{cluster: old})
	if _, err := other.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)}); err != nil {
		t.Fatal(err)
	}
	testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(c), c))
	w.expect("nothing changes", before, w.chained(c, nil))
	w.expect("the second step", []any{"v1.32.0", "v1.32.0"}, []any{before.ControlPlane, before.Step})

	for range 2 {
		w.reconciled(c)
		w.provisioned(c)
		w.expectCached(c, "the end")
	}
	old = c.DeepCopy()
	w.expect("all parts are upgraded, and the step is still recorded", "v1.33.0", w.chained(c, nil).Step)
	changed(w, c, func(c *clusterv1.Cluster) { c.Annotations[clusterv1.ClusterTopologyUpgradeStepAnnotation] = "v1.34.0" })
	other = w.stale(&frozen{cluster: old})
	if _, err := other.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)}); err != nil {
		t.Fatal(err)
	}
	testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(c), c))
	w.expect("the record of an upgrade that has begun since stays", "v1.34.0", w.chained(c, nil).Step)
}

// attempted reconciles, which may fail: the condition has the error.
func (w *world) attempted(c *clusterv1.Cluster) {
	w.t.Helper()
	_, err := w.runner.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)})
	testenv.Must(w.t, w.Get(w.t.Context(), client.ObjectKeyFromObject(c), c))
	w.waitCached(c)
	if failed := condition.Get(c, clusterv1.TopologyReconciledV1Beta1Condition).Reason == clusterv1.TopologyReconcileFailedV1Beta1Reason; failed != (err != nil) {
		w.t.Fatalf("the condition reports a failure: %v, the error is %v", failed, err)
	}
}

// planner answers for an extension that plans upgrades.
type planner struct {
	chain upgrade.Chain
	err   error
	asked []upgrade.Ends
}

func (p *planner) GenerateUpgradePlan(_ context.Context, _ *clusterv1.Cluster, _ string, ends upgrade.Ends) (upgrade.Chain, error) {
	p.asked = append(p.asked, ends)
	return p.chain, p.err
}

// TestUpgradePlanOfExtension is about classes with an extension that plans upgrades: it is asked while there is a step to choose, and an
// invalid or missing answer changes nothing.
func TestUpgradePlanOfExtension(t *testing.T) {
	w := newWorld(t)
	c, p := w.cluster("c"), &planner{}
	w.created(c)
	w.reconciled(c)
	w.provisioned(c)
	class := &clusterv1.ClusterClass{}
	class.Namespace, class.Name = w.namespace, "simple"
	changed(w, class, func(c *clusterv1.ClusterClass) { c.Spec.Upgrade.External.GenerateUpgradePlanExtension = "plan.x" })
	w.reconciledClass("simple")
	w.expectSteady(c, "no upgrade, no question")
	changed(w, c, func(c *clusterv1.Cluster) { c.Spec.Topology.Version = "v1.32.0" })
	for _, step := range []struct {
		reason  string
		event   func()
		message string
		want    any
	}{
		{"no extensions", func() {}, "ClusterClass " + w.namespace + "/simple: extension plan.x cannot plan the upgrade to v1.32.0: it requires the feature gate RuntimeSDK", "v1.30.0"},
		{"a failure", func() { w.control.Planner.Upgrades = p; p.err = errors.New("no answer") }, "no answer", "v1.30.0"},
		{"an invalid answer", func() { p.err, p.chain = nil, upgrade.Chain{ControlPlane: []string{"v1.32.0"}} },
			"extension plan.x returned an invalid plan of the upgrade to v1.32.0: versions of the control plane: v1.32.0 is 2 minor versions above v1.30.0: at most 1 are possible", "v1.30.0"},
		{"an answer", func() { p.chain = upgrade.Chain{ControlPlane: []string{"v1.31.7", "v1.32.0"}} },
			"Control plane rollout and upgrade to version v1.32.0 on hold. Control plane is upgrading to version v1.31.7", "v1.31.7"},
	} {
		step.event()
		w.attempted(c)
		w.expect(step.reason, step.message, condition.Get(c, clusterv1.TopologyReconciledV1Beta1Condition).Message)
		w.expect(step.reason, step.want, w.chained(c, nil).ControlPlane)
	}
	w.expect("what it is asked", upgrade.Ends{ControlPlane: "v1.30.0", Workers: "v1.30.0", To: "v1.32.0"}, p.asked[0])
}
