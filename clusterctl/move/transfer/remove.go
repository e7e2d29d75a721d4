package transfer

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/clusterctl/move/graph"
	"sigs.k8s.io/cluster-api/clusterctl/move/side"
)

// Remover removes objects from the source that are complete in the target.
type Remover struct {
	Source *side.Side
	// ID is the identity of the move.
	ID string
	// Copy copies an object that changed after it was copied. If nil, objects are removed in whatever state they are.
	Copy func(context.Context, *graph.Node) error
	// Done is called after each object is marked, if not nil.
	Done func()
}

// collection is the objects of a kind in a namespace.
type collection struct {
	kind      graph.Kind
	namespace string
}

// Remove removes the objects of a graph, except global ones, dependents first. An object is marked as moved, without finalizers,
// only in the state that was copied; what is marked is deleted with one request per kind.
func (r *Remover) Remove(ctx context.Context, g *graph.Graph) error {
	for _, level := range slices.Backward(g.Levels()) {
		nodes := slices.DeleteFunc(slices.Clone(level), func(n *graph.Node) bool { return n.Global })
		if err := side.Each(ctx, nodes, r.mark); err != nil {
			return err
		}
		collections := map[collection][]*graph.Node{}
		for _, n := range nodes {
			key := collection{kind: n.Kind, namespace: n.GetNamespace()}
			collections[key] = append(collections[key], n)
		}
		group, groupCtx := errgroup.WithContext(ctx)
		for key, nodes := range collections {
			group.Go(func() error { return r.deleteAll(groupCtx, key, nodes) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// mark marks an object in the state that was copied: a changed object is copied again before.
func (r *Remover) mark(ctx context.Context, n *graph.Node) error {
	if r.Done != nil {
		defer r.Done()
	}
	if Moved(n.Object, r.ID) && len(n.GetFinalizers()) == 0 {
		return nil
	}
	return r.Source.Do(ctx, "mark "+n.Key().String()+" as moved", func(ctx context.Context) error {
		for range conflicts {
			patched := &unstructured.Unstructured{}
			patched.SetGroupVersionKind(n.Kind.GroupVersionKind)
			patched.SetNamespace(n.GetNamespace())
			patched.SetName(n.GetName())
			patch, err := r.patch(n)
			if err != nil {
				return err
			}
			err = r.Source.Patch(ctx, patched, client.RawPatch(types.MergePatchType, patch))
			if !apierrors.IsConflict(err) {
				return client.IgnoreNotFound(err)
			}
			gone, err := r.refresh(ctx, n)
			if err != nil || gone {
				return err
			}
		}
		return fmt.Errorf("it is changed all the time: scale down what changes it")
	})
}

func (r *Remover) patch(n *graph.Node) ([]byte, error) {
	return json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": n.GetUID(), "resourceVersion": n.GetResourceVersion(),
		"annotations": map[string]any{clusterctlv1.DeleteForMoveAnnotation: ""},
		"labels":      map[string]any{MovedLabel: r.ID},
		"finalizers":  nil,
	}})
}

// refresh reads an object that changed, and copies it unless it has been marked.
func (r *Remover) refresh(ctx context.Context, n *graph.Node) (gone bool, err error) {
	uid := n.GetUID()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(n.Kind.GroupVersionKind)
	err = r.Source.Get(ctx, client.ObjectKeyFromObject(n), live)
	// A successor with the same name is removed in the next round.
	if apierrors.IsNotFound(err) || err == nil && live.GetUID() != uid {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	n.Unstructured = live
	if Moved(n.Object, r.ID) || r.Copy == nil {
		return false, nil
	}
	return false, r.Copy(ctx, n)
}

// deleteAll deletes the marked objects of a kind: with one request, or one by one if deleting collections is forbidden.
func (r *Remover) deleteAll(ctx context.Context, c collection, nodes []*graph.Node) error {
	kind := &unstructured.Unstructured{}
	kind.SetGroupVersionKind(c.kind.GroupVersionKind)
	err := r.Source.Do(ctx, fmt.Sprintf("delete the moved objects of kind %s in namespace %s", c.kind.Kind, c.namespace),
		func(ctx context.Context) error {
			return r.Source.DeleteAllOf(ctx, kind, client.InNamespace(c.namespace), client.MatchingLabels{MovedLabel: r.ID})
		})
	if !apierrors.IsForbidden(err) && !apierrors.IsMethodNotSupported(err) {
		return err
	}
	return side.Each(ctx, nodes, r.delete)
}

func (r *Remover) delete(ctx context.Context, n *graph.Node) error {
	return r.Source.Do(ctx, "delete "+n.Key().String(), func(ctx context.Context) error {
		uid := n.GetUID()
		err := r.Source.Delete(ctx, n.Unstructured, client.Preconditions(metav1.Preconditions{UID: &uid}))
		if apierrors.IsConflict(err) {
			return nil // a successor with the same name
		}
		return client.IgnoreNotFound(err)
	})
}
