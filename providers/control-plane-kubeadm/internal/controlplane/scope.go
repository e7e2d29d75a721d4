package controlplane

import (
	"context"
	"slices"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/connection"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/health"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/membership"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/scale"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/status"
)

// scope is one reconcile of one control plane: the snapshot, and the results of steps that later steps depend on.
type scope struct {
	*snapshot.ControlPlane
	// connection is the result of connect and stranded.
	connection connection.State
	// inspection is the result of inspect.
	inspection health.Inspection
	// newCA is a result of certificates: it has created the cluster CA, so the cluster has not been initialized.
	newCA bool
	// provided is true if the steps from certificates to adopt have completed: Machines can be created.
	provided bool
	// action is the result of plan.
	action scale.Action
	// workers is the number of worker Machines and MachinePools of a Cluster whose control plane is being deleted.
	workers int
}

// scope reads a control plane.
func (c *Controller) scope(ctx context.Context, kcp *controlplanev1.KubeadmControlPlane) (*scope, error) {
	read, err := c.Snapshots.Read(ctx, kcp)
	if err != nil {
		return nil, err
	}
	s := &scope{ControlPlane: read}
	if kcp.DeletionTimestamp != nil && read.Cluster != nil {
		s.workers, err = c.deleter().Workers(ctx, read)
	}
	return s, err
}

// membership returns what decisions about etcd members are based on.
func (s *scope) membership() membership.State {
	return membership.State{
		ControlPlane: s.ControlPlane, Workload: s.connection.Workload, Observed: s.inspection.Observed, Lost: s.connection.Lost,
	}
}

// found returns what the status is computed from.
func (s *scope) found() status.Found {
	return status.Found{ControlPlane: s.ControlPlane, Inspection: s.inspection, Lost: s.connection.Lost, Action: s.action}
}

func (s *scope) hasWorkers() bool { return s.workers > 0 }

// losesMachines reports whether Machines of an initialized cluster are being deleted. Before that there are no etcd members.
func (s *scope) losesMachines() bool {
	return s.Initialized() && slices.ContainsFunc(s.Machines, (*snapshot.Machine).Deleting)
}
