package plan

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/desired"
	"sigs.k8s.io/cluster-api/sdk/ssa"
)

// comparison compares the desired objects of a Cluster with the current ones, for one plan.
type comparison struct {
	*Planner
	cluster *clusterv1.Cluster
	current *desired.Current
	want    *desired.Objects
	// live holds the objects that find has read, nil for those that do not exist.
	live map[objectKey]*unstructured.Unstructured
	// kept holds, by desired template, how the live template differs from it although it is not replaced: see fits.
	kept map[*unstructured.Unstructured]ssa.Diff
}

// objectKey identifies an object of a Cluster at an API version.
type objectKey struct {
	kind schema.GroupVersionKind
	name string
}

// find returns an object, nil if it does not exist. Each object is read at most once.
func (c *comparison) find(ctx context.Context, kind schema.GroupVersionKind, name string) (*unstructured.Unstructured, error) {
	key := objectKey{kind, name}
	if known, ok := c.live[key]; ok {
		return known, nil
	}
	found, err := c.read(ctx, kind, name)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading %s %s: %w", kind.Kind, name, err)
	}
	if err != nil {
		found = nil
	}
	c.live[key] = found
	return found, nil
}

// read reads kinds of this group as Go types: reading them unstructured would start a second cache.
func (c *comparison) read(ctx context.Context, kind schema.GroupVersionKind, name string) (*unstructured.Unstructured, error) {
	typed := TypedObject(kind)
	if typed == nil {
		return c.External.Exact(ctx, &corev1.ObjectReference{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: name},
			c.cluster.Namespace)
	}
	if known := c.listed(kind.Kind, name); known != nil {
		typed = known
	} else if err := c.Reader.Get(ctx, client.ObjectKey{Namespace: c.cluster.Namespace, Name: name}, typed); err != nil {
		return nil, err
	}
	typed.GetObjectKind().SetGroupVersionKind(kind)
	return toUnstructured(typed)
}

// listed returns workers that have been listed already, nil for other objects.
func (c *comparison) listed(kind, name string) client.Object {
	for _, w := range c.current.Workers {
		if w.Kind() == kind && w.Object().GetName() == name {
			return w.Object()
		}
	}
	return nil
}

// TypedObject returns an empty object of the kinds of this group that topologies have, nil for other kinds.
func TypedObject(kind schema.GroupVersionKind) client.Object {
	if kind.GroupVersion() != clusterv1.GroupVersion {
		return nil
	}
	switch kind.Kind {
	case "MachineDeployment":
		return &clusterv1.MachineDeployment{}
	case "MachinePool":
		return &clusterv1.MachinePool{}
	case "MachineHealthCheck":
		return &clusterv1.MachineHealthCheck{}
	}
	return nil
}

// checkOwnership returns an error for an object that is not part of this topology but has the name of a desired object: it
// must not be taken over.
func (c *comparison) checkOwnership(live *unstructured.Unstructured) error {
	if live == nil {
		return nil
	}
	isReferenced := func(ref clusterv1.ContractVersionedObjectReference) bool {
		return ref.Kind == live.GetKind() && ref.Name == live.GetName()
	}
	_, owned := live.GetLabels()[clusterv1.ClusterTopologyOwnedLabel]
	cluster := live.GetLabels()[clusterv1.ClusterNameLabel]
	if (owned && cluster == c.cluster.Name) || isReferenced(c.cluster.Spec.InfrastructureRef) || isReferenced(c.cluster.Spec.ControlPlaneRef) {
		return nil
	}
	return fmt.Errorf("%s exists and is not part of the topology of this Cluster (labels %s and %s): "+
		"delete or rename it, or choose another naming strategy in the ClusterClass",
		Describe(live), clusterv1.ClusterTopologyOwnedLabel, clusterv1.ClusterNameLabel)
}

// Describe returns the kind, namespace and name of an object.
func Describe(u *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s/%s", u.GetKind(), u.GetNamespace(), u.GetName())
}
