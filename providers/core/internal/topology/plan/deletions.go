package plan

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/desired"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/reference"
)

// deletions returns the obsolete objects that exist, belong to the topology, and are not being deleted yet.
func (c *comparison) deletions(ctx context.Context) ([]*unstructured.Unstructured, error) {
	obsolete, err := c.obsolete(ctx)
	if err != nil {
		return nil, err
	}
	var found []*unstructured.Unstructured
	for _, key := range obsolete {
		if TypedObject(key.kind) == nil {
			// References have no version, or one that may no longer be served.
			if key.kind, err = c.External.Versions.Newest(ctx, key.kind.GroupKind()); err != nil {
				return nil, err
			}
		}
		live, err := c.find(ctx, key.kind, key.name)
		if err != nil {
			return nil, err
		}
		if live != nil && live.GetDeletionTimestamp().IsZero() && c.checkOwnership(live) == nil {
			found = append(found, live)
		}
	}
	return found, nil
}

// obsolete returns the keys of objects that the topology may have had and no longer has. They need not exist.
func (c *comparison) obsolete(ctx context.Context) ([]objectKey, error) {
	keys := c.removedWorkers()
	if !c.want.ControlPlaneOnHold {
		if c.want.ControlPlaneHealthCheck == nil {
			keys = append(keys, healthCheck(c.want.ControlPlane.GetName()))
		}
		template, err := c.rotatedControlPlaneTemplate()
		if err != nil {
			return nil, err
		}
		keys = append(keys, template...)
	}
	for _, w := range c.want.Workers {
		if w.Deployment == nil || w.OnHold {
			continue
		}
		if w.HealthCheck == nil {
			keys = append(keys, healthCheck(w.Deployment.Name))
		}
		templates, err := c.rotatedTemplates(ctx, w)
		if err != nil {
			return nil, err
		}
		keys = append(keys, templates...)
	}
	return keys, nil
}

func healthCheck(name string) objectKey {
	return objectKey{clusterv1.GroupVersion.WithKind("MachineHealthCheck"), name}
}

// removedWorkers returns MachineDeployments, with their health checks, and MachinePools that are no longer in the topology.
// Package templates deletes their templates.
func (c *comparison) removedWorkers() []objectKey {
	requested := map[desired.WorkersID]bool{}
	for _, workers := range desired.RequestedBy(c.cluster) {
		requested[workers.WorkersID] = true
	}
	byKindAndName := func(a, b desired.WorkersID) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	}
	var keys []objectKey
	for _, id := range slices.SortedFunc(maps.Keys(c.current.Workers), byKindAndName) {
		if requested[id] {
			continue
		}
		workers := c.current.Workers[id]
		name := workers.Object().GetName()
		if workers.Deployment != nil {
			keys = append(keys, healthCheck(name))
		}
		keys = append(keys, objectKey{clusterv1.GroupVersion.WithKind(id.Kind), name})
	}
	return keys
}

// rotatedControlPlaneTemplate returns the machine template that the plan replaces, if any. Control planes copy their template
// when they create a Machine, so nothing else uses it.
func (c *comparison) rotatedControlPlaneTemplate() ([]objectKey, error) {
	if c.current.ControlPlane == nil || c.want.ControlPlaneMachines == nil {
		return nil, nil
	}
	old, err := c.current.Fields().InfrastructureRef()
	if err != nil || old == nil || identityOfVersioned(old) == identityOfObject(c.want.ControlPlaneMachines) {
		return nil, err
	}
	return []objectKey{{old.GroupVersionKind(), old.Name}}, nil
}

// rotatedTemplates returns the templates of a MachineDeployment that the plan replaces, without those that a MachineSet refers
// to: these are deleted with the MachineSet.
func (c *comparison) rotatedTemplates(ctx context.Context, md *desired.Workers) ([]objectKey, error) {
	current := c.current.Workers[md.ID()].Deployment
	if current == nil {
		return nil, nil
	}
	var old []identity
	for _, ref := range reference.OfMachine(&current.Spec.Template.Spec) {
		if id := identityOf(ref); id != identityOfObject(md.Bootstrap) && id != identityOfObject(md.Infrastructure) {
			old = append(old, id)
		}
	}
	if len(old) == 0 {
		return nil, nil
	}
	sets := &clusterv1.MachineSetList{}
	if err := c.Reader.List(ctx, sets, ownership.InCluster(current.Namespace, c.cluster.Name),
		client.MatchingLabels{clusterv1.MachineDeploymentNameLabel: current.Name}); err != nil {
		return nil, fmt.Errorf("listing the MachineSets of MachineDeployment %s: %w", current.Name, err)
	}
	var keys []objectKey
	for _, id := range old {
		if !isUsed(sets.Items, id) {
			keys = append(keys, objectKey{id.kind.WithVersion(""), id.name})
		}
	}
	return keys, nil
}

func isUsed(sets []clusterv1.MachineSet, template identity) bool {
	for i := range sets {
		used := func(by *clusterv1.ContractVersionedObjectReference) bool { return identityOf(by) == template }
		if slices.ContainsFunc(reference.OfMachine(&sets[i].Spec.Template.Spec), used) {
			return true
		}
	}
	return false
}
