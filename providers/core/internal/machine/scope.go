package machine

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/inplace"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Workloads connects to workload clusters.
type Workloads interface {
	Get(ctx context.Context, cluster types.NamespacedName) (*remote.Cluster, error)
}

// Controller reconciles Machines.
type Controller struct {
	step.Clients
	follow    *reference.Follower
	workloads Workloads
	drainer   drainer
	// connectionGrace is Options.ConnectionGrace.
	connectionGrace time.Duration
	// selection is Options.Selection.
	selection Selection
	// taints is Options.Taints.
	taints bool
	// updater is Options.Updater.
	updater inplace.Caller
	// attempts has the last attempt to update a Machine in place, by its UID.
	attempts sync.Map
}

// scope is the state of one reconcile, shared by its steps.
type scope struct {
	machine *clusterv1.Machine
	// cluster is nil if it does not exist.
	cluster *clusterv1.Cluster
	// nodeWork is whether to drain the Node, see nodeWorkAllowed.
	nodeWork bool
	// pastDrain is whether the drain of the Node is over, see isPastDrain.
	pastDrain bool
	// followed caches the referenced objects for one reconcile; nil for one that does not exist.
	followed map[clusterv1.ContractVersionedObjectReference]*unstructured.Unstructured
	// now is when the reconcile began.
	now   time.Time
	found findings
	// connectionGrace is Options.ConnectionGrace.
	connectionGrace time.Duration
}

func (c *Controller) scope(ctx context.Context, m *clusterv1.Machine) (*scope, error) {
	s := &scope{machine: m, now: c.Clock.Now(), connectionGrace: c.connectionGrace}
	var err error
	s.cluster, err = ownership.ClusterNamed(ctx, c.Client, s.key())
	return s, err
}

// key returns the key of the Cluster.
func (s *scope) key() types.NamespacedName {
	return types.NamespacedName{Namespace: s.machine.Namespace, Name: s.machine.Spec.ClusterName}
}

func (s *scope) worksOnNode() bool { return s.nodeWork }

func (s *scope) drains() bool { return !s.pastDrain }

func (s *scope) isControlPlane() bool { return isControlPlane(s.machine) }

func isControlPlane(m *clusterv1.Machine) bool {
	_, ok := m.Labels[clusterv1.MachineControlPlaneLabel]
	return ok
}

// object returns the object of a reference, nil if it does not exist. It reads each object at most once per reconcile.
func (c *Controller) object(
	ctx context.Context, s *scope, ref *clusterv1.ContractVersionedObjectReference,
) (*unstructured.Unstructured, error) {
	if obj, known := s.followed[*ref]; known {
		return obj, nil
	}
	obj, err := c.follow.Follow(ctx, ref, s.machine.Namespace)
	if err != nil {
		return nil, err
	}
	if s.followed == nil {
		s.followed = map[clusterv1.ContractVersionedObjectReference]*unstructured.Unstructured{}
	}
	s.followed[*ref] = obj
	return obj, nil
}

// adoptObject returns the object of a reference, and whether it exists. It makes the Machine the object's controller, and
// copies a terminal failure to the Machine.
func (c *Controller) adoptObject(
	ctx context.Context, s *scope, ref *clusterv1.ContractVersionedObjectReference,
) (obj contract.Object, exists bool, err error) {
	m := s.machine
	found, err := c.object(ctx, s, ref)
	if err != nil || found == nil {
		return obj, false, err
	}
	if err := c.follow.Own(ctx, found, m, m.Spec.ClusterName, "MachineSet", "KubeadmControlPlane"); err != nil {
		return obj, false, err
	}
	if obj, err = c.follow.Reader.Versions.Object(ctx, found); err != nil {
		return obj, false, err
	}
	older := m.GetV1Beta1Status()
	err = reference.CopyFailure(obj, &older.FailureReason, &older.FailureMessage)
	if older.FailureReason != nil || older.FailureMessage != nil {
		m.SetV1Beta1Status(older)
	}
	return obj, true, err
}

// deletionFailed reports whether a previous attempt to delete the Node failed.
func deletionFailed(m *clusterv1.Machine) bool {
	healthy := condition.Get(m, clusterv1.MachineNodeHealthyV1Beta1Condition)
	return healthy != nil && healthy.Reason == clusterv1.DeletionFailedV1Beta1Reason
}
