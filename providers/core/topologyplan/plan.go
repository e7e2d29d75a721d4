package topologyplan

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Input is what is planned.
type Input struct {
	// Objects to apply. All must be in Namespace, with at most one Cluster, one ClusterClass, and one API version of each kind.
	// Without objects, the plan is what the topology controller has not yet done for Cluster.
	Objects []*unstructured.Unstructured
	// Namespace is the namespace of the plan.
	Namespace string
	// Live is the management cluster. If it is nil, Objects are all there is. To plan what controllers do, it has to be the client of an
	// apiversion.Boundary, as theirs are: in another version than the stored one, an apply does not remove the same fields.
	Live client.Client
	// Cluster is the name of the Cluster that is planned. If it is empty, it is the only one that is affected; if several are, none
	// is planned.
	Cluster string
	// SkipExtensions leaves out the patches of runtime extensions. Otherwise, they are called from here.
	SkipExtensions bool
	// Dial connects to extensions, whose addresses may be names of Services, as <name>.<namespace>.svc. Nil: to the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// UserAgent is sent to extensions.
	UserAgent string
	// ControlPlanes decide which Machines a control plane replaces, by the kind of the control plane. What others replace is
	// not predicted.
	ControlPlanes map[schema.GroupKind]Outdated
	// Now is the current time.
	Now time.Time
}

// Outdated returns why a control plane replaces one of its Machines; nothing if it does not. It reads what the Machine refers to.
type Outdated func(
	ctx context.Context, reader client.Reader, controlPlane *unstructured.Unstructured, machine *clusterv1.Machine, now time.Time,
) ([]string, error)

// Plan is what the topology controller does after the objects have been applied.
type Plan struct {
	// ClusterClasses and Clusters are those that the objects affect, sorted.
	ClusterClasses, Clusters []client.ObjectKey
	// Cluster is the Cluster that the rest is about; nil if none is planned.
	Cluster *client.ObjectKey
	// Rounds are what happens, one after the other: a round begins once the rollouts of the one before are complete. The first one
	// begins at once; it is empty if the others only wait for rollouts that are already in progress.
	Rounds []Round
	// ControlPlaneUpgrades and WorkersUpgrades are the Kubernetes versions that they get one after the other, at most one if the upgrade has
	// no intermediate versions.
	ControlPlaneUpgrades, WorkersUpgrades []string
	// Waiting is what does not happen even after all rounds, because of annotations or objects that are in progress; "" if nothing waits.
	Waiting string
}

// Action is what happens to an object.
type Action string

// The actions.
const (
	Created  Action = "created"
	Modified Action = "modified"
	Deleted  Action = "deleted"
)

// Change is the change of an object.
type Change struct {
	Action Action
	// Before is nil for a created object, After for a deleted one.
	Before, After *unstructured.Unstructured
	// Fields are the fields that change, sorted, such as spec.replicas. Fields of lists are not told apart.
	Fields []string
}

// Object is the object after the change, or before its deletion.
func (c Change) Object() *unstructured.Unstructured {
	if c.After != nil {
		return c.After
	}
	return c.Before
}

// Round is what happens at the same time.
type Round struct {
	// Hooks are the lifecycle hooks that are called before the changes, with their extensions, each of which may block them.
	Hooks []string
	// Changes are sorted by action, then kind and name.
	Changes []Change
	// Rollouts are of the control plane, then of MachineDeployments and MachinePools, each in the order of their names.
	Rollouts []Rollout
}

// Rollout is the replacement of Machines.
type Rollout struct {
	// Kind and Name are the control plane, MachineDeployment or MachinePool that replaces the Machines.
	Kind, Name string
	// Machines are the names of those that are replaced, sorted, and Kept is the number of those that stay.
	Machines []string
	Kept     int
	// Reasons are why, sorted.
	Reasons []string
	// Unknown is set if the provider of the control plane, or of a MachinePool's infrastructure, decides on its own whether Machines
	// are replaced.
	Unknown bool
	// Held is why no Machine is replaced until a user acts, for example because the MachineDeployment is paused; "" if nothing holds them.
	// Later rounds do not happen as long as they depend on the rollout.
	Held string
}

