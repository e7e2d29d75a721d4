package controlplane

import (
	"context"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/connection"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/credentials"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/deletion"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/health"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/machines"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/membership"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/remediation"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/scale"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/status"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Controller reconciles KubeadmControlPlanes.
type Controller struct {
	// Outside writes as machines.FieldManager.
	step.Outside
	External    external.Reader
	Snapshots   snapshot.Reader
	Credentials *credentials.Provider
	Connector   *connection.Connector
	// MachinePools is true if the kind MachinePool is enabled.
	MachinePools bool

	// maintained holds what was maintained, by the UID of the control plane. Losing it costs a few reads.
	maintained sync.Map
}

// New returns a Controller. The reader secrets is a credentials.SecretReader.
func New(outside step.Outside, external external.Reader, secrets client.Reader, workloads connection.Workloads, keys *pki.Keys) *Controller {
	return &Controller{
		Outside: outside, External: external,
		Snapshots:   snapshot.Reader{Client: outside.Client, External: external, Clock: outside.Clock},
		Credentials: &credentials.Provider{Outside: outside, Secrets: secrets, Keys: keys},
		Connector:   &connection.Connector{Workloads: workloads, Clock: outside.Clock},
	}
}

// declared declares the controller.
func (c *Controller) declared() step.Controller[*controlplanev1.KubeadmControlPlane, *scope] {
	return step.Controller[*controlplanev1.KubeadmControlPlane, *scope]{
		Name: "kubeadmcontrolplane",
		New:  func() *controlplanev1.KubeadmControlPlane { return &controlplanev1.KubeadmControlPlane{} },
		Paused: func(ctx context.Context, kcp *controlplanev1.KubeadmControlPlane) (bool, error) {
			cluster, err := snapshot.OwnerCluster(ctx, c.Client, kcp)
			return cluster != nil && cluster.Spec.Paused, err
		},
		Scope: c.scope,
		Steps: []step.Step[*scope]{
			step.Do("cluster", hasCluster),
			step.Do("own", c.own),
			step.Do("infrastructure", infrastructure),
			step.All(c.reconcileExisting(), c.provide(), c.change()),
		},
		Deletion: []step.Step[*scope]{
			step.Do("cluster", hasCluster),
			step.Do("finalizer", hasFinalizer),
			step.When((*scope).hasWorkers, step.All(
				step.When((*scope).losesMachines, step.Do("connect", c.connect), step.Do("observe", observe), step.Do("pre-terminate", patient(c.preTerminate))),
				step.Do("workers", awaitWorkers),
			)),
			step.Do("machines", c.deleteMachines),
			step.Do("release", c.release),
		},
		Report: []step.Step[*scope]{step.Do("report", func(ctx context.Context, s *scope) (step.Result, error) {
			return status.Report(ctx, s.found())
		})},
		Conditions: conditions(),
		Progress:   progress(),
		Observed: func(kcp *controlplanev1.KubeadmControlPlane, generation int64) {
			if kcp.Status.Selector != "" { // Before there is a status, the generation alone is not worth a write.
				kcp.Status.ObservedGeneration = generation
			}
		},
	}
}

// reconcileExisting reconciles the Machines that exist. None of its steps depends on the success of another.
func (c *Controller) reconcileExisting() step.Step[*scope] {
	return step.All(
		step.Do("complete", c.complete).Sets(controlplanev1.MachinesCreatedCondition),
		step.Do("propagate", c.propagate),
		step.Do("connect", c.connect),
		step.Do("initialized", initialized).Sets(controlplanev1.AvailableCondition),
		step.Do("stranded", stranded).Sets(controlplanev1.MachinesCreatedCondition),
		step.Do("inspect", c.inspect),
		step.Do("pre-terminate", patient(c.preTerminate)),
		step.Do("orphaned-members", patient(c.removeOrphaned)),
	)
}

// provide creates what new Machines need.
func (c *Controller) provide() step.Step[*scope] {
	return step.InOrder(
		step.Do("certificates", c.certificates).Sets(controlplanev1.CertificatesAvailableCondition),
		step.Do("endpoint", endpoint),
		step.Do("kubeconfig", c.kubeconfig),
		step.Do("adopt", c.adopt),
	)
}

// change changes the number of Machines, if provide has completed, and then maintains the workload cluster.
func (c *Controller) change() step.Step[*scope] {
	return step.InOrder(
		step.When(func(s *scope) bool { return s.provided },
			step.Do("remediate", patient(c.remediate)),
			step.Do("plan", decide),
			step.Do("scale", patient(c.scale)).Sets(controlplanev1.MachinesCreatedCondition),
		),
		step.Do("maintain", patient(c.maintain)),
	)
}

// conditions declares the conditions that Ready summarizes.
func conditions() condition.Kind {
	return condition.Kind{Ready: []clusterv1.ConditionType{
		controlplanev1.MachinesCreatedCondition,
		controlplanev1.MachinesSpecUpToDateCondition,
		controlplanev1.ResizedCondition,
		controlplanev1.MachinesReadyCondition,
		controlplanev1.AvailableCondition,
		controlplanev1.CertificatesAvailableCondition,
	}}
}

// progress declares which status writes may be delayed: the first one, until the control plane is initialized, if that is soon.
// Only in the first status, selector and counters may be delayed: topologies and autoscalers, which read them, must expect that
// they do not exist yet. Later changes of them are written immediately.
func progress() *step.Progress {
	return &step.Progress{
		First:     []string{"selector", "replicas", "updatedReplicas", "unavailableReplicas"},
		FirstTrue: []clusterv1.ConditionType{controlplanev1.MachinesCreatedCondition, controlplanev1.CertificatesAvailableCondition},
	}
}

func (c *Controller) confirm() snapshot.LiveReader { return snapshot.LiveReader{Reader: c.Live} }

func (c *Controller) machines() *machines.Manager {
	return &machines.Manager{Outside: c.Outside, External: c.External, Confirm: c.confirm()}
}

func (c *Controller) members() *membership.Remover {
	return &membership.Remover{Outside: c.Outside, Confirm: c.confirm()}
}

func (c *Controller) deleter() deletion.Deleter {
	return deletion.Deleter{Outside: c.Outside, Confirm: c.confirm(), MachinePools: c.MachinePools}
}

func (c *Controller) inspector() health.Inspector { return health.Inspector{Outside: c.Outside} }

func (c *Controller) remediator() remediation.Remediator {
	return remediation.Remediator{Machines: c.machines(), Confirm: c.confirm()}
}

func (c *Controller) scaler() scale.Scaler {
	return scale.Scaler{Machines: c.machines(), Confirm: c.confirm()}
}
