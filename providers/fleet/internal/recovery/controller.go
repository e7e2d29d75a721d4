package recovery

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/hold"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

const (
	// poll is how often a step that waits for other controllers or machines looks again. Nothing that it waits for is cached in this manager:
	// recoveries are rare, Machines and their infrastructure many.
	poll = time.Second
	// inspectionInterval is how often members are asked until the recovery is certain. Each time, annotations of machines are written.
	inspectionInterval = 30 * time.Second
	// answerTimeout is how long infrastructure providers may take to answer.
	answerTimeout = 20 * time.Second
	// observedTimeout is how long the controller of a control plane may take to answer, until the message says what may be wrong.
	observedTimeout = 15 * time.Second
	// defaultLoss is spec.minimumLossSeconds if it is not set.
	defaultLoss = 10 * time.Minute
)

// Names of the steps in the status.
const (
	holdStep   = "Hold"
	checkStep  = "Check"
	fenceStep  = "Fence"
	forceStep  = "ForceNewCluster"
	serveStep  = "Serve"
	nodesStep  = "RemoveNodes"
	releaseAll = "Release"
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
		Scope: func(_ context.Context, r *fleetv1.ControlPlaneRecovery) (*scope, error) {
			return &scope{recovery: r}, nil
		},
		Steps: []step.Step[*scope]{
			step.Do("protect", protect),
			step.Do("current", c.current),
			step.Do("control-plane", c.controlPlane),
			step.Do("observe", c.observe),
			step.Do("decide", c.decide),
			step.Do("hold", c.hold),
			step.Do("check", c.check),
			step.Do("fence", c.fence),
			step.Do("force-new-cluster", c.force),
			step.Do("serve", c.serve),
			step.Do("remove-nodes", c.removeNodes),
			step.Do("release", c.release),
		},
		Deletion: []step.Step[*scope]{step.Do("give-back", c.giveBack)},
		Reports:  reports,
	}
}

// scope is the state of one reconcile, shared by its steps.
type scope struct {
	recovery *fleetv1.ControlPlaneRecovery
	// controlPlane is the name of the KubeadmControlPlane, and machines are its Machines.
	controlPlane client.ObjectKey
	machines     []clusterv1.Machine
	// said is what the condition Completed says.
	said verdict
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

// step returns the mark of a step, or nil if it has not begun.
func (s *scope) step(name string) *fleetv1.OperationStep {
	steps := s.recovery.Status.Steps
	i := slices.IndexFunc(steps, func(one fleetv1.OperationStep) bool { return one.Name == name })
	if i < 0 {
		return nil
	}
	return &steps[i]
}

// completed reports whether a step is marked as complete.
func (s *scope) completed(name string) bool {
	mark := s.step(name)
	return mark != nil && mark.CompletionTime != nil
}

// begin marks the beginning of a step.
func (s *scope) begin(name string, now time.Time) *fleetv1.OperationStep {
	if mark := s.step(name); mark != nil {
		return mark
	}
	s.recovery.Status.Steps = append(s.recovery.Status.Steps, fleetv1.OperationStep{Name: name, StartTime: &metav1.Time{Time: now}})
	return s.step(name)
}

// complete marks the end of a step.
func (s *scope) complete(name string, now time.Time, format string, args ...any) {
	mark := s.begin(name, now)
	mark.CompletionTime, mark.Message = &metav1.Time{Time: now}, brief(fmt.Sprintf(format, args...))
}

// waits reports what a step waits for, and looks again soon.
func (s *scope) waits(name string, now time.Time, format string, args ...any) (step.Result, error) {
	message := brief(fmt.Sprintf(format, args...))
	s.begin(name, now).Message = message
	s.said = verdict{reason: fleetv1.OperationWaitingReason, message: name + ": " + message}
	return step.WaitAtMost(poll, message), nil
}

// reports returns the conditions of a recovery.
func reports(s *scope) []metav1.Condition {
	const t = fleetv1.OperationCompletedCondition
	switch {
	case s.recovery.Status.Phase == fleetv1.OperationPhaseCompleted:
		return []metav1.Condition{report.True(t, fleetv1.OperationCompletedReason, "")}
	case s.said.reason != "":
		return []metav1.Condition{report.False(t, s.said.reason, "%s", s.said.message)}
	}
	if before := report.Get(s.recovery, t); before != nil {
		return []metav1.Condition{*before}
	}
	return []metav1.Condition{report.None(t)}
}
