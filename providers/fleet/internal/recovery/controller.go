package recovery

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/hold"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/operation"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

const (
	// inspectionInterval is how often members are asked until the recovery is certain. Each time, annotations of machines are written.
	inspectionInterval = 30 * time.Second
	// answerTimeout is how long infrastructure providers may take to answer.
	answerTimeout = 20 * time.Second
	// defaultLoss is spec.minimumLossSeconds if it is not set.
	defaultLoss = 10 * time.Minute
)

// Options configure the controller.
type Options struct {
	// Concurrency is the number of recoveries to process at the same time.
	Concurrency int
	// Filter selects the objects that this manager reconciles.
	Filter watch.Filter
	// Connect connects to the workload cluster of a Cluster.
	Connect func(ctx context.Context, cluster types.NamespacedName) (Workload, error)
}

// Workload is a workload cluster, while it is in use.
type Workload interface {
	// Members returns the IDs of the members of etcd, according to the member on a Node, in hexadecimal. It fails without a quorum.
	Members(ctx context.Context, node string) ([]string, error)
	// DeleteNode deletes a Node. One that does not exist is no error.
	DeleteNode(ctx context.Context, name string) error
	Close()
}

// Controller reconciles ControlPlaneRecoveries.
type Controller struct {
	step.Clients
	holder  hold.Holder
	connect func(ctx context.Context, cluster types.NamespacedName) (Workload, error)
}

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	c := New(step.ClientsOf(mgr, "controlplanerecovery-controller", o.Filter), o)
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	return step.Add(ctx, mgr, c.Clients, declared)
}

// New returns a Controller.
func New(clients step.Clients, o Options) *Controller {
	return &Controller{Clients: clients, holder: hold.Holder{Client: clients.Client, Live: clients.Live}, connect: o.Connect}
}

// declared returns the declaration of the controller.
func (c *Controller) declared() step.Controller[*fleetv1.ControlPlaneRecovery, *scope] {
	return step.Controller[*fleetv1.ControlPlaneRecovery, *scope]{
		Name: "controlplanerecovery",
		New:  func() *fleetv1.ControlPlaneRecovery { return &fleetv1.ControlPlaneRecovery{} },
		Watches: []step.Watch{operation.OnCluster(c.Client,
			func() *fleetv1.ControlPlaneRecoveryList { return &fleetv1.ControlPlaneRecoveryList{} },
			func(r *fleetv1.ControlPlaneRecovery) string { return r.Spec.ClusterName }, operation.Respecified)},
		Scope: func(_ context.Context, r *fleetv1.ControlPlaneRecovery) (*scope, error) {
			return c.scope(r), nil
		},
		Steps: []step.Step[*scope]{
			step.Do("protect", protect),
			step.Do("current", c.current),
			step.Do("control-plane", c.controlPlane),
			step.Do("observe", c.observe),
			step.Do("decide", c.decide),
			operation.Step(fleetv1.RecoveryStepHold, time.Minute, c.hold),
			operation.Step(fleetv1.RecoveryStepCheck, time.Minute, c.check),
			operation.Step(fleetv1.RecoveryStepFence, time.Minute, c.fence),
			operation.Step(fleetv1.RecoveryStepForceNewCluster, time.Minute, c.force),
			operation.Step(fleetv1.RecoveryStepServe, workloadTimeout, c.serve),
			operation.Step(fleetv1.RecoveryStepRemoveNodes, workloadTimeout, c.removeNodes),
			operation.Step(fleetv1.RecoveryStepRelease, time.Minute, c.release),
		},
		Deletion: []step.Step[*scope]{step.Do("give-back", c.giveBack)},
		Reports:  func(s *scope) []metav1.Condition { return s.Report() },
		Observed: func(r *fleetv1.ControlPlaneRecovery, g int64) { r.Status.ObservedGeneration = g },
	}
}

// scope is the state of one reconcile, shared by its steps.
type scope struct {
	*operation.Run
	recovery *fleetv1.ControlPlaneRecovery
	// controlPlane is the name of the KubeadmControlPlane, and machines are its Machines.
	controlPlane client.ObjectKey
	machines     []clusterv1.Machine
}

// scope returns the scope of a recovery. Once it is certain, Machines are deleted, and there is no way back.
func (c *Controller) scope(r *fleetv1.ControlPlaneRecovery) *scope {
	s := &scope{recovery: r}
	s.Run = &operation.Run{
		Before: r, Clock: c.Clock, Phase: &r.Status.Phase, CompletionTime: &r.Status.CompletionTime,
		Marks: (*operation.Steps)(&r.Status.Steps), Confirmed: r.Spec.Confirm != "",
		Underway: func() bool { return s.Completed(fleetv1.RecoveryStepCheck) },
	}
	return s
}

// key returns the key of the Cluster.
func (s *scope) key() client.ObjectKey {
	return client.ObjectKey{Namespace: s.recovery.Namespace, Name: s.recovery.Spec.ClusterName}
}

// operation returns what the control plane is held by.
func (s *scope) operation() fleetv1.Operation {
	r := s.recovery
	return fleetv1.Operation{
		Kind: fleetv1.ControlPlaneRecoveryKind, Name: r.Name, UID: r.UID, Mode: fleetv1.OperationModeHold,
	}
}

// survivor returns the member that survives, as it was when the recovery became certain, or nil.
func (s *scope) survivor() *fleetv1.RecoveryMember {
	members := s.recovery.Status.Members
	i := slices.IndexFunc(members, func(m fleetv1.RecoveryMember) bool { return m.Machine == s.recovery.Spec.Survivor })
	if i < 0 {
		return nil
	}
	return &members[i]
}
