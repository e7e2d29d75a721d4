package journey

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// sick returns a check that finds Nodes whose condition Ready has been Unknown for a time.
func sick(timeout time.Duration, maxUnhealthy string) clusterv1.MachineHealthCheckClass {
	return clusterv1.MachineHealthCheckClass{
		UnhealthyConditions: []clusterv1.UnhealthyCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Timeout: metav1.Duration{Duration: timeout}},
		},
		MaxUnhealthy: ptr.To(intstr.Parse(maxUnhealthy)),
	}
}

// WorkerCheck overrides the health check of the workers in the topology.
func (b *ClusterBuilder) WorkerCheck(check clusterv1.MachineHealthCheckClass) *ClusterBuilder {
	b.cluster.Spec.Topology.Workers.MachineDeployments[0].MachineHealthCheck = &clusterv1.MachineHealthCheckTopology{MachineHealthCheckClass: check}
	return b
}

// ControlPlaneCheck overrides the health check of the control plane in the topology.
func (b *ClusterBuilder) ControlPlaneCheck(check clusterv1.MachineHealthCheckClass) *ClusterBuilder {
	b.cluster.Spec.Topology.ControlPlane.MachineHealthCheck = &clusterv1.MachineHealthCheckTopology{MachineHealthCheckClass: check}
	return b
}

// ownCheck disables the health check of the workers, and creates one that is not part of the topology.
func (c *Subject) ownCheck(check clusterv1.MachineHealthCheckClass) {
	c.t.Helper()
	c.Change(func(cluster *clusterv1.Cluster) {
		cluster.Spec.Topology.Workers.MachineDeployments[0].MachineHealthCheck = &clusterv1.MachineHealthCheckTopology{Enable: ptr.To(false)}
	})
	c.Eventually("the health check of the workers is deleted", func(p *Snapshot) error {
		err := c.Client.Get(c.t.Context(), types.NamespacedName{Namespace: c.Namespace, Name: p.Deployments.Items[0].Name}, &clusterv1.MachineHealthCheck{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("it exists: %w", err)
		}
		return nil
	})
	own := &clusterv1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "own"}, Spec: clusterv1.MachineHealthCheckSpec{
		ClusterName: c.Name, UnhealthyConditions: check.UnhealthyConditions, MaxUnhealthy: check.MaxUnhealthy,
		NodeStartupTimeout: check.NodeStartupTimeout, RemediationTemplate: check.RemediationTemplate,
		Selector: metav1.LabelSelector{MatchLabels: map[string]string{clusterv1.ClusterTopologyMachineDeploymentNameLabel: "md-0"}},
	}}
	if err := c.Client.Create(c.t.Context(), own); err != nil {
		c.t.Fatal(err)
	}
}

// dead returns faults in which Machines have no power.
func dead(machines ...clusterv1.Machine) map[string]any {
	names := []string{}
	for i := range machines {
		names = append(names, machines[i].Name)
	}
	return map[string]any{"deadMachines": names}
}

func (c *Subject) inject(faults map[string]any) {
	c.t.Helper()
	text, err := json.Marshal(faults)
	if err != nil {
		c.t.Fatal(err)
	}
	c.faults(string(text))
}

// check is true when the health check of the workers, or that of the control plane, fulfills f.
func (c *Subject) check(name func(*Snapshot) string, f func(*clusterv1.MachineHealthCheck) error) Condition {
	return func(p *Snapshot) error {
		h := &clusterv1.MachineHealthCheck{}
		if err := c.Client.Get(c.t.Context(), types.NamespacedName{Namespace: c.Namespace, Name: name(p)}, h); err != nil {
			return err
		}
		return f(h)
	}
}

func workerCheck(p *Snapshot) string {
	if len(p.Deployments.Items) == 0 {
		return ""
	}
	return p.Deployments.Items[0].Name
}

func ownCheck(*Snapshot) string { return "own" }

// allowance is true for a reason of condition RemediationAllowed, empty if it is True, and for counters.
func allowance(reason string, healthy, expected int32) func(*clusterv1.MachineHealthCheck) error {
	return func(h *clusterv1.MachineHealthCheck) error {
		got := FindCondition(h, clusterv1.RemediationAllowedCondition)
		s := h.Status
		if got == nil || got.Reason != reason || (got.Status == corev1.ConditionTrue) != (reason == "") || s.CurrentHealthy != healthy || s.ExpectedMachines != expected {
			return fmt.Errorf("%d of %d Machines are healthy, condition %+v; want %d of %d and reason %q", s.CurrentHealthy, s.ExpectedMachines, got, healthy, expected, reason)
		}
		return nil
	}
}

