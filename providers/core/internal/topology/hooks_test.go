package topology

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/extension"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// extensions answers hooks for the controller, instead of a client of extensions, and records the calls.
type extensions struct {
	block map[string]bool
	err   error
	calls []string
	// told is the message of the next answer; it changes with each call.
	told int
	// detailed makes calls have the versions of all requests.
	detailed bool
}

func (e *extensions) CallAll(_ context.Context, _ runtimecatalog.Hook, _ client.Object, request runtimehooksv1.RequestObject, response runtimehooksv1.ResponseObject) ([]extension.Answer, error) {
	hook := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%T", request), "*v1alpha1."), "Request")
	call := hook
	if r, ok := request.(*runtimehooksv1.BeforeClusterUpgradeRequest); ok {
		call += " " + r.FromKubernetesVersion + " " + r.ToKubernetesVersion
	}
	if e.detailed {
		call = hook + detailsOf(request)
	}
	e.calls = append(e.calls, call)
	if e.err != nil {
		return nil, e.err
	}
	response.SetStatus(runtimehooksv1.ResponseStatusSuccess)
	if !e.block[hook] {
		return []extension.Answer{{Handler: "a.x"}}, nil
	}
	e.told++
	response.SetMessage(fmt.Sprintf("answer %d", e.told))
	response.(runtimehooksv1.RetryResponseObject).SetRetryAfterSeconds(10)
	return []extension.Answer{{Handler: "a.x"}, {Handler: "b.x", RetryAfter: 10 * time.Second}}, nil
}

func (e *extensions) take() []string {
	out := e.calls
	e.calls = nil
	return out
}

// hooked returns a world whose controller calls extensions.
func hooked(t *testing.T) (*world, *extensions, *clocktesting.FakePassiveClock) {
	t.Helper()
	w, e := newWorld(t), &extensions{block: map[string]bool{}}
	clock := clocktesting.NewFakePassiveClock(time.Now())
	w.control.hooks = newLifecycleHooks(e, clock)
	w.control.Planner.Hooks = w.control.hooks
	return w, e, clock
}

// initialized reports that the control plane accepts requests, as the Cluster controller does.
func (w *world) initialized(c *clusterv1.Cluster) {
	w.t.Helper()
	initialized := condition.True(clusterv1.ControlPlaneInitializedV1Beta1Condition)
	initialized.LastTransitionTime = metav1.Now()
	c.SetV1Beta1Conditions(append(c.GetV1Beta1Conditions(), *initialized.DeepCopy()))
	testenv.Must(w.t, w.Status().Update(w.t.Context(), c))
	w.waitCached(c)
}