// Compute returns the plan for an input.
func Compute(ctx context.Context, in Input) (*Plan, error) {
	given := in.Objects
	var err error
	if in.Objects, err = inNewest(ctx, given); err != nil {
		return nil, err
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	var live client.Reader
	if in.Live != nil {
		live = in.Live
	}
	world, err := NewWorld(live)
	if err != nil {
		return nil, err
	}
	i := intake{World: world}
	if in.Live == nil {
		if err := world.defineKinds(given); err != nil {
			return nil, err
		}
	} else {
		i.dryRun = in.Live
	}
	if err := i.add(ctx, in.Objects); err != nil {
		if world.denied != nil {
			return nil, world.denied // Validation does not return why it could not read.
		}
		return nil, err
	}
	plan := &Plan{}
	if plan.ClusterClasses, plan.Clusters, err = world.affected(ctx, in.Namespace, in.Objects); err != nil {
		return nil, err
	}
	if plan.Cluster, err = plan.planned(in); plan.Cluster == nil || err != nil {
		return plan, err
	}
	in.Namespace = plan.Cluster.Namespace
	p := &prediction{World: world, Input: in, plan: plan}
	if p.common, err = newCommon(world, in); err != nil {
		return nil, err
	}
	return plan, p.run(ctx)
}

// check checks the restrictions of the input.
func (in Input) check() error {
	versions := map[schema.GroupKind]string{}
	names := map[string][]string{}
	for _, u := range in.Objects {
		kind := u.GroupVersionKind()
		if u.GetNamespace() != in.Namespace && u.GetKind() != definitionKind {
			return fmt.Errorf("%s %s is in namespace %s: all objects of a plan must be in one namespace, %s",
				u.GetKind(), u.GetName(), u.GetNamespace(), in.Namespace)
		}
		if known := versions[kind.GroupKind()]; known != "" && known != kind.Version {
			return fmt.Errorf("%s %s has version %s, others have %s: all objects of a kind must have one version",
				u.GetKind(), u.GetName(), kind.Version, known)
		}
		versions[kind.GroupKind()] = kind.Version
		if kind.Group != clusterv1.GroupVersion.Group {
			continue
		}
		names[u.GetKind()] = append(names[u.GetKind()], u.GetName())
	}
	var errs []error
	for _, kind := range []string{clusterKind, classKind} {
		if n := names[kind]; len(n) > 1 {
			errs = append(errs, fmt.Errorf("there are %d objects of kind %s (%v): plan them one at a time", len(n), kind, n))
		}
	}
	return errors.Join(errs...)
}

// planned returns the Cluster to plan.
func (p *Plan) planned(in Input) (*client.ObjectKey, error) {
	if in.Cluster == "" {
		if len(p.Clusters) == 1 {
			return &p.Clusters[0], nil
		}
		return nil, nil
	}
	key := client.ObjectKey{Namespace: in.Namespace, Name: in.Cluster}
	if len(in.Objects) == 0 {
		return &key, nil
	}
	if !slices.Contains(p.Clusters, key) {
		// Its class may be in the namespace of the plan.
		var elsewhere []client.ObjectKey
		for _, cluster := range p.Clusters {
			if cluster.Name == in.Cluster {
				elsewhere = append(elsewhere, cluster)
			}
		}
		if len(elsewhere) == 1 {
			return &elsewhere[0], nil
		}
		return nil, fmt.Errorf("the objects do not affect Cluster %s: choose one of %v with --cluster", key, p.Clusters)
	}
	return &key, nil
}

func labelSet(obj client.Object) labels.Labels { return labels.Set(obj.GetLabels()) }
