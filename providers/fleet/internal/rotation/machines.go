package rotation

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/rotation/plan"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// steps returns the names of the steps, in order.
func steps() []string {
	return []string{fleetv1.TrustBothStep, fleetv1.ReissueStep, fleetv1.DropOldStep}
}

// replacesWorkers reports whether a step replaces Machines that are not in the control plane: those that have to trust another cluster CA,
// and those whose kubelets and Pods need credentials of the new authorities before the old ones are dropped.
func replacesWorkers(s *scope, name string) bool {
	return s.rotates(fleetv1.ClusterCA) || s.rotates(fleetv1.ServiceAccountKey) && name == fleetv1.ReissueStep
}

func (s *scope) replacesWorkersEver() bool { return replacesWorkers(s, fleetv1.ReissueStep) }

// rolloutsNeeded returns how often a step replaces the control plane. In Reissue, the kubelets of its first Machines may have got their
// certificates from a kube-controller-manager that still signed with the old key. That matters if they do not use the API server on the
// same machine, as they do since v1.31, because another one will refuse them in the next step.
func rolloutsNeeded(s *scope, name string) int {
	if name == fleetv1.ReissueStep && s.rotates(fleetv1.ClusterCA) && older(s.controlPlane.Spec.Version, 31) {
		return 2
	}
	return 1
}

func older(kubernetes string, minor int) bool {
	var major, found int
	if _, err := fmt.Sscanf(kubernetes, "v%d.%d.", &major, &found); err != nil {
		return false
	}
	return major == 1 && found < minor
}

func isControlPlane(m *clusterv1.Machine) bool {
	_, ok := m.Labels[clusterv1.MachineControlPlaneLabel]
	return ok
}

func (s *scope) controlPlaneMachines() []*clusterv1.Machine {
	return s.machinesWhere(isControlPlane)
}

// workerMachines returns the Machines outside of the control plane, except those of MachinePools.
func (s *scope) workerMachines() []*clusterv1.Machine {
	return s.machinesWhere(func(m *clusterv1.Machine) bool {
		_, ofPool := m.Labels[clusterv1.MachinePoolNameLabel]
		return !isControlPlane(m) && !ofPool
	})
}

func (s *scope) machinesWhere(is func(m *clusterv1.Machine) bool) []*clusterv1.Machine {
	var found []*clusterv1.Machine
	for i := range s.machines {
		if is(&s.machines[i]) {
			found = append(found, &s.machines[i])
		}
	}
	return found
}

// isReady reports whether a Machine runs, and is not being deleted. Machines of other versions may not have the condition.
func isReady(m *clusterv1.Machine) bool {
	ready := report.Get(m, clusterv1.MachineReadyCondition)
	return m.DeletionTimestamp.IsZero() && m.Status.NodeRef.IsDefined() && (ready == nil || ready.Status == "True")
}

// replaced returns how many Machines were created since a time, and are ready.
func replaced(machines []*clusterv1.Machine, since time.Time) int {
	n := 0
	for _, m := range machines {
		if !m.CreationTimestamp.Time.Before(since) && isReady(m) {
			n++
		}
	}
	return n
}

// controlPlaneFacts returns the facts of the control plane for a step.
func (s *scope) controlPlaneFacts(mark *fleetv1.RotationStep) plan.Machines {
	machines := s.controlPlaneMachines()
	m := plan.Machines{Replace: true, Total: int(ptr.Deref(s.controlPlane.Spec.Replicas, 1))}
	if mark == nil || mark.RolloutTime == nil {
		return m
	}
	m.Since = mark.RolloutTime.Time
	m.Requested = !s.controlPlane.Spec.Rollout.After.Time.Before(m.Since)
	m.Replaced = min(replaced(machines, m.Since), m.Total)
	if m.Replaced == m.Total && (len(machines) != m.Total || !settled(s.controlPlane)) {
		m.Pending = "KubeadmControlPlane " + s.controlPlane.Name + " is not available yet, or old Machines are being deleted"
	}
	return m
}

// workerFacts returns the facts of the other Machines for a step.
func (s *scope) workerFacts(name string, mark *fleetv1.RotationStep) plan.Machines {
	machines := s.workerMachines()
	m := plan.Machines{Replace: replacesWorkers(s, name) && len(machines)+len(s.deployments) > 0}
	for i := range s.deployments {
		m.Total += int(ptr.Deref(s.deployments[i].Spec.Replicas, 1))
	}
	for _, one := range machines {
		if one.Labels[clusterv1.MachineDeploymentNameLabel] == "" {
			m.Total++
		}
	}
	if mark == nil || mark.WorkersRolloutTime == nil {
		return m
	}
	m.Since, m.Requested = mark.WorkersRolloutTime.Time, true
	for i := range s.deployments {
		m.Requested = m.Requested && !s.deployments[i].Spec.Rollout.After.Time.Before(m.Since)
	}
	m.Replaced = min(replaced(machines, m.Since), m.Total)
	switch manual := s.manual(machines, m.Since); {
	case len(manual) > 0:
		m.Pending = "nothing replaces " + report.Names(manual) + ": delete these Machines, one after another"
	case m.Replaced == m.Total && len(machines) != m.Total:
		m.Pending = "old Machines are being deleted"
	}
	return m
}

// manual returns the old Machines that only users replace: those without a MachineDeployment, and with strategy OnDelete.
func (s *scope) manual(machines []*clusterv1.Machine, since time.Time) []string {
	users := onDelete(s)
	var names []string
	for _, m := range machines {
		md := m.Labels[clusterv1.MachineDeploymentNameLabel]
		if m.CreationTimestamp.Time.Before(since) && m.DeletionTimestamp.IsZero() &&
			(md == "" || slices.Contains(users, "MachineDeployment "+md)) {
			names = append(names, "Machine "+m.Name)
		}
	}
	slices.Sort(names)
	return names
}

// poolFacts returns what MachinePools wait for in a step.
func (s *scope) poolFacts(name string) string {
	if !replacesWorkers(s, name) {
		return ""
	}
	mark := fleetv1.RotationMark(s.rotation.Name, name)
	for i := range s.pools {
		if p := &s.pools[i]; p.Annotations[fleetv1.RotatedAnnotation] != mark {
			return fmt.Sprintf("you to replace all machines of MachinePool %s, and then to run: "+
				"kubectl annotate --overwrite machinepool -n %s %s %s=%s",
				p.Name, p.Namespace, p.Name, fleetv1.RotatedAnnotation, mark)
		}
	}
	return ""
}
