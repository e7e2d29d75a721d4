package cluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// newMachine is how old a Machine must be to be missed among those with the condition UpToDate: its owner sets it after its creation.
const newMachine = 10 * time.Second

// child returns the condition of an object for an aggregate.
func child(kind, name, t string, from report.Getter, negative bool) report.Child {
	c := report.Get(from, t)
	if c == nil {
		missing := report.Missing(t)
		c = &missing
	}
	return report.Child{Kind: kind, Name: name, Source: report.Source{Condition: *c, Negative: negative}}
}

// machineReports aggregates the conditions of the Machines.
func (s *scope) ofMachines() []metav1.Condition {
	var all []metav1.Condition
	for _, of := range []struct {
		controlPlane    bool
		ready, upToDate string
	}{
		{true, clusterv1.ClusterControlPlaneMachinesReadyCondition, clusterv1.ClusterControlPlaneMachinesUpToDateCondition},
		{false, clusterv1.ClusterWorkerMachinesReadyCondition, clusterv1.ClusterWorkerMachinesUpToDateCondition},
	} {
		var ready, upToDate []report.Child
		for _, m := range s.family.machines {
			if isControlPlane(m) != of.controlPlane {
				continue
			}
			ready = append(ready, child("Machine", m.Name, clusterv1.ReadyCondition, m, false))
			if s.isExpectedUpToDate(m) {
				upToDate = append(upToDate, child("Machine", m.Name, clusterv1.MachineUpToDateCondition, m, false))
			}
		}
		all = append(all, unlessNone(of.ready, report.ReasonsOf(clusterv1.ReadyReason), clusterv1.NoReplicasReason, ready),
			unlessNone(of.upToDate, report.ReasonsOf(clusterv1.UpToDateReason), clusterv1.NoReplicasReason, upToDate))
	}
	return all
}

// isExpectedUpToDate reports whether a Machine counts for the Machines that are up to date. Those that no other object manages have no such
// condition.
func (s *scope) isExpectedUpToDate(m *clusterv1.Machine) bool {
	return report.Get(m, clusterv1.MachineUpToDateCondition) != nil ||
		(metav1.GetControllerOf(m) != nil && s.now.Sub(m.CreationTimestamp.Time) >= newMachine)
}

// unlessNone aggregates conditions of objects; without objects, the condition is True.
func unlessNone(t string, of report.Reasons, none string, children []report.Child) metav1.Condition {
	if len(children) == 0 {
		return report.True(t, none, "")
	}
	return report.Aggregate(t, of, false, children)
}

func (s *scope) workersAvailable() metav1.Condition {
	var children []report.Child
	for i := range s.family.deployments {
		md := &s.family.deployments[i]
		children = append(children, child("MachineDeployment", md.Name, clusterv1.AvailableCondition, md, false))
	}
	return unlessNone(clusterv1.ClusterWorkersAvailableCondition, report.ReasonsOf(clusterv1.AvailableReason),
		clusterv1.ClusterNoWorkersReason, children)
}

func (s *scope) rollingOut() metav1.Condition {
	t := clusterv1.RollingOutCondition
	return report.Aggregate(t, report.ReasonsOf(t), true, append(s.ofControlPlane(t), s.ofDeployments(t)...))
}

func (s *scope) scalingUp() metav1.Condition { return s.scaling(clusterv1.ScalingUpCondition) }

func (s *scope) scalingDown() metav1.Condition { return s.scaling(clusterv1.ScalingDownCondition) }

func (s *scope) scaling(t string) metav1.Condition {
	children := append(s.ofControlPlane(t), s.ofDeployments(t)...)
	for i := range s.family.sets {
		if set := &s.family.sets[i]; metav1.GetControllerOf(set) == nil {
			children = append(children, child("MachineSet", set.Name, t, set, true))
		}
	}
	return report.Aggregate(t, report.ReasonsOf(t), true, children)
}

func (s *scope) ofDeployments(t string) []report.Child {
	var children []report.Child
	for i := range s.family.deployments {
		md := &s.family.deployments[i]
		children = append(children, child("MachineDeployment", md.Name, t, md, true))
	}
	return children
}

// ofControlPlane returns the condition of the control plane object, which is optional.
func (s *scope) ofControlPlane(t string) []report.Child {
	if s.plane.Object == nil {
		return nil
	}
	conditions, err := s.plane.Object.Reports()
	c := report.Find(conditions, t)
	if err != nil || c == nil {
		return nil // An invalid condition is reported with ControlPlaneAvailable.
	}
	return []report.Child{{
		Kind: s.plane.Object.GetKind(), Name: s.plane.Object.GetName(), ControlPlane: true,
		Source: report.Source{Condition: *c, Negative: true},
	}}
}

// remediating reports the Machines that are being remediated, or else those that are not healthy and are not remediated.
func (s *scope) remediating() metav1.Condition {
	t := clusterv1.RemediatingCondition
	var children []report.Child
	var byControlPlane, left []string
	for _, m := range s.family.machines {
		switch {
		case report.IsFalse(m, clusterv1.MachineOwnerRemediatedCondition):
			one := child("Machine", m.Name, clusterv1.MachineOwnerRemediatedCondition, m, false)
			one.ControlPlane = isControlPlane(m)
			children = append(children, one)
		case !report.IsFalse(m, clusterv1.MachineHealthCheckSucceededCondition):
		case isControlPlane(m) && s.plane.Object != nil:
			byControlPlane = append(byControlPlane, m.Name)
		default:
			left = append(left, m.Name)
		}
	}
	if len(children) > 0 {
		return report.Aggregate(t, report.ReasonsOf(t), true, children)
	}
	var lines []string
	if len(byControlPlane) > 0 {
		lines = append(lines, unhealthy(byControlPlane, "not to be remediated by "+s.plane.Object.GetKind()))
	}
	if len(left) > 0 {
		lines = append(lines, unhealthy(left, "not to be remediated"))
	}
	return report.False(t, clusterv1.NotRemediatingReason, "%s", strings.Join(lines, "\n"))
}

func unhealthy(machines []string, note string) string {
	slices.Sort(machines)
	if len(machines) == 1 {
		return fmt.Sprintf("Machine %s is not healthy (%s)", machines[0], note)
	}
	return fmt.Sprintf("Machines %s are not healthy (%s)", report.Names(machines), note)
}