// without is true when a Machine is gone.
func without(machine string) Condition {
	return func(p *Snapshot) error {
		for i := range p.Machines.Items {
			if p.Machines.Items[i].Name == machine {
				return fmt.Errorf("Machine %s still exists", machine)
			}
		}
		return nil
	}
}

// kept is true while Machines exist and are not being deleted.
func kept(machines ...clusterv1.Machine) Condition {
	return func(p *Snapshot) error {
		for _, want := range machines {
			i := slices.IndexFunc(p.Machines.Items, func(m clusterv1.Machine) bool { return m.UID == want.UID })
			if i < 0 || p.Machines.Items[i].DeletionTimestamp != nil {
				return fmt.Errorf("Machine %s is deleted", want.Name)
			}
		}
		return nil
	}
}

// unmarked is true when the checks of all Machines succeed, and none needs remediation.
func unmarked(p *Snapshot) error {
	for i := range p.Machines.Items {
		m := &p.Machines.Items[i]
		if !ConditionIsTrue(m, clusterv1.MachineHealthCheckSucceededCondition) || HasCondition(m, clusterv1.MachineOwnerRemediatedCondition) {
			return fmt.Errorf("Machine %s has conditions %+v", m.Name, m.Status.Conditions)
		}
	}
	return nil
}

// TestUnhealthyMachinesAreReplaced checks that a dead worker and a dead control plane Machine are replaced, each by one, and no other.
func TestUnhealthyMachinesAreReplaced(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	w.Patient()
	c := w.Subject(NewCluster("sick", w.Class(w.Tools.ProjectTemplate())).ControlPlanes(3).Workers(2).
		ControlPlaneCheck(sick(time.Second, "40%")).WorkerCheck(sick(time.Second, "50%")).Build())
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(3), Workers(2), c.WorkloadMatches, unmarked)
	before := c.Snapshot()
	planes, workers := before.ControlPlane(), before.Workers()
	still := c.Always("no more Machines are deleted or created than necessary", AtMost(4, 3), kept(planes[0], planes[2], workers[1]))

	c.inject(dead(workers[0]))
	c.Eventually("the worker is replaced", without(workers[0].Name), Ready, ControlPlanes(3), Workers(2), unmarked)
	c.inject(dead(planes[1]))
	c.Eventually("the control plane Machine is replaced", without(planes[1].Name), Ready, ControlPlanes(3), Workers(2), unmarked, c.WorkloadMatches)
	c.Eventually("the counters are up to date", c.check(workerCheck, allowance("", 2, 2)))
	still()
	c.Gone()
}

// TestDeadZone checks that remediation stops if too many Machines fail at once, and continues when enough of them are back.
func TestDeadZone(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	c := w.Subject(NewCluster("zone", w.Class(w.Tools.ProjectTemplate())).Workers(3).WorkerCheck(sick(time.Second, "40%")).Build())
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(3), unmarked)
	before := c.Snapshot()
	workers := before.Workers()
	still := c.Always("no Machine is replaced", SameMachines((*Snapshot).Workers, before))
	c.inject(dead(workers[0], workers[1]))
	c.Eventually("remediation is restricted", c.check(workerCheck, allowance(clusterv1.TooManyUnhealthyReason, 1, 3)),
		machineCondition(workers[0].Name, clusterv1.MachineHealthCheckSucceededCondition, corev1.ConditionFalse),
		machineCondition(workers[1].Name, clusterv1.MachineHealthCheckSucceededCondition, corev1.ConditionFalse),
		c.Explains("RemediationRestricted MachineHealthCheck", "2 of 3"), c.ExplainsAll("NodeUnhealthy Machine/"+workers[0].Name))
	still()
	still = c.Always("only the dead Machine is replaced", kept(workers[1], workers[2]), AtMost(1, 4))
	c.inject(dead(workers[0]))
	c.Eventually("the last dead Machine is replaced", without(workers[0].Name), Ready, Workers(3), unmarked)
	still()
	c.Gone()
}

