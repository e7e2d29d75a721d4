package topology

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/core/internal/topology/check"
	"sigs.k8s.io/cluster-api/core/internal/topology/desired"
	"sigs.k8s.io/cluster-api/core/internal/topology/upgrade"
	"sigs.k8s.io/cluster-api/provider/contract"
	"sigs.k8s.io/cluster-api/provider/external"
	"sigs.k8s.io/cluster-api/provider/ssa"
)

// FieldManager is the name under which objects of topologies are applied.
const FieldManager = "capi-topology"

// Comparer says what applying an object would change. It changes nothing.
type Comparer interface {
	// Plan works it out from the live object and the schema, without a request. What mutating webhooks and policies make
	// of an object looks like a difference to it.
	Plan(ctx context.Context, live, desired *unstructured.Unstructured, opts ...ssa.Option) (ssa.Diff, error)
	// Unchanged asks the API server whether everything outside of metadata would stay as it is.
	Unchanged(ctx context.Context, live, desired *unstructured.Unstructured, opts ...ssa.Option) (bool, error)
	// Keep is desired with the content of live.
	Keep(ctx context.Context, live, desired *unstructured.Unstructured) (*unstructured.Unstructured, error)
}

// Planner works out what a Cluster with a topology is to have and what of that is not there yet. It only reads.
type Planner struct {
	// Reader reads ClusterClasses and the other kinds of this group.
	Reader client.Reader
	// External reads templates and provider objects.
	External external.Reader
	// Compare compares for FieldManager.
	Compare Comparer
	// Classes keeps what is compiled from classes.
	Classes *Classes
	// Of selects, in lists, the objects of a Cluster's topology.
	Of func(cluster *clusterv1.Cluster) []client.ListOption
	// PoolVersions are the kubelet versions of the Nodes of a MachinePool. Nil: MachinePools count as upgraded as soon
	// as their spec is.
	PoolVersions func(ctx context.Context, cluster *clusterv1.Cluster, pool *clusterv1.MachinePool) ([]string, error)
	// Unattended is what nothing acts on in this manager.
	Unattended check.Unattended
}

// Labelled selects the objects of a Cluster's topology by their labels, for readers without indexes.
func Labelled(cluster *clusterv1.Cluster) []client.ListOption {
	return []client.ListOption{client.InNamespace(cluster.Namespace), client.MatchingLabels(desired.ClusterLabels(cluster))}
}

// Plan is what is to be done for a Cluster.
type Plan struct {
	// Class is the class of the Cluster.
	Class *clusterv1.ClusterClass
	// Labels are to be on the Cluster, which is to have these references.
	Labels                             map[string]string
	InfrastructureRef, ControlPlaneRef *corev1.ObjectReference
	// Stages are the objects that the Cluster is to have, those that are as they should be included. Objects of one
	// stage do not depend on each other.
	Stages [][]Change
	// Deletions are objects that it is not to have any more, to be deleted after all stages.
	Deletions []*unstructured.Unstructured
	// Versions says which versions are not there yet, and why.
	Versions upgrade.Plan
	// Waiting are names in the topology of workers that cannot be made before their predecessor is gone.
	Waiting []string
	// Unattended says which of the objects nothing acts on.
	Unattended []string
	// Kinds has one object of each of the kinds that the class's templates and the Cluster's objects are of.
	Kinds []*unstructured.Unstructured
}

// Change is an object as it is to be applied.
type Change struct {
	// Live is nil for an object that does not exist.
	Live    *unstructured.Unstructured
	Desired *unstructured.Unstructured
	// Options are those to compare and apply with.
	Options []ssa.Option
	// Kept says that Live stays as it is: it was made of what is wanted, and others have rewritten it since.
	Kept bool
}

// Plan works out what is to be done for a Cluster, which has a topology. The Cluster is not changed.
func (p *Planner) Plan(ctx context.Context, cluster *clusterv1.Cluster) (*Plan, error) {
	class, err := p.class(ctx, cluster)
	if err != nil {
		return nil, err
	}
	made, err := p.Classes.get(class)
	if err != nil {
		return nil, err
	}
	if cluster, err = made.withVariables(cluster); err != nil {
		return nil, err
	}
	blueprint, err := p.blueprint(ctx, cluster, class, made)
	if err != nil {
		return nil, err
	}
	now, err := p.current(ctx, cluster, blueprint)
	if err != nil {
		return nil, err
	}
	versions, err := p.versions(ctx, cluster, now)
	if err != nil {
		return nil, err
	}
	want, err := desired.Compute(ctx, desired.Input{Cluster: cluster, Blueprint: blueprint, Current: now, Versions: versions})
	if err != nil {
		return nil, err
	}
	c := &changes{
		Planner: p, cluster: cluster, now: now, want: want,
		live: map[objectKey]*unstructured.Unstructured{}, kept: map[*unstructured.Unstructured]ssa.Diff{},
	}
	if err := want.Rotate(ctx, cluster, c.fits); err != nil {
		return nil, err
	}
	return c.plan(ctx, class, versions, kinds(blueprint))
}

// kinds has one object for each template of the class.
func kinds(b *desired.Blueprint) []*unstructured.Unstructured {
	all := []*unstructured.Unstructured{b.InfrastructureCluster, b.ControlPlane}
	if b.ControlPlaneMachines != nil {
		all = append(all, b.ControlPlaneMachines)
	}
	for _, t := range b.MachineDeployments {
		all = append(all, t.Bootstrap, t.Infrastructure)
	}
	for _, t := range b.MachinePools {
		all = append(all, t.Bootstrap, t.Infrastructure)
	}
	return all
}

// leaveEndpoint leaves the endpoint of an infrastructure cluster to its provider unless the class sets it.
func leaveEndpoint() []ssa.Option {
	return []ssa.Option{ssa.LeaveZero(contract.ControlPlaneEndpointPaths()...)}
}

func describe(u *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s/%s", u.GetKind(), u.GetNamespace(), u.GetName())
}
