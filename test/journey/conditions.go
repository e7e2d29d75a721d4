package journey

import (
	"errors"
	"fmt"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1beta2 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Condition returns nil if it is true in a Snapshot, and otherwise why not.
type Condition func(*Snapshot) error

// Present is true when the Cluster exists.
func Present(p *Snapshot) error {
	if p.Cluster.Name == "" {
		return errors.New("the Cluster does not exist")
	}
	return nil
}

// Absent is true when neither the Cluster nor any of its objects in Snapshots exist.
func Absent(p *Snapshot) error {
	if p.Cluster.Name != "" {
		return errors.New("the Cluster still exists")
	}
	left := len(p.ControlPlanes.Items) + len(p.Deployments.Items) + len(p.Sets.Items) + len(p.Pools.Items) + len(p.Machines.Items)
	if left > 0 {
		return fmt.Errorf("%d objects of the Cluster still exist", left)
	}
	return nil
}

// Ready is true when the Cluster is reconciled and its conditions are True.
func Ready(p *Snapshot) error {
	if err := Present(p); err != nil {
		return err
	}
	c := p.Cluster
	if c.Status.ObservedGeneration != c.Generation {
		return fmt.Errorf("the Cluster's generation is %d, observed is %d", c.Generation, c.Status.ObservedGeneration)
	}
	want := []clusterv1.ConditionType{
		clusterv1.ReadyCondition, clusterv1.InfrastructureReadyCondition, clusterv1.ControlPlaneReadyCondition,
		clusterv1.ControlPlaneInitializedCondition,
	}
	if c.Spec.Topology != nil {
		want = append(want, clusterv1.TopologyReconciledCondition)
	}
	for _, t := range want {
		if !ConditionIsTrue(c, t) {
			return fmt.Errorf("the Cluster's condition %s is not True", t)
		}
	}
	if phase := c.Status.GetTypedPhase(); phase != clusterv1.ClusterPhaseProvisioned {
		return fmt.Errorf("the Cluster's phase is %s", phase)
	}
	return nil
}

// ControlPlanes is true when exactly n control plane Machines exist, run, and are counted by the KubeadmControlPlane.
func ControlPlanes(n int) Condition {
	return func(p *Snapshot) error {
		if err := running(p.ControlPlane(), n); err != nil {
			return fmt.Errorf("control plane: %w", err)
		}
		if len(p.ControlPlanes.Items) != 1 {
			return fmt.Errorf("%d KubeadmControlPlanes, want 1", len(p.ControlPlanes.Items))
		}
		k := &p.ControlPlanes.Items[0]
		want := controlplanev1.KubeadmControlPlaneStatus{
			Replicas: int32(n), UpdatedReplicas: int32(n), ReadyReplicas: int32(n), Initialized: true, Ready: true,
			Version: &k.Spec.Version, ObservedGeneration: k.Generation,
			Versions: []clusterv1beta2.StatusVersion{{Version: k.Spec.Version, Replicas: ptr.To(int32(n))}},
		}
		have := k.Status
		if have.Versions == nil {
			want.Versions = nil // Definitions of Cluster API v1.13 and older do not have it.
		}
		// What v1beta2 adds is written up to ten seconds later.
		have.Selector, have.Conditions, have.LastRemediation, have.V1Beta2 = "", nil, nil, nil
		if diff := cmp.Diff(want, have); diff != "" {
			return fmt.Errorf("status of KubeadmControlPlane %s (-want +got):\n%s", k.Name, diff)
		}
		return nil
	}
}

// Workers is true when exactly n worker Machines exist besides those of MachinePools, run, and are counted by the MachineDeployments.
func Workers(n int) Condition {
	return func(p *Snapshot) error {
		if err := running(p.Deployed(), n); err != nil {
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
			if !ConditionIsTrue(m, t) {
				return fmt.Errorf("condition %s of Machine %s is not True", t, m.Name)
			}
		}
	}
	return nil
}

// Version is true when every Machine has this version.
func Version(v string) Condition {
	return func(p *Snapshot) error {
		if n := count(p.Machines.Items, ofVersion(v)); n != len(p.Machines.Items) {
			return fmt.Errorf("%d of %d Machines have version %s", n, len(p.Machines.Items), v)
		}
		return nil
	}
}

// Either is true when one of the conditions is.
func Either(conditions ...Condition) Condition {
	return func(p *Snapshot) error {
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

// SameMachines is true while the Machines are those of an earlier Snapshot: none is added, replaced or deleted.
func SameMachines(which func(*Snapshot) []clusterv1.Machine, earlier *Snapshot) Condition {
	want := identities(which(earlier))
	return func(p *Snapshot) error {
		if diff := cmp.Diff(want, identities(which(p))); diff != "" {
			return fmt.Errorf("Machines and their UIDs (-before +now):\n%s", diff)
		}
		return nil
	}
}

// NewMachines is true when none of the Machines was in an earlier Snapshot.
func NewMachines(which func(*Snapshot) []clusterv1.Machine, earlier *Snapshot) Condition {
	old := identities(which(earlier))
	return func(p *Snapshot) error {
		for name, uid := range identities(which(p)) {
			if old[name] == uid {
				return fmt.Errorf("Machine %s is not replaced", name)
			}
		}
		return nil
	}
}

// ControlPlaneFirst is true while no worker has this version before the whole control plane.
func ControlPlaneFirst(version string) Condition {
	return func(p *Snapshot) error {
		workers := count(p.Workers(), ofVersion(version))
		all := p.ControlPlane()
		if upgraded := count(all, ofVersion(version)); workers > 0 && upgraded != len(all) {
			return fmt.Errorf("%d workers have version %s, but only %d of %d control plane Machines", workers, version, upgraded, len(all))
		}
		return nil
	}
}

// AvailableControlPlane is true while at least n control plane Machines are available.
func AvailableControlPlane(n int) Condition {
	return func(p *Snapshot) error {
		if have := available(p.ControlPlane()); have < n {
			return fmt.Errorf("%d control plane Machines are available, want at least %d", have, n)
		}
		return nil
	}
}

// AvailableWorkers is true while at least n workers are available, and the MachineDeployments report at least n.
func AvailableWorkers(n int) Condition {
	return func(p *Snapshot) error {
		if have := available(p.Workers()); have < n {
			return fmt.Errorf("%d workers are available, want at least %d", have, n)
		}
		reported := 0
		for _, d := range p.Deployments.Items {
			reported += int(d.Status.AvailableReplicas)
		}
		if reported < n {
			return fmt.Errorf("MachineDeployments report %d available replicas, want at least %d", reported, n)
		}
		return nil
	}
}

// AtMost is true while at most this many Machines exist, without those that are being deleted.
func AtMost(controlPlane, workers int) Condition {
	return func(p *Snapshot) error {
		alive := func(m *clusterv1.Machine) bool { return m.DeletionTimestamp.IsZero() }
		if n := count(p.ControlPlane(), alive); n > controlPlane {
			return fmt.Errorf("%d control plane Machines, want at most %d", n, controlPlane)
		}
		if n := count(p.Workers(), alive); n > workers {
			return fmt.Errorf("%d workers, want at most %d", n, workers)
		}
		return nil
	}
}