// TestUnreachableWorkloadCluster checks that nothing is remediated while the workload API server does not respond, and that what is
// still dead afterwards is.
func TestUnreachableWorkloadCluster(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	w.Patient()
	c := w.Subject(NewCluster("cut", w.Class(w.Tools.ProjectTemplate())).Workers(3).WorkerCheck(sick(10*time.Second, "100%")).Build())
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(3), unmarked)
	before := c.Snapshot()
	workers := before.Workers()
	still := c.Always("no Machine is replaced", SameMachines((*Snapshot).Workers, before), unmarked)
	c.inject(dead(workers[0], workers[1]))
	c.Eventually("the failure is observed", machineCondition(workers[0].Name, clusterv1.MachineNodeHealthyCondition, corev1.ConditionUnknown))
	faults := dead(workers[0])
	faults["unresponsive"] = true
	c.inject(faults) // The manager does not learn that the second has recovered.
	c.Eventually("the check reports that it knows nothing", c.check(workerCheck, func(h *clusterv1.MachineHealthCheck) error {
		got := FindCondition(h, clusterv1.RemediationAllowedCondition)
		if got == nil || got.Reason != clusterv1.WorkloadClusterUnreachableReason {
			return fmt.Errorf("condition %+v", got)
		}
		return nil
	}), c.Explains("WorkloadClusterUnreachable Cluster"))
	still()
	still = c.Always("only the dead Machine is replaced", kept(workers[1], workers[2]), AtMost(1, 4))
	c.inject(dead(workers[0]))
	c.Eventually("the dead Machine is replaced", without(workers[0].Name), Ready, Workers(3), unmarked, c.check(workerCheck, allowance("", 3, 3)))
	still()
	c.Gone()
}

// TestAnnotationsOfHealthChecks checks the annotations that request and prevent remediation.
func TestAnnotationsOfHealthChecks(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	c := w.Subject(NewCluster("annotated", w.Class(w.Tools.ProjectTemplate())).Workers(2).Build())
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(2))
	c.ownCheck(sick(time.Second, "100%"))
	workers := c.Snapshot().Workers()
	c.update(&workers[0], func() { metav1.SetMetaDataAnnotation(&workers[0].ObjectMeta, clusterv1.RemediateMachineAnnotation, "") })
	c.Eventually("the Machine is replaced", without(workers[0].Name), Ready, Workers(2))

	c.update(&workers[1], func() {
		metav1.SetMetaDataAnnotation(&workers[1].ObjectMeta, clusterv1.MachineSkipRemediationAnnotation, "")
	})
	c.Eventually("the Machine is no target", c.check(ownCheck, allowance("", 1, 1)))
	still := c.Always("it is not replaced", kept(workers[1]))
	c.inject(dead(workers[1]))
	c.Eventually("the failure is observed", machineCondition(workers[1].Name, clusterv1.MachineNodeHealthyCondition, corev1.ConditionUnknown),
		c.Explains("NodeUnhealthy Machine/"+workers[1].Name))
	still()
	c.update(&workers[1], func() { delete(workers[1].Annotations, clusterv1.MachineSkipRemediationAnnotation) })
	c.Eventually("it is replaced without the annotation", without(workers[1].Name), Ready, Workers(2))
	c.Gone()
}

// TestRecoveryBeforeRemediation checks that a Machine that recovers before its owner acts is kept.
func TestRecoveryBeforeRemediation(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	w.Patient() // A mark stays for some seconds.
	c := w.Subject(NewCluster("recovers", w.Class(w.Tools.ProjectTemplate())).Workers(2).WorkerCheck(sick(time.Second, "100%")).Build())
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(2), unmarked)
	before := c.Snapshot()
	worker, set := before.Workers()[0], &before.Sets.Items[0]
	still := c.Always("no Machine is replaced", SameMachines((*Snapshot).Workers, before))
	c.update(set, func() { metav1.SetMetaDataAnnotation(&set.ObjectMeta, clusterv1.PausedAnnotation, "") })
	c.inject(dead(worker))
	c.Eventually("the Machine is marked", machineCondition(worker.Name, clusterv1.MachineOwnerRemediatedCondition, corev1.ConditionFalse),
		c.Explains("Paused MachineSet/"+set.Name))
	c.faults("")
	c.Eventually("the mark is removed", unmarked)
	c.update(set, func() { delete(set.Annotations, clusterv1.PausedAnnotation) })
	c.Eventually("the Cluster is ready", Ready, Workers(2), c.check(workerCheck, allowance("", 2, 2)))
	still()
	c.Gone()
}

