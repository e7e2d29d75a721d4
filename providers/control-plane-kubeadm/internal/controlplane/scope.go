package controlplane

import (
	"context"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/connection"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/credentials"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/health"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/machines"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/membership"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/remediation"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/scale"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Controller reconciles KubeadmControlPlanes.
type Controller struct {
	// Clients writes as machines.FieldManager.
	step.Clients
	external    external.Reader
	snapshots   snapshot.Reader
	connector   *connection.Connector
	members     *membership.Remover
	credentials *credentials.Provider
	machines    *machines.Manager
	remediator  remediation.Remediator
	scaler      scale.Scaler
	// machinePools is true if the kind MachinePool is enabled.
	machinePools bool
	// watchesPools is true if MachinePools are in the cache. Otherwise a deletion that waits for them looks again from time to time.
	watchesPools bool

	// maintained holds what was maintained, by the UID of the control plane. Losing it costs a few reads.
	maintained sync.Map
}

// newController returns a Controller. The reader secrets is a credentials.SecretReader.
func newController(
	clients step.Clients, external external.Reader, secrets client.Reader, workloads connection.Workloads, keys *pki.Keys,
) *Controller {
	writer := &machines.Manager{Clients: clients, External: external}
	return &Controller{
		Clients: clients, external: external,
		snapshots:   snapshot.Reader{Client: clients.Client, External: external, Clock: clients.Clock},
		connector:   &connection.Connector{Workloads: workloads, Clock: clients.Clock},
		members:     &membership.Remover{Clients: clients},
		credentials: &credentials.Provider{Clients: clients, Secrets: secrets, Keys: keys},
		machines:    writer,
		remediator:  remediation.Remediator{Manager: writer},
		scaler:      scale.Scaler{Manager: writer},
	}
}

// confirm returns the reader that checks snapshots against the API server.
func (c *Controller) confirm() snapshot.LiveReader { return snapshot.LiveReader{Reader: c.Live} }

// scope is one reconcile of one control plane: the snapshot, and the results of steps that later steps depend on.
type scope struct {
	*snapshot.ControlPlane
	// connection is the result of connect and stranded.
	connection connection.State
	// observed is a result of inspect: the workload cluster, nil if it was not observed.
	observed *health.Observation
	// regressed is a result of inspect: a component or etcd member is unhealthy that was healthy before.
	regressed bool
	// operation holds the control plane, nil if its annotation is invalid, and heldBy is what is said about it, see holder.
	operation *fleetv1.Operation
	heldBy    string
	// newCA is a result of certificates: it has created the cluster CA, so the cluster has not been initialized.
	newCA bool
	// canCreate is true if the steps from certificates to adopt have completed: Machines can be created.
	canCreate bool
	// action is the result of plan.
	action scale.Action
	// workers is the number of worker Machines and MachinePools of a Cluster whose control plane is being deleted.
	workers int
}

// scope reads a control plane.
func (c *Controller) scope(ctx context.Context, kcp *controlplanev1.KubeadmControlPlane) (*scope, error) {
	read, err := c.snapshots.Read(ctx, kcp)
	if err != nil {
		return nil, err
	}
	s := &scope{ControlPlane: read}
	s.operation, s.heldBy = holder(kcp)
	if kcp.DeletionTimestamp != nil && read.Cluster != nil {
		s.workers, err = c.cachedWorkers(ctx, read)
	}
	return s, err
}

// membership returns what decisions about etcd members are based on.
func (s *scope) membership() membership.State {
	return membership.State{ControlPlane: s.ControlPlane, Workload: s.connection.Workload, Observed: s.observed, Lost: s.connection.Lost}
}

// machinesCanBeCreated reports whether the steps that creating Machines depends on have completed.
func (s *scope) machinesCanBeCreated() bool { return s.canCreate }

// hasWorkers reports whether the Cluster of a control plane that is being deleted still has workers.
func (s *scope) hasWorkers() bool { return s.workers > 0 }

// losesMembers reports whether Machines of an initialized cluster are being deleted. Before that there are no etcd members.
func (s *scope) losesMembers() bool {
	return s.Initialized() && slices.ContainsFunc(s.Machines, (*snapshot.Machine).Deleting)
}

// withBackoff makes a step wait while the workload cluster, which did not respond in time, is not called.
func withBackoff(do func(context.Context, *scope) (step.Result, error)) func(context.Context, *scope) (step.Result, error) {
	return func(ctx context.Context, s *scope) (step.Result, error) { return connection.WaitForBackoff(do(ctx, s)) }
}

// orphanedMachines removes our hook from Machines that are being deleted and have no control plane: it was removed by force, or
// the Machine was orphaned. No other controller would remove the hook, and the Machine would never be deleted.
type orphanedMachines struct {
	reader client.Reader
	// live reads past the cache, which may not show a new control plane yet.
	live client.Reader
}