// TestLifecycleHooks is the life of a Cluster: each hook is called when it is due, and what blocks holds what it precedes.
func TestLifecycleHooks(t *testing.T) {
	w, e, clock := hooked(t)
	c := w.cluster("c")
	w.created(c)
	type state struct {
		Calls           []string
		Pending         string
		Reason, Message string
		Versions        []any
	}
	now := func() state {
		s := state{Calls: e.take(), Pending: c.Annotations[runtimev1.PendingHooksAnnotation]}
		if current := condition.Get(c, clusterv1.TopologyReconciledV1Beta1Condition); current != nil {
			s.Reason, s.Message = current.Reason, current.Message
		}
		if c.Spec.ControlPlaneRef.IsDefined() {
			s.Message = strings.ReplaceAll(s.Message, w.one("MachineDeployment", "c-md-0", c).GetName(), "c-md-0")
			s.Versions = []any{
				fieldOf(w.one("KubeadmControlPlane", "c", c), "spec.version"), fieldOf(w.one("MachineDeployment", "c-md-0", c), "spec.template.spec.version"),
			}
		}
		return s
	}
	block := func(hook string) { e.block[hook] = true }
	release := func(hook string) func() {
		return func() { e.block[hook] = false; clock.SetTime(clock.Now().Add(10 * time.Second)) }
	}
	const old, next, blocking = "v1.30.0", "v1.31.0", clusterv1.TopologyReconciledHookBlockingV1Beta1Reason
	const pendingUpgrade, pendingWorkers = "AfterClusterUpgrade,AfterControlPlaneUpgrade", "AfterClusterUpgrade,AfterWorkersUpgrade"
	oldMachine := w.machine(c, "md-0", old)
	block("BeforeClusterCreate")
	steps := []struct {
		reason string
		event  func()
		want   state
	}{
		{"nothing is created while the first hook blocks", func() {}, state{
			[]string{"BeforeClusterCreate"}, "", blocking, `hook "BeforeClusterCreate" is blocking: answer 1 (extension b.x)`, nil,
		}},
		{"a blocking answer is not asked for again before its time", func() { clock.SetTime(clock.Now().Add(9 * time.Second)) }, state{
			nil, "", blocking, `hook "BeforeClusterCreate" is blocking: answer 1 (extension b.x)`, nil,
		}},
		{"unless the Cluster changes", func() { changed(w, c, func(c *clusterv1.Cluster) { c.Labels = map[string]string{"a": "b"} }) }, state{
			[]string{"BeforeClusterCreate"}, "", blocking, `hook "BeforeClusterCreate" is blocking: answer 2 (extension b.x)`, nil,
		}},
		{"released: all is created, and the next hook is pending", release("BeforeClusterCreate"), state{
			[]string{"BeforeClusterCreate"}, "AfterControlPlaneInitialized", "", "", []any{old, old},
		}},
		{"it is called once", func() {
			w.provisioned(c)
			w.created(oldMachine)
			w.initialized(c)
		}, state{[]string{"AfterControlPlaneInitialized"}, "", "", "", []any{old, old}}},
		{"the upgrade is blocked", func() {
			block("BeforeClusterUpgrade")
			changed(w, c, func(c *clusterv1.Cluster) { c.Spec.Topology.Version = next })
		}, state{
			[]string{"BeforeClusterUpgrade v1.30.0 v1.31.0"}, "", blocking, `hook "BeforeClusterUpgrade" is blocking: answer 3 (extension b.x)`, []any{old, old},
		}},
		{"released: the control plane is upgraded", release("BeforeClusterUpgrade"), state{
			[]string{"BeforeClusterUpgrade v1.30.0 v1.31.0", "BeforeControlPlaneUpgrade"}, pendingUpgrade, clusterv1.TopologyReconciledMachineDeploymentsUpgradePendingV1Beta1Reason,
			"MachineDeployment(s) c-md-0 rollout and upgrade to version v1.31.0 on hold. Control plane is upgrading to version v1.31.0", []any{next, old},
		}},
		{"the workers are blocked", func() { block("AfterControlPlaneUpgrade"); w.provisioned(c) }, state{
			[]string{"AfterControlPlaneUpgrade"}, pendingUpgrade, blocking, `hook "AfterControlPlaneUpgrade" is blocking: answer 4 (extension b.x)`, []any{next, old},
		}},
		{"released: the workers are upgraded", release("AfterControlPlaneUpgrade"), state{
			[]string{"AfterControlPlaneUpgrade", "BeforeWorkersUpgrade"}, pendingWorkers, "", "", []any{next, next},
		}},
		{"an old Machine is left", func() { w.created(w.machine(c, "md-0", next)) }, state{nil, pendingWorkers, "", "", []any{next, next}}},
		{"all have been upgraded, and the end is blocked", func() { block("AfterClusterUpgrade"); w.removed(oldMachine) }, state{
			[]string{"AfterWorkersUpgrade", "AfterClusterUpgrade"}, "AfterClusterUpgrade", blocking,
			`hook "AfterClusterUpgrade" is blocking: answer 5 (extension b.x)`, []any{next, next},
		}},
		{"the upgrade is complete", release("AfterClusterUpgrade"), state{[]string{"AfterClusterUpgrade"}, "", "", "", []any{next, next}}},
		{"nothing is due", func() {}, state{nil, "", "", "", []any{next, next}}},
	}
	for _, step := range steps {
		step.event()
		w.reconciled(c)
		w.expect(step.reason, step.want, now())
		w.expectSteady(c, step.reason)
	}
}

