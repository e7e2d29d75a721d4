package plan

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/lifecycle"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/upgrade"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/ssa"
)

// FieldManager is the field manager that applies objects of topologies.
const FieldManager = "capi-topology"

// Comparer predicts what applying an object would change. It changes nothing.
type Comparer interface {
	// Plan compares an object with the live one by the schema, without a request. Changes that mutating webhooks and
	// policies made to the live object count as differences.
	Plan(ctx context.Context, live, desired *unstructured.Unstructured, opts ...ssa.Option) (ssa.Diff, error)
	// Unchanged reports, after a dry run, whether everything outside of metadata would stay as it is.
	Unchanged(ctx context.Context, live, desired *unstructured.Unstructured, opts ...ssa.Option) (bool, error)
	// Keep returns desired with the content of live: applying it changes metadata only.
	Keep(ctx context.Context, live, desired *unstructured.Unstructured) (*unstructured.Unstructured, error)
}

// Planner computes the desired objects of a Cluster with a topology, and how they differ from the current ones. It only reads.
type Planner struct {
	// Reader reads ClusterClasses and the other kinds of this group.
	Reader client.Reader
	// External reads templates and provider objects.
	External external.Reader
	// Compare compares as FieldManager.
	Compare Comparer
	// Classes caches compiled classes.
	Classes *Classes
	// PoolVersions reads the versions of Nodes. If it is nil, a MachinePool counts as upgraded as soon as its spec is.
	PoolVersions PoolVersions
	// Hooks calls lifecycle hooks. If it is nil, there are none.
	Hooks Hooks
	// Upgrades asks extensions for the versions of upgrades. If it is nil, classes with such an extension are errors once a Cluster has to
	// be upgraded.
	Upgrades UpgradePlans
}

// Hooks calls the extensions of lifecycle hooks.
type Hooks interface {
	// Ask calls all extensions of a hook for a Cluster, which is not changed. Without extensions, nothing blocks.
	Ask(ctx context.Context, cluster *clusterv1.Cluster, call lifecycle.Call) (lifecycle.Answer, error)
}

// Labeled selects the objects of a Cluster's topology by their labels. Caches of managers have an index for that.
func Labeled(cluster *clusterv1.Cluster) []client.ListOption {
	return []client.ListOption{ownership.InCluster(cluster.Namespace, cluster.Name), client.HasLabels{clusterv1.ClusterTopologyOwnedLabel}}
}

// Plan is what the controller has to do for a Cluster.
type Plan struct {
	// Class is the class of the Cluster.
	Class *clusterv1.ClusterClass
	// Labels, InfrastructureRef and ControlPlaneRef are those that the Cluster must have.
	Labels                             map[string]string
	InfrastructureRef, ControlPlaneRef clusterv1.ContractVersionedObjectReference
	// Stages are all desired objects, including those that are up to date, but not those on hold: parts that wait for their
	// upgrade stay as they are until then. Objects of a stage do not depend on each other. The first stage has all templates.
	Stages [][]Change
	// Deletions are objects to delete after all stages.
	Deletions []*unstructured.Unstructured
	// Versions has the versions of all parts, and what has to wait.
	Versions upgrade.Plan
	// Hooks is what lifecycle hooks hold back, and what to record about them before the plan is carried out.
	Hooks lifecycle.Outcome
	// heldTemplates are the templates that objects on hold refer to.
	heldTemplates map[identity]bool
	// Kinds has an object of each kind of the class's templates and the Cluster's objects. Kinds may repeat.
	Kinds []*unstructured.Unstructured
}

// Change is a desired object and the live one.
type Change struct {
	// Live is nil for an object that does not exist.
	Live    *unstructured.Unstructured
	Desired *unstructured.Unstructured
	// Options are used to compare and apply.
	Options []ssa.Option
	// Kept is set if Live must not be changed: it was created from the desired spec, and only webhooks or policies have
	// changed that.
	Kept bool
}