// TestNodeNeverJoins checks that a Machine without a Node is replaced after nodeStartupTimeout, which is half a minute at least.
func TestNodeNeverJoins(t *testing.T) {
	testenv.Soak(t)
	t.Parallel()
	w := shared.World(t)
	w.Patient()
	c := w.Subject(NewCluster("late", w.Class(w.Tools.ProjectTemplate())).Variable("startupDuration", "3s").Workers(1).Build())
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(1))
	check := sick(time.Hour, "100%")
	check.NodeStartupTimeout = &metav1.Duration{Duration: 30 * time.Second}
	c.ownCheck(check)
	first := c.Snapshot().Workers()[0]
	c.Change(SetWorkers(2))
	var second clusterv1.Machine
	c.Eventually("the second Machine is created", func(p *Snapshot) error {
		workers := p.Workers()
		if len(workers) != 2 {
			return errors.New("it does not exist")
		}
		second = workers[slices.IndexFunc(workers, func(m clusterv1.Machine) bool { return m.UID != first.UID })]
		return nil
	})
	c.inject(dead(second))
	still := c.Always("the first Machine is kept", kept(first))
	c.Eventually("the Machine without Node is explained", c.ExplainsAll("NodeNotJoined Machine/"+second.Name))
	c.Eventually("the second Machine is replaced", without(second.Name), Ready, Workers(2))
	still()
	c.Gone()
}

// remediationTemplate is a template of a third-party remediation provider.
const remediationTemplate = `
apiVersion: thirdparty.example.com/v1alpha1
kind: FooRemediationTemplate
metadata: {name: reboot}
spec: {template: {spec: {method: reboot}}}
`

// TestExternalRemediation checks that the requests of a third-party provider are created and deleted, and that owners do not act.
func TestExternalRemediation(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	w.Patient()
	remediationProvider(w)
	objects, err := parseObjects(remediationTemplate)
	if err != nil {
		t.Fatal(err)
	}
	w.Applied(objects[0])
	c := w.Subject(NewCluster("external", w.Class(w.Tools.ProjectTemplate())).Workers(2).Build())
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(2))
	check := sick(time.Second, "100%")
	check.RemediationTemplate = &corev1.ObjectReference{APIVersion: objects[0].GetAPIVersion(), Kind: objects[0].GetKind(), Name: "reboot"}
	c.ownCheck(check)
	before := c.Snapshot()
	workers := before.Workers()
	still := c.Always("no Machine is replaced", SameMachines((*Snapshot).Workers, before))
	c.inject(dead(workers...))
	for i := range workers {
		c.Eventually("the request is created", c.remediationRequest(&workers[i], true))
	}
	c.Eventually("the failure is explained", c.Explains("NodeUnhealthy Machine"))
	c.inject(dead(workers[1]))
	c.Eventually("the request is deleted once the Machine is back", c.remediationRequest(&workers[0], false), c.remediationRequest(&workers[1], true),
		machineCondition(workers[0].Name, clusterv1.MachineHealthCheckSucceededCondition, corev1.ConditionTrue))
	c.faults("")
	c.Eventually("all have recovered", c.remediationRequest(&workers[1], false), Ready, c.check(ownCheck, allowance("", 2, 2)))
	still()
	c.Gone()
}

// remediationProvider installs the CRDs of a remediation provider, and grants permissions to the managers as the contract says.
func remediationProvider(w *World) {
	t := w.t
	t.Helper()
	e := shared.server.Start(t)
	e.Install(t, thirdPartyDefinition("FooRemediation", "spec"), thirdPartyDefinition("FooRemediationTemplate", "spec", "template", "spec"))
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "thirdparty-remediation-capi", Labels: map[string]string{"cluster.x-k8s.io/aggregate-to-manager": "true"}},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{thirdPartyGroup}, Resources: []string{"fooremediations", "fooremediationtemplates"},
			Verbs: []string{"create", "delete", "get", "list", "patch", "update", "watch"}}},
	}
	if err := w.Client.Create(t.Context(), role); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("granting permissions to the managers: %v", err)
	}
}

// remediationRequest is true when the request for a Machine exists with its owner and content, or does not exist.
func (c *Subject) remediationRequest(m *clusterv1.Machine, exists bool) Condition {
	return func(*Snapshot) error {
		r := &unstructured.Unstructured{}
		r.SetAPIVersion(thirdPartyGroup + "/" + newestVersion)
		r.SetKind("FooRemediation")
		err := c.Client.Get(c.t.Context(), client.ObjectKeyFromObject(m), r)
		if !exists {
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("the request for Machine %s exists: %w", m.Name, err)
		}
		if err != nil {
			return err
		}
		method, _, _ := unstructured.NestedString(r.Object, "spec", "method")
		owners := r.GetOwnerReferences()
		if method != "reboot" || len(owners) != 1 || owners[0].UID != m.UID || owners[0].Controller != nil || r.GetLabels()[clusterv1.ClusterNameLabel] != c.Name {
			return fmt.Errorf("the request for Machine %s is %v", m.Name, strings.TrimSpace(fmt.Sprint(r.Object)))
		}
		return nil
	}
}
