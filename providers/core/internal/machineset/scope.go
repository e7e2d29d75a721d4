package machineset

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/children"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/ssa"
	"sigs.k8s.io/cluster-api/sdk/step"
)

const machineSetKind = "MachineSet"

// Controller reconciles MachineSets.
type Controller struct {
	step.Clients
	external  external.Reader
	applier   *ssa.Applier
	preflight bool
	// checks is Options.Checks.
	checks Checks
	// namedAfterTemplates is Options.NamedAfterTemplates.
	namedAfterTemplates bool
	// inPlace is Options.InPlace.
	inPlace bool
	names   *namesInUse
	guard   children.Guard
}

// scope is the state of one reconcile, shared by its steps.
type scope struct {
	set *clusterv1.MachineSet
	// cluster is nil if it does not exist.
	cluster *clusterv1.Cluster
	// machines are the Machines of the set, sorted by name. Set by collect from the cache, and by confirm from the API server.
	machines []*clusterv1.Machine
	// orphans is the number of Machines that the set could not adopt. They count as replicas, and are never deleted.
	orphans int
	// moved are the Machines that another MachineSet has handed over to the set, and that spec.replicas does not include yet. They do not
	// count as replicas, and are left alone until it does.
	moved []*clusterv1.Machine
	// listed is whether machines has been set, and live whether from the API server.
	listed, live bool
	// change is how the number of Machines has to change.
	change change
	// generation is the generation of the names of new Machines.
	generation int
	// incomplete is whether a Machine or its objects could not be created.
	incomplete bool
	// problems are the errors of individual Machines and objects, which do not stop the work on others.
	problems []error
}

// change is the number of Machines to create, or the Machines to delete.
type change struct {
	create int
	// more is set if more Machines are missing than create.
	more   bool
	delete []*clusterv1.Machine
	// move are the Machines to hand over to the MachineSet target, to be updated in place there.
	move   []*clusterv1.Machine
	target *clusterv1.MachineSet
}

func (c change) none() bool { return c.create == 0 && len(c.delete) == 0 && len(c.move) == 0 }

func (c *Controller) scope(ctx context.Context, set *clusterv1.MachineSet) (*scope, error) {
	cluster, err := ownership.ClusterNamed(ctx, c.Client, client.ObjectKey{Namespace: set.Namespace, Name: set.Spec.ClusterName})
	return &scope{set: set, cluster: cluster}, err
}

// report records an error that concerns only one object.
func (s *scope) report(err error) {
	if err != nil {
		s.problems = append(s.problems, err)
	}
}
