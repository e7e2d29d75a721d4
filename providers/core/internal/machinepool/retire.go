package machinepool

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// retire deletes the Nodes in status.nodeRefs whose provider ID the pool no longer has, and those that joined right before their ID was
// removed: their machines are gone. It returns the
// references to those that it could not delete. Because a stale cache may lack the latest provider IDs, the API server decides, with
// one read.
func (c *Controller) retire(ctx context.Context, s *scope, workload client.Client, found membership) ([]corev1.ObjectReference, error) {
	candidates, err := c.retired(ctx, s, workload, s.pool.Spec.ProviderIDList, found)
	if err == nil {
		var joined []*corev1.Node
		joined, err = c.unrecorded(ctx, s, workload, s.removedIDs)
		candidates = append(candidates, joined...)
	}
	if err != nil || len(candidates) == 0 {
		return references(candidates), err
	}
	if s.infra == nil {
		return references(candidates), nil // Only the provider can remove machines.
	}
	live, err := c.live().Object(ctx, &s.pool.Spec.Template.Spec.InfrastructureRef, s.pool.Namespace)
	if apierrors.IsNotFound(err) {
		return references(candidates), nil
	}
	if err != nil {
		return references(candidates), err
	}
	infra := contract.InfrastructureMachinePoolOf(live)
	ids, err := providerIDs(infra)
	if err != nil {
		return references(candidates), err
	}
	if !slices.Equal(ids, s.pool.Spec.ProviderIDList) {
		return references(candidates), step.Stale("%s %s is stale in the cache", infra.GetKind(), infra.GetName())
	}
	return deleteEach(ctx, workload, candidates)
}

// retired returns the Nodes in status.nodeRefs that have none of these provider IDs. Nodes that registered again under their name may
// be of other machines. A Node that has a Machine is up to the Machine controller, which drains it first.
func (c *Controller) retired(
	ctx context.Context, s *scope, workload client.Reader, ids []string, found membership,
) ([]*corev1.Node, error) {
	var out []*corev1.Node
	for _, ref := range s.pool.Status.NodeRefs {
		if slices.ContainsFunc(found.references, func(r corev1.ObjectReference) bool { return r.UID == ref.UID && r.Name == ref.Name }) {
			continue
		}
		node := &corev1.Node{}
		err := workload.Get(ctx, client.ObjectKey{Name: ref.Name}, node)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return out, fmt.Errorf("reading Node %s: %w", ref.Name, err)
		}
		if node.UID != ref.UID || slices.Contains(ids, node.Spec.ProviderID) {
			continue
		}
		machine, rival, err := c.claims(ctx, s, node)
		if err != nil {
			return out, err
		}
		if machine == nil && rival == "" {
			out = append(out, node)
		}
	}
	return out, nil
}

// unrecorded returns the Nodes with these provider IDs that are not in status.nodeRefs, and belong to no Machine and no other pool. An
// ID of several Nodes is ignored: at least one of them is wrong.
func (c *Controller) unrecorded(ctx context.Context, s *scope, workload client.Reader, ids []string) ([]*corev1.Node, error) {
	var out []*corev1.Node
	for _, id := range ids {
		list := &corev1.NodeList{}
		if err := workload.List(ctx, list, client.MatchingFields{remote.NodeProviderID: id}); err != nil {
			return out, fmt.Errorf("finding the Node with provider ID %s: %w", id, err)
		}
		if len(list.Items) != 1 || refersTo(s.pool, &list.Items[0]) {
			continue
		}
		machine, rival, err := c.claims(ctx, s, &list.Items[0])
		if err != nil {
			return out, err
		}
		if machine == nil && rival == "" {
			out = append(out, &list.Items[0])
		}
	}
	return out, nil
}

// deleteEach deletes Nodes, and returns the references to those that it could not delete.
func deleteEach(ctx context.Context, workload client.Client, candidates []*corev1.Node) ([]corev1.ObjectReference, error) {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	var failed []*corev1.Node
	var errs []error
	for _, node := range candidates {
		err := workload.Delete(ctx, node, client.Preconditions{UID: &node.UID})
		if client.IgnoreNotFound(err) != nil {
			failed, errs = append(failed, node), append(errs, fmt.Errorf("deleting Node %s: %w", node.Name, err))
		}
	}
	return references(failed), errors.Join(errs...)
}

// references returns references to Nodes that had one before.
func references(of []*corev1.Node) []corev1.ObjectReference {
	var out []corev1.ObjectReference
	for _, node := range of {
		out = append(out, corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID})
	}
	return out
}
