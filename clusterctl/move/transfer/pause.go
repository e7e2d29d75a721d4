package transfer

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/clusterctl/move/graph"
	"sigs.k8s.io/cluster-api/clusterctl/move/side"
)

const (
	// MoveAnnotation is on what a move has paused; its value is the ID of the move.
	MoveAnnotation = "clusterctl.cluster.x-k8s.io/move-id"
	// KeepAnnotation is on what was paused before the move, and stays paused after it; presence counts.
	KeepAnnotation = "clusterctl.cluster.x-k8s.io/move-keep-paused"
)

// PausedBy returns the ID of the move that paused the object; empty if none did.
func PausedBy(o graph.Object) string { return o.GetAnnotations()[MoveAnnotation] }

// Pausable reports whether a move pauses the object.
func Pausable(o graph.Object) bool { return o.IsCluster() || o.IsClass() }

// Pause pauses objects with one request each, and remembers which of them were already paused. All objects are paused when
// it returns, and read again if they were changed.
func Pause(ctx context.Context, s *side.Side, nodes []*graph.Node, id string) (paused int, err error) {
	var todo []*graph.Node
	for _, n := range nodes {
		if Pausable(n.Object) && (PausedBy(n.Object) != id || !n.Paused()) {
			todo = append(todo, n)
		}
	}
	return len(todo), side.Each(ctx, todo, func(ctx context.Context, n *graph.Node) error {
		return patch(ctx, s, "pause", n, func(o graph.Object) map[string]any { return pauseChanges(o, id) })
	})
}

// Resume resumes those of the objects that the move has paused, ClusterClasses first, and removes its annotations. An empty ID
// selects objects that are paused without annotations of a move, as v1.7 writes them to directories.
func Resume(ctx context.Context, s *side.Side, nodes []*graph.Node, id string) (resumed int, err error) {
	for _, selects := range []func(graph.Object) bool{graph.Object.IsClass, graph.Object.IsCluster} {
		var todo []*graph.Node
		for _, n := range nodes {
			if selects(n.Object) && Resumes(n.Object, id) {
				todo = append(todo, n)
			}
		}
		resumed += len(todo)
		err := side.Each(ctx, todo, func(ctx context.Context, n *graph.Node) error { return patch(ctx, s, "resume", n, resumeChanges) })
		if err != nil {
			return resumed, err
		}
	}
	return resumed, nil
}

// Resumes reports whether Resume resumes an object.
func Resumes(o graph.Object, id string) bool { return PausedBy(o) == id && (id != "" || o.Paused()) }

// pauseChanges returns the changes of the annotations and, for a Cluster, of the spec.
func pauseChanges(o graph.Object, id string) map[string]any {
	annotations := map[string]any{MoveAnnotation: id}
	if PausedBy(o) == "" && o.Paused() {
		annotations[KeepAnnotation] = ""
	}
	changes := map[string]any{}
	if o.IsCluster() {
		changes["spec"] = map[string]any{"paused": true}
	} else if !o.Paused() {
		annotations[clusterv1.PausedAnnotation] = ""
	}
	return withMetadata(changes, o, annotations)
}

func resumeChanges(o graph.Object) map[string]any {
	annotations := map[string]any{MoveAnnotation: nil, KeepAnnotation: nil}
	changes := map[string]any{}
	_, keep := o.GetAnnotations()[KeepAnnotation]
	switch {
	case keep:
	case o.IsCluster():
		changes["spec"] = map[string]any{"paused": nil}
	default:
		annotations[clusterv1.PausedAnnotation] = nil
	}
	return withMetadata(changes, o, annotations)
}

func withMetadata(changes map[string]any, o graph.Object, annotations map[string]any) map[string]any {
	changes["metadata"] = map[string]any{"resourceVersion": o.GetResourceVersion(), "annotations": annotations}
	return changes
}

// patch applies changes to the object in the state that they were computed for. Objects that no longer exist are
// skipped.
func patch(ctx context.Context, s *side.Side, verb string, n *graph.Node, changes func(graph.Object) map[string]any) error {
	key := client.ObjectKeyFromObject(n)
	return s.Do(ctx, fmt.Sprintf("%s %s", verb, n.Key()), func(ctx context.Context) error {
		for {
			body, err := json.Marshal(changes(n.Object))
			if err != nil {
				return err
			}
			// A copy, because the client decodes the response into its argument.
			patched := n.DeepCopy()
			err = s.Patch(ctx, patched, client.RawPatch(types.MergePatchType, body))
			if err == nil {
				n.Unstructured = patched
			}
			if !apierrors.IsConflict(err) {
				return client.IgnoreNotFound(err)
			}
			if err := s.Get(ctx, key, n.Unstructured); err != nil {
				return client.IgnoreNotFound(err)
			}
		}
	})
}
