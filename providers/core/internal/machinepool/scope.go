package machinepool

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/ssa"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Workloads connects to workload clusters.
type Workloads interface {
	Get(ctx context.Context, cluster types.NamespacedName) (*remote.Cluster, error)
}

// Controller reconciles MachinePools.
type Controller struct {
	step.Clients
	follow    *reference.Follower
	workloads Workloads
	applier   *ssa.Applier
	// machineKinds watches the kinds of infrastructure machines.
	machineKinds *external.Watcher
	// taints is Options.Taints.
	taints bool
}

// scope is the state of one reconcile, shared by its steps.
type scope struct {
	pool *clusterv1.MachinePool
	// cluster is nil if it does not exist.
	cluster *clusterv1.Cluster
	// config and infrastructure are the bootstrap config and the infrastructure object as steps found them.
	config, infrastructure reference.Found
	// infra is the infrastructure object; nil until the infrastructure step has read it, or if it does not exist.
	infra *contract.InfrastructureMachinePool
	// removedIDs are the provider IDs that this reconcile removed from the pool.
	removedIDs []string
	// machineKind is the kind of the infrastructure machines; empty if the provider has none.
	machineKind schema.GroupVersionKind
	// infraMachines are the infrastructure machines, and machines the Machines of the pool in the cache, sorted by name.
	infraMachines []*unstructured.Unstructured
	machines      []*clusterv1.Machine
	// problems are the errors of individual Machines, which do not stop the work on others.
	problems []error
}

func (c *Controller) scope(ctx context.Context, p *clusterv1.MachinePool) (*scope, error) {
	s := &scope{pool: p}
	var err error
	s.cluster, err = ownership.ClusterNamed(ctx, c.Client, s.key())
	return s, err
}

// key returns the key of the Cluster.
func (s *scope) key() types.NamespacedName {
	return types.NamespacedName{Namespace: s.pool.Namespace, Name: s.pool.Spec.ClusterName}
}

// report records an error that concerns only one object.
func (s *scope) report(err error) {
	if err != nil {
		s.problems = append(s.problems, err)
	}
}

// byInfraMachine returns the Machines of the pool by the name of their infrastructure machine.
func (s *scope) byInfraMachine() map[string]*clusterv1.Machine {
	out := map[string]*clusterv1.Machine{}
	for _, m := range s.machines {
		if ref := m.Spec.InfrastructureRef; ref.GroupKind() == s.machineKind.GroupKind() {
			out[ref.Name] = m
		}
	}
	return out
}

// desired returns spec.replicas.
func desired(p *clusterv1.MachinePool) int32 { return max(0, ptr.Deref(p.Spec.Replicas, 1)) }

// managedExternally reports whether an autoscaler outside of Cluster API manages spec.replicas.
func managedExternally(p *clusterv1.MachinePool) bool {
	value, ok := p.Annotations[clusterv1.ReplicasManagedByAnnotation]
	return ok && value != "false"
}

// latest waits if the cached Cluster or pool are outdated.
func (c *Controller) latest(ctx context.Context, s *scope) (step.Result, error) {
	return c.Latest(ctx, step.Reread(s.cluster, &clusterv1.Cluster{}, nil), step.Reread(s.pool, &clusterv1.MachinePool{}, same))
}

// same reports whether two versions of a MachinePool have the same spec, which has the version of new Machines.
func same(live, cached *clusterv1.MachinePool) bool { return live.Generation == cached.Generation }

// live returns a reader of referenced objects that reads from the API server.
func (c *Controller) live() external.Reader {
	return external.Reader{Client: c.Live, Versions: c.follow.Reader.Versions}
}

// adoptObject returns the object of a reference, and whether it exists. It makes the MachinePool the object's controller, and
// copies a terminal failure to the MachinePool.
func (c *Controller) adoptObject(
	ctx context.Context, s *scope, ref *clusterv1.ContractVersionedObjectReference,
) (obj contract.Object, exists bool, err error) {
	p := s.pool
	if obj, exists, err = c.follow.Adopt(ctx, ref, p, p.Spec.ClusterName); err != nil || !exists {
		return obj, false, err
	}
	older := p.GetV1Beta1Status()
	err = reference.CopyFailure(obj, &older.FailureReason, &older.FailureMessage)
	if err == nil && failed(older) {
		p.SetV1Beta1Status(older)
	}
	return obj, true, err
}

func failed(older clusterv1.MachinePoolV1Beta1DeprecatedStatus) bool {
	return older.FailureReason != nil || older.FailureMessage != nil
}

// unlessZero returns nil for the zero value.
func unlessZero[T comparable](value T) *T {
	if value == *new(T) {
		return nil
	}
	return &value
}
