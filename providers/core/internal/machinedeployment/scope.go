package machinedeployment

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/children"
	"sigs.k8s.io/cluster-api/providers/core/internal/machinedeployment/rollout"
	"sigs.k8s.io/cluster-api/providers/core/internal/machineset"
	"sigs.k8s.io/cluster-api/providers/internal/inplace"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
)

const (
	machineDeploymentKind = "MachineDeployment"
	machineSetKind        = "MachineSet"
)

// applier is the part of an ssa.Applier that the controller needs.
type applier interface {
	// differs reports whether apply would send a request.
	differs(ctx context.Context, live, desired *clusterv1.MachineSet) (bool, error)
	apply(ctx context.Context, live, desired *clusterv1.MachineSet) (*clusterv1.MachineSet, bool, error)
}

// Controller reconciles MachineDeployments.
type Controller struct {
	step.Clients
	external external.Reader
	sets     applier
	guard    children.Guard
	// updater calls the extensions that update Machines in place. It is nil without the feature gates.
	updater inplace.Caller
	// answers are the last answers of these extensions.
	answers *answers
}

// scope is the state of one reconcile, shared by its steps.
type scope struct {
	deployment *clusterv1.MachineDeployment
	// cluster is nil if it does not exist.
	cluster *clusterv1.Cluster
	// sets are the MachineSets that are not being deleted, oldest first. Set by collect, and updated by write.
	sets []*clusterv1.MachineSet
	// names are the names of all MachineSets of the Cluster, including those that are being deleted or have another controller.
	names map[string]bool
	// listed is whether sets has been set.
	listed bool
	// tallies count the Machines of each MachineSet, by its UID.
	tallies map[types.UID]*machineset.Tally
	// machines are the Machines of these MachineSets. They are shared with the cache, so nothing may change them.
	machines []*clusterv1.Machine
	// pending is whether a MachineSet has to be created or updated.
	pending bool
	// current is the MachineSet of the deployment's template; nil if there is none.
	current *clusterv1.MachineSet
	// newIdentity is the identity of the current set if it has to be created.
	newIdentity identity
	// guarded is whether new MachineSets get a finalizer, see package children.
	guarded bool
	// surge and unavailable are the resolved maxSurge and maxUnavailable; zero for OnDelete.
	surge, unavailable int32
	targets            rollout.Targets
	// movable has the old sets whose Machines can be updated in place, by name.
	movable map[string]bool
}

func (c *Controller) scope(ctx context.Context, md *clusterv1.MachineDeployment) (*scope, error) {
	cluster, err := ownership.ClusterNamed(ctx, c.Client, client.ObjectKey{Namespace: md.Namespace, Name: md.Spec.ClusterName})
	return &scope{deployment: md, cluster: cluster}, err
}

// old returns the sets of previous templates, oldest first.
func (s *scope) old() []*clusterv1.MachineSet {
	var out []*clusterv1.MachineSet
	for _, set := range s.sets {
		if set != s.current {
			out = append(out, set)
		}
	}
	return out
}

// tally returns the counts of a MachineSet. A set that was just created has no Machines.
func (s *scope) tally(set *clusterv1.MachineSet) machineset.Tally {
	if t := s.tallies[set.UID]; t != nil {
		return *t
	}
	return machineset.Tally{}
}
