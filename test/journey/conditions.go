package journey

import (
	"errors"
	"fmt"

	"github.com/google/go-cmp/cmp"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
)

// Condition returns nil when it is true in a Picture, and otherwise what is missing.
type Condition func(*Picture) error

// Present is true when the Cluster exists.
func Present(p *Picture) error {
	if p.Cluster.Name == "" {
		return errors.New("there is no Cluster")
	}
	return nil
}

// Absent is true when the Cluster does not exist, nor anything that Pictures show of it.
func Absent(p *Picture) error {
	if p.Cluster.Name != "" {
		return errors.New("the Cluster is still there")
	}
	left := len(p.ControlPlanes.Items) + len(p.Deployments.Items) + len(p.Sets.Items) + len(p.Machines.Items)
	if left > 0 {
		return fmt.Errorf("%d objects of the Cluster are still there", left)
	}
	return nil
}

// Ready is true when the Cluster as a whole is what its spec asks for, and says so.
func Ready(p *Picture) error {
	if err := Present(p); err != nil {
		return err
	}
	c := p.Cluster
	if c.Status.ObservedGeneration != c.Generation {
		return fmt.Errorf("the Cluster's generation is %d, observed is %d", c.Generation, c.Status.ObservedGeneration)
	}
	for _, t := range []clusterv1.ConditionType{
		clusterv1.ReadyCondition, clusterv1.InfrastructureReadyCondition, clusterv1.ControlPlaneReadyCondition,
		clusterv1.ControlPlaneInitializedCondition, clusterv1.TopologyReconciledCondition,
	} {
		if !condition.IsTrue(c, t) {
			return fmt.Errorf("the Cluster's condition %s is not True", t)
		}
	}
	if phase := c.Status.GetTypedPhase(); phase != clusterv1.ClusterPhaseProvisioned {
		return fmt.Errorf("the Cluster's phase is %s", phase)
	}
	return nil
}

// ControlPlanes is true when there are exactly n control plane Machines, all running as the KubeadmControlPlane asks.
func ControlPlanes(n int) Condition {
	return func(p *Picture) error {
		if err := running(p.ControlPlane(), n); err != nil {
			return fmt.Errorf("control plane: %w", err)
		}
		if len(p.ControlPlanes.Items) != 1 {
			return fmt.Errorf("there are %d KubeadmControlPlanes", len(p.ControlPlanes.Items))
		}
		k := &p.ControlPlanes.Items[0]
		want := controlplanev1.KubeadmControlPlaneStatus{
			Replicas: int32(n), UpdatedReplicas: int32(n), ReadyReplicas: int32(n), Initialized: true, Ready: true,
			Version: &k.Spec.Version, ObservedGeneration: k.Generation,
		}
		have := k.Status
		have.Selector, have.Conditions, have.LastRemediation = "", nil, nil
		if diff := cmp.Diff(want, have); diff != "" {
			return fmt.Errorf("status of KubeadmControlPlane %s (-want +got):\n%s", k.Name, diff)
		}
		return nil
	}
}

// Workers is true when there are exactly n worker Machines, all running as the MachineDeployments ask.
func Workers(n int) Condition {
	return func(p *Picture) error {
		if err := running(p.Workers(), n); err != nil {
			return fmt.Errorf("workers: %w", err)
		}
		var sum clusterv1.MachineDeploymentStatus
		for _, d := range p.Deployments.Items {
			if d.Status.ObservedGeneration != d.Generation {
				return fmt.Errorf("generation %d of MachineDeployment %s is not observed", d.Generation, d.Name)
			}
			sum.Replicas += d.Status.Replicas
			sum.UpdatedReplicas += d.Status.UpdatedReplicas
			sum.ReadyReplicas += d.Status.ReadyReplicas
			sum.AvailableReplicas += d.Status.AvailableReplicas
			sum.UnavailableReplicas += d.Status.UnavailableReplicas
		}
		all := int32(n)
		want := clusterv1.MachineDeploymentStatus{Replicas: all, UpdatedReplicas: all, ReadyReplicas: all, AvailableReplicas: all}
		if diff := cmp.Diff(want, sum); diff != "" {
			return fmt.Errorf("status of MachineDeployments (-want +got):\n%s", diff)
		}
		return nil
	}
}