// TestDeletionIsHeld is about the hook that comes before the deletion: what it allows is recorded for the Cluster controller.
func TestDeletionIsHeld(t *testing.T) {
	w, e, clock := hooked(t)
	c := w.cluster("c")
	w.created(c)
	w.reconciled(c)
	testenv.Must(t, w.Delete(t.Context(), c))
	testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(c), c))
	w.waitCached(c)
	e.take()
	type state struct {
		Calls           []string
		Reason, Message string
		Allowed         bool
	}
	for _, step := range []struct {
		reason string
		event  func()
		want   state
	}{
		{"blocked", func() { e.block["BeforeClusterDelete"] = true }, state{
			[]string{"BeforeClusterDelete"}, clusterv1.DeletedV1Beta1Reason, `hook "BeforeClusterDelete" is blocking: answer 1 (extension b.x)`, false,
		}},
		{"not asked again before its time", func() {}, state{nil, clusterv1.DeletedV1Beta1Reason, `hook "BeforeClusterDelete" is blocking: answer 1 (extension b.x)`, false}},
		{"released", func() { e.block["BeforeClusterDelete"] = false; clock.SetTime(clock.Now().Add(10 * time.Second)) }, state{
			[]string{"BeforeClusterDelete"}, clusterv1.DeletedV1Beta1Reason, "", true,
		}},
		{"not called again", func() {}, state{nil, clusterv1.DeletedV1Beta1Reason, "", true}},
	} {
		step.event()
		w.reconciled(c)
		current := condition.Get(c, clusterv1.TopologyReconciledV1Beta1Condition)
		_, allowed := c.Annotations[runtimev1.OkToDeleteAnnotation]
		w.expect(step.reason, step.want, state{e.take(), current.Reason, current.Message, allowed})
	}
}

// TestHooksThatFail is about errors: they are in the condition, and a hook that holds nothing keeps nothing from being done.
func TestHooksThatFail(t *testing.T) {
	w, e, _ := hooked(t)
	c := w.cluster("c")
	w.created(c)
	reconcile := func() error {
		_, err := w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)})
		testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(c), c))
		w.waitCached(c)
		return err
	}
	const busy = "extension a.x is not called yet: its server has too many calls in progress"
	e.err = &extension.BusyError{Handler: "a.x"}
	testenv.Must(t, reconcile())
	w.expect("the condition", busy, condition.Get(c, clusterv1.TopologyReconciledV1Beta1Condition).Message)
	e.err = errors.New("no answer")
	if err := reconcile(); err == nil || c.Spec.ControlPlaneRef.IsDefined() {
		t.Errorf("the hook before the creation fails: %v, %v", err, c.Spec)
	}
	w.expect("the condition", "no answer", condition.Get(c, clusterv1.TopologyReconciledV1Beta1Condition).Message)
	e.err = &extension.BusyError{Handler: "a.x"}
	testenv.Must(t, reconcile()) // This is about other Clusters.
	w.expect("the condition", "no answer", condition.Get(c, clusterv1.TopologyReconciledV1Beta1Condition).Message)
	e.err = &extension.NotReadyError{Config: "x"}
	if err := reconcile(); err != nil || c.Spec.ControlPlaneRef.IsDefined() {
		t.Errorf("an ExtensionConfig is not discovered: want no error, which would be retried, and no objects: %v", err)
	}
	w.expect("the condition", "ExtensionConfig x has not been discovered yet", condition.Get(c, clusterv1.TopologyReconciledV1Beta1Condition).Message)
	requests := w.control.ofExtension(t.Context(), &runtimev1.ExtensionConfig{})
	if !slices.Contains(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)}) {
		t.Errorf("an event of an ExtensionConfig wakes %v", requests)
	}
	e.err = nil
	if err := reconcile(); err != nil {
		t.Fatal(err)
	}
	w.initialized(c)
	changed(w, c, func(c *clusterv1.Cluster) {
		three := int32(3)
		c.Spec.Topology.ControlPlane.Replicas = &three
	})
	e.err = errors.New("no answer")
	if err := reconcile(); err == nil {
		t.Error("a hook after something fails: want an error")
	}
	w.expect("the Cluster was reconciled regardless", int64(3), fieldOf(w.one("KubeadmControlPlane", "c", c), "spec.replicas"))
	w.expect("the hook stays pending", "AfterControlPlaneInitialized", c.Annotations[runtimev1.PendingHooksAnnotation])
}
