package rotation

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/hold"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/operation"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/rotation/authority"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

const (
	// poll is the interval of reconciles while a rotation waits for Machines, which this manager does not watch: a cache of all Machines
	// would cost memory while there is no rotation. Changes of the Cluster's status, which counts its Machines, are events.
	poll = 5 * time.Second
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
		Watches: []step.Watch{operation.OnCluster(c.Client,
			func() *fleetv1.CertificateAuthorityRotationList { return &fleetv1.CertificateAuthorityRotationList{} },
			func(r *fleetv1.CertificateAuthorityRotation) string { return r.Spec.ClusterName }, operation.Changed)},
		Scope: func(_ context.Context, r *fleetv1.CertificateAuthorityRotation) (*scope, error) {
			return c.scope(r), nil
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
		Reports:  func(s *scope) []metav1.Condition { return s.Report() },
		Observed: func(r *fleetv1.CertificateAuthorityRotation, g int64) { r.Status.ObservedGeneration = g },
	}
}

// scope is the state of one reconcile, shared by its steps.
type scope struct {
	*operation.Run
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
	now     time.Time
}

// scope returns the scope of a rotation. It begins with the new keys.
func (c *Controller) scope(r *fleetv1.CertificateAuthorityRotation) *scope {
	s := &scope{rotation: r, now: c.Clock.Now()}
	s.Run = &operation.Run{
		Before: r, Clock: c.Clock, Phase: &r.Status.Phase, CompletionTime: &r.Status.CompletionTime, Marks: marks{r},
		Confirmed: r.Spec.Confirm == r.Spec.ClusterName, Underway: func() bool { return s.own != nil },
	}
	return s
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