func running(machines []clusterv1.Machine, n int) error {
	if len(machines) != n {
		return fmt.Errorf("%d Machines, want %d", len(machines), n)
	}
	for i := range machines {
		m := &machines[i]
		if phase := m.Status.GetTypedPhase(); phase != clusterv1.MachinePhaseRunning {
			return fmt.Errorf("the phase of Machine %s is %s", m.Name, phase)
		}
		for _, t := range []clusterv1.ConditionType{clusterv1.ReadyCondition, clusterv1.MachineNodeHealthyCondition} {
			if !condition.IsTrue(m, t) {
				return fmt.Errorf("condition %s of Machine %s is not True", t, m.Name)
			}
		}
	}
	return nil
}

// Version is true when every Machine is of this version.
func Version(v string) Condition {
	return func(p *Picture) error {
		if n := count(p.Machines.Items, ofVersion(v)); n != len(p.Machines.Items) {
			return fmt.Errorf("%d of %d Machines are of version %s", n, len(p.Machines.Items), v)
		}
		return nil
	}
}

// Either is true when one of the conditions is.
func Either(conditions ...Condition) Condition {
	return func(p *Picture) error {
		var all error
		for _, c := range conditions {
			err := c(p)
			if err == nil {
				return nil
			}
			all = errors.Join(all, err)
		}
		return all
	}
}

// SameMachines is true while the Machines are those of an earlier Picture: none was added, replaced or deleted.
func SameMachines(which func(*Picture) []clusterv1.Machine, earlier *Picture) Condition {
	want := identities(which(earlier))
	return func(p *Picture) error {
		if diff := cmp.Diff(want, identities(which(p))); diff != "" {
			return fmt.Errorf("Machines and their UIDs (-before +now):\n%s", diff)
		}
		return nil
	}
}

// NewMachines is true when none of the Machines was in an earlier Picture.
func NewMachines(which func(*Picture) []clusterv1.Machine, earlier *Picture) Condition {
	old := identities(which(earlier))
	return func(p *Picture) error {
		for name, uid := range identities(which(p)) {
			if old[name] == uid {
				return fmt.Errorf("Machine %s is not replaced", name)
			}
		}
		return nil
	}
}

// ControlPlaneFirst is true while no worker is of a version that the whole control plane does not have.
func ControlPlaneFirst(version string) Condition {
	return func(p *Picture) error {
		workers := count(p.Workers(), ofVersion(version))
		all := p.ControlPlane()
		if upgraded := count(all, ofVersion(version)); workers > 0 && upgraded != len(all) {
			return fmt.Errorf("%d workers are of version %s and only %d of %d control plane Machines", workers, version, upgraded, len(all))
		}
		return nil
	}
}

// AvailableControlPlane is true while at least n control plane Machines serve.
func AvailableControlPlane(n int) Condition {
	return func(p *Picture) error {
		if have := available(p.ControlPlane()); have < n {
			return fmt.Errorf("%d control plane Machines are available, %d have to be", have, n)
		}
		return nil
	}
}

// AvailableWorkers is true while at least n workers serve, and the MachineDeployments do not claim fewer.
func AvailableWorkers(n int) Condition {
	return func(p *Picture) error {
		if have := available(p.Workers()); have < n {
			return fmt.Errorf("%d workers are available, %d have to be", have, n)
		}
		claimed := 0
		for _, d := range p.Deployments.Items {
			claimed += int(d.Status.AvailableReplicas)
		}
		if claimed < n {
			return fmt.Errorf("MachineDeployments report %d available replicas, %d have to be", claimed, n)
		}
		return nil
	}
}

// AtMost is true while there are no more Machines, not counting deleting ones, than these.
func AtMost(controlPlane, workers int) Condition {
	return func(p *Picture) error {
		alive := func(m *clusterv1.Machine) bool { return m.DeletionTimestamp.IsZero() }
		if n := count(p.ControlPlane(), alive); n > controlPlane {
			return fmt.Errorf("%d control plane Machines, at most %d may be", n, controlPlane)
		}
		if n := count(p.Workers(), alive); n > workers {
			return fmt.Errorf("%d workers, at most %d may be", n, workers)
		}
		return nil
	}
}
