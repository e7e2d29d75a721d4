package rotation

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/hold"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/rotation/authority"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

const (
	// poll is the interval of reconciles while a rotation waits for Machines, which this manager does not watch: a cache of all Machines
	// would cost memory while there is no rotation. Changes of the Cluster's status, which counts its Machines, are events.
	poll = 5 * time.Second
	// refusedPoll is the interval while a rotation is refused, or not answered.
	refusedPoll = 30 * time.Second
	// workloadTimeout limits what a reconcile does in a workload cluster.
	workloadTimeout = 15 * time.Second
)

// Workload is a workload cluster while it is in use.
type Workload interface {
	client.Client
	Close()
}

// Options configure the controller.
type Options struct {
	// Concurrency is the number of rotations to process at the same time.
	Concurrency int
	// Filter selects the objects that this manager reconciles.
	Filter watch.Filter
	// Connect connects to a workload cluster.
	Connect func(ctx context.Context, cluster types.NamespacedName) (Workload, error)
}

// Controller reconciles CertificateAuthorityRotations.
type Controller struct {
	step.Clients
	connect func(ctx context.Context, cluster types.NamespacedName) (Workload, error)
	holder  hold.Holder
}

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	c := New(step.ClientsOf(mgr, "certificateauthorityrotation-controller", o.Filter), o)
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	return step.Add(ctx, mgr, c.Clients, declared)
}

// New returns a Controller.
func New(clients step.Clients, o Options) *Controller {
	return &Controller{Clients: clients, connect: o.Connect, holder: hold.Holder{Client: clients.Client, Live: clients.Live}}
}

// declared returns the declaration of the controller.
func (c *Controller) declared() step.Controller[*fleetv1.CertificateAuthorityRotation, *scope] {
	return step.Controller[*fleetv1.CertificateAuthorityRotation, *scope]{
		Name: "certificateauthorityrotation",
		New:  func() *fleetv1.CertificateAuthorityRotation { return &fleetv1.CertificateAuthorityRotation{} },
		Watches: []step.Watch{
			step.Mapped(&clusterv1.Cluster{}, c.ofCluster, predicate.Or(watch.Created(), watch.Deleted(), watch.Updated(clusterChanges))),
		},
		Scope: func(_ context.Context, r *fleetv1.CertificateAuthorityRotation) (*scope, error) {
			return &scope{rotation: r, now: c.Clock.Now()}, nil
		},
		Steps: []step.Step[*scope]{
			step.Do("protect", protect),
			step.Do("read", c.read),
			step.Do("admit", c.admit),
			step.Do("hold", c.hold),
			step.Do("generate", c.generate),
			step.Do("advance", c.advance),
			step.Do("finish", c.finish),
		},
		Deletion: []step.Step[*scope]{step.Do("withdraw", c.withdraw)},
		Reports:  reports,
		Observed: func(r *fleetv1.CertificateAuthorityRotation, g int64) { r.Status.ObservedGeneration = g },
	}
}

// scope is the state of one reconcile, shared by its steps.
type scope struct {
	rotation *fleetv1.CertificateAuthorityRotation
	// What follows was read from the API server. cluster and controlPlane are nil if they do not exist.
	cluster      *clusterv1.Cluster
	controlPlane *controlplanev1.KubeadmControlPlane
	machines     []clusterv1.Machine
	deployments  []clusterv1.MachineDeployment
	pools        []clusterv1.MachinePool
	// secrets are those of the authorities; one that does not exist is missing.
	secrets map[fleetv1.Authority]*corev1.Secret
	// own is the Secret of the rotation, nil if it does not exist, and changes what it contains.
	own     *corev1.Secret
	changes map[fleetv1.Authority]authority.Change
	// reason and message are those of the condition Completed.
	reason, message string
	now             time.Time
}

// authorities returns what is rotated, in the order of authority.All.
func (s *scope) authorities() []fleetv1.Authority {
	chosen := s.rotation.Spec.Authorities
	if len(chosen) == 0 {
		return authority.All()
	}
	var all []fleetv1.Authority
	for _, a := range authority.All() {
		for _, one := range chosen {
			if one == a {
				all = append(all, a)
			}
		}
	}
	return all
}

func (s *scope) rotates(a fleetv1.Authority) bool {
	return slices.Contains(s.authorities(), a)
}

// say sets the condition Completed.
func (s *scope) say(reason, message string) { s.reason, s.message = reason, message }

// wait waits for an event, or for a while, and says so.
func (s *scope) wait(reason, message string) step.Result {
	s.say(reason, message)
	return step.WaitAtMost(poll, message)
}

// refuse ends a rotation that users have confirmed: it must not begin by surprise when what is wrong has changed. One that is not confirmed
// is considered again after a while.
func (s *scope) refuse(message string) step.Result {
	if s.rotation.Spec.Confirm != s.rotation.Spec.ClusterName {
		s.say(fleetv1.OperationRefusedReason, message)
		return step.WaitAtMost(refusedPoll, message)
	}
	s.rotation.Status.Phase = fleetv1.OperationPhaseFailed
	s.say(fleetv1.OperationRefusedReason, message+". It does not begin later: create another one to try again")
	return step.Stop()
}

// clusterKey returns the key of the Cluster.
func (s *scope) clusterKey() types.NamespacedName {
	return types.NamespacedName{Namespace: s.rotation.Namespace, Name: s.rotation.Spec.ClusterName}
}

// operation returns the operation that is set on the control plane.
func (s *scope) operation() fleetv1.Operation {
	return fleetv1.Operation{
		Kind: fleetv1.CertificateAuthorityRotationKind, Name: s.rotation.Name, UID: s.rotation.UID, Mode: fleetv1.OperationModeRotate,
	}
}

// clusterChanges reports whether the status of a Cluster, or its pause, has changed.
func clusterChanges(before, after *clusterv1.Cluster) bool {
	return before.ResourceVersion != after.ResourceVersion
}

// ofCluster returns the rotations of a Cluster.
func (c *Controller) ofCluster(ctx context.Context, obj client.Object) []reconcile.Request {
	return watch.RequestsFor(ctx, c.Client, &fleetv1.CertificateAuthorityRotationList{},
		func(r *fleetv1.CertificateAuthorityRotation) bool {
			return r.Spec.ClusterName == obj.GetName() && (!r.Ended() || !r.DeletionTimestamp.IsZero())
		}, client.InNamespace(obj.GetNamespace()))
}
