package restore

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/backup/etcdsnapshot"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/backupstore"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/hold"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/operation"
	"sigs.k8s.io/cluster-api/providers/internal/etcd"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Options configure the controller.
type Options struct {
	// Concurrency is the number of ControlPlaneRestores to process at the same time.
	Concurrency int
	// Filter selects the objects that this manager reconciles.
	Filter watch.Filter
	Opener backupstore.Opener
	// Connect connects to a Cluster with control plane Machines that have a Node.
	Connect func(ctx context.Context, cluster types.NamespacedName) (ControlPlane, error)
	// WorkDir is an existing directory for snapshots and data directories.
	WorkDir string
	// Server serves data from stores that have no URLs. Nil: such stores are refused.
	Server Server
}

// Server serves the data of restores to Machines.
type Server interface {
	// URL returns a new URL of the data of a restore.
	URL(r *fleetv1.ControlPlaneRestore) string
	// Serves reports whether a URL is one of this process, and not that of an earlier one with another address.
	Serves(url string) bool
}

// ControlPlane is a running control plane, while it is in use.
type ControlPlane interface {
	// View returns the state of etcd according to the member on a Node.
	View(ctx context.Context, node string) (etcd.View, error)
	// SetPeerURL changes the address at which other members reach a member.
	SetPeerURL(ctx context.Context, node string, id uint64, url string) error
	// Workload returns a client of the workload cluster.
	Workload() client.Client
	Close()
}

// Controller reconciles ControlPlaneRestores.
type Controller struct {
	step.Clients
	opener  backupstore.Opener
	holder  hold.Holder
	connect func(ctx context.Context, cluster types.NamespacedName) (ControlPlane, error)
	workDir string
	server  Server
	// disk is a place for one snapshot and its data directory at a time.
	disk chan struct{}
	// found makes a data directory of a snapshot.
	found func(ctx context.Context, snapshot, dir string, o etcdsnapshot.Options) error
}

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	c := New(step.ClientsOf(mgr, "controlplanerestore-controller", o.Filter), o)
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	return step.Add(ctx, mgr, c.Clients, declared)
}

// New returns a Controller.
func New(clients step.Clients, o Options) *Controller {
	return &Controller{
		Clients: clients, opener: o.Opener, connect: o.Connect, workDir: o.WorkDir, server: o.Server,
		holder: hold.Holder{Client: clients.Client, Live: clients.Live}, disk: make(chan struct{}, 1),
		found: etcdsnapshot.Restore,
	}
}

// steps returns the steps of a restore.
func (c *Controller) steps() []step.Step[*scope] {
	return []step.Step[*scope]{
		step.Do("protect", protect),
		step.Do("latest", c.latest),
		step.Do("check", c.check),
		operation.Step(fleetv1.RestoreStepInspect, time.Hour, c.inspect),
		step.Do("confirm", c.confirm),
		operation.Step(fleetv1.RestoreStepHold, time.Minute, c.hold),
		operation.Step(fleetv1.RestoreStepPrepare, time.Hour, c.prepare),
		operation.Step(fleetv1.RestoreStepFence, time.Minute, c.fence),
		operation.Step(fleetv1.RestoreStepCreate, time.Minute, c.create),
		operation.Step(fleetv1.RestoreStepMember, time.Minute, c.member),
		operation.Step(fleetv1.RestoreStepNodes, 2*time.Minute, c.nodes),
		operation.Step(fleetv1.RestoreStepRelease, 2*time.Minute, c.release),
	}
}

// declared returns the declaration of the controller.
func (c *Controller) declared() step.Controller[*fleetv1.ControlPlaneRestore, *scope] {
	return step.Controller[*fleetv1.ControlPlaneRestore, *scope]{
		Name: "controlplanerestore",
		New:  func() *fleetv1.ControlPlaneRestore { return &fleetv1.ControlPlaneRestore{} },
		Watches: []step.Watch{operation.OnCluster(c.Client, func() *fleetv1.ControlPlaneRestoreList { return &fleetv1.ControlPlaneRestoreList{} },
			func(r *fleetv1.ControlPlaneRestore) string { return r.Spec.ClusterName }, operation.Respecified)},
		Scope: func(_ context.Context, r *fleetv1.ControlPlaneRestore) (*scope, error) {
			return c.scope(r), nil
		},
		Steps:    c.steps(),
		Deletion: []step.Step[*scope]{step.Do("discard", c.discard)},
		Reports:  func(s *scope) []metav1.Condition { return s.Report() },
	}
}

// scope is the state of one reconcile, shared by its steps.
type scope struct {
	*operation.Run
	restore *fleetv1.ControlPlaneRestore
	// cluster and kcp are read by check; nil if a reconcile does not need them.
	cluster *clusterv1.Cluster
	kcp     *controlplanev1.KubeadmControlPlane
	// source is where the archive is, read by check.
	source source
}

// scope returns the scope of a restore. From the hold on, the control plane waits for it.
func (c *Controller) scope(r *fleetv1.ControlPlaneRestore) *scope {
	s := &scope{restore: r}
	s.Run = &operation.Run{
		Before: r, Clock: c.Clock, Phase: &r.Status.Phase, CompletionTime: &r.Status.CompletionTime,
		Marks: (*operation.Steps)(&r.Status.Steps), Confirmed: r.Spec.Confirm != "",
		Underway: func() bool { return s.Begun(fleetv1.RestoreStepHold) },
	}
	return s
}

// clusterKey returns the key of the Cluster.
func (s *scope) clusterKey() client.ObjectKey {
	return client.ObjectKey{Namespace: s.restore.Namespace, Name: s.restore.Spec.ClusterName}
}
