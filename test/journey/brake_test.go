package journey

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1beta2 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// fleetUnhealthy is the message of a health check that remediates nothing because more than one Cluster has unhealthy Machines.
const fleetUnhealthy = "No Machine is remediated: more Clusters are unhealthy at the same time than --remediation-max-unhealthy-clusters=1 allows. " +
	"Find what they have in common, such as a network: remediation resumes when fewer are. " +
	"Machines with annotation cluster.x-k8s.io/remediate-machine are remediated regardless"

// newFleet returns a World in a management cluster of its own, whose core manager has a flag.
func newFleet(t *testing.T, flag string) *World {
	t.Helper()
	s := NewStandalone(t, shared.Management(t).Tools)
	testenv.Must(t, s.tools.install(t.Context(), s.kubeconfig()))
	for _, args := range [][]string{
		{"patch", "deployment", "capi-controller-manager", "--type", "json",
			"--patch", fmt.Sprintf(`[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": %q}]`, flag)},
		{"rollout", "status", "deployment", "capi-controller-manager"},
	} {
		if r := s.tools.Kubectl(t.Context(), "", append(args, "--namespace", "capi-system", "--kubeconfig", s.kubeconfig())...); r.Failed {
			t.Fatal(r)
		}
	}
	return s.Management().World(t)
}

// checkWorkers changes the timeout of the workers' health check.
func checkWorkers(timeout time.Duration) func(*clusterv1.Cluster) {
	return func(c *clusterv1.Cluster) { (&ClusterBuilder{c}).WorkerCheck(sick(timeout, "100%")) }
}

// heldBack is true when a worker was found unhealthy, its owner is not asked to replace it, and condition and Event of its health check
// explain that with the state of the fleet; the Event also has the count.
func (c *Subject) heldBack(machine, count string) Condition {
	return func(p *Snapshot) error {
		if err := machineCondition(machine, clusterv1.MachineHealthCheckSucceededCondition, corev1.ConditionFalse)(p); err != nil {
			return err
		}
		if machineCondition(machine, clusterv1.MachineOwnerRemediatedCondition, corev1.ConditionFalse)(p) == nil {
			return fmt.Errorf("Machine %s is marked for remediation", machine)
		}
		err := c.check(workerCheck, func(h *clusterv1.MachineHealthCheck) error {
			got := FindCondition(h, clusterv1.RemediationAllowedCondition)
			if got == nil || got.Status != corev1.ConditionFalse || got.Reason != clusterv1beta2.FleetUnhealthyV1Beta1Reason || got.Message != fleetUnhealthy {
				return fmt.Errorf("condition %+v, want reason %s and message %q", got, clusterv1beta2.FleetUnhealthyV1Beta1Reason, fleetUnhealthy)
			}
			return nil
		})(p)
		return errors.Join(err, c.announced(workerCheck(p), "RemediationRestricted", fleetUnhealthy+": "+count))
	}
}

// announced returns an error unless an object of the Cluster has an Event with this reason and message.
func (c *Subject) announced(name, reason, message string) error {
	list := &corev1.EventList{}
	if err := c.Client.List(c.t.Context(), list, client.InNamespace(c.Namespace)); err != nil {
		return err
	}
	var others []string
	for i := range list.Items {
		e := &list.Items[i]
		if e.InvolvedObject.Name != name || e.Reason != reason {
			continue
		}
		if e.Message == message {
			return nil
		}
		others = append(others, e.Message)
	}
	return fmt.Errorf("%s has no Event %s with message %q, but %q", name, reason, message, others)
}

// TestFleetUnhealthy checks that nothing is remediated while more Clusters have unhealthy Machines than the core manager's flag allows, and
// that once enough of them are back, what is still dead is replaced, and nothing else.
//
// Each change checks the decision, its message and its end in the tests of the health check.
func TestFleetUnhealthy(t *testing.T) {
	testenv.Soak(t)
	t.Parallel()
	w := newFleet(t, "--remediation-max-unhealthy-clusters=1")
	class := w.Class(w.Tools.ProjectTemplate())
	var fleet []*Subject
	for _, name := range []string{"one", "two", "three"} {
		cluster := NewCluster(name, class).Workers(2).Build()
		checkWorkers(time.Hour)(cluster)
		fleet = append(fleet, w.Subject(cluster))
	}
	workers, still := make([][]clusterv1.Machine, len(fleet)), make([]func(), len(fleet))
	for i, c := range fleet {
		c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(2), unmarked)
		before := c.Snapshot()
		workers[i], still[i] = before.Workers(), c.Always("no Machine is replaced", SameMachines((*Snapshot).Workers, before))
	}
	for i, c := range fleet {
		c.inject(dead(workers[i]...))
	}
	for i, c := range fleet {
		c.Eventually("the failure is observed", machineCondition(workers[i][0].Name, clusterv1.MachineNodeHealthyCondition, corev1.ConditionUnknown))
	}
	for _, c := range fleet { // Only now, so that all have failed when the first timeout expires, however slow the machine is.
		c.Change(checkWorkers(time.Second))
	}
	for i, c := range fleet {
		c.Eventually("remediation is held back", c.heldBack(workers[i][0].Name, "3 of 3 Clusters have unhealthy Machines"),
			c.Explains("RemediationRestricted MachineHealthCheck", fleetUnhealthy))
	}

	last, victim, survivor := fleet[2], workers[2][0], workers[2][1]
	last.inject(dead(victim))
	fleet[0].faults("")
	last.Eventually("the other machine is back", machineCondition(survivor.Name, clusterv1.MachineNodeHealthyCondition, corev1.ConditionTrue))
	still[2]() // Two Clusters are unhealthy until the next one is repaired.
	only := last.Always("only the dead Machine is replaced", kept(survivor), AtMost(1, 2))
	fleet[1].faults("")
	for i, c := range fleet[:2] {
		c.Eventually("the Cluster has recovered", Ready, ControlPlanes(1), Workers(2), unmarked, c.check(workerCheck, allowance("", 2, 2)))
		still[i]()
	}
	last.Change(checkWorkers(2 * time.Second)) // The check would notice by itself, but half a minute late.
	last.Eventually("the dead Machine is replaced", without(victim.Name), Ready, ControlPlanes(1), Workers(2), unmarked,
		last.check(workerCheck, allowance("", 2, 2)))
	only()
}
