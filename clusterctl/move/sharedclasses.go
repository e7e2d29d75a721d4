package move

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/clusterctl/move/graph"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

// foreignClass returns the ClusterClass of a Cluster if it is in another namespace: it is copied, not moved.
func foreignClass(n *graph.Node) (types.NamespacedName, bool) {
	class, _ := tree.Class(n.Unstructured)
	return class, class.Name != "" && class.Namespace != n.GetNamespace()
}

// missingClasses returns the ClusterClasses of other namespaces that the Clusters use, that cannot be read in the source, and that the
// target does not have. One that the user may not read in the target does not count as missing.
func (m *Mover) missingClasses(ctx context.Context, g *graph.Graph) ([]types.NamespacedName, error) {
	var seen, missing []types.NamespacedName
	for _, n := range g.Select(func(n *graph.Node) bool { return n.IsClass() }) {
		seen = append(seen, n.Key().NamespacedName)
	}
	for _, n := range g.Select(func(n *graph.Node) bool { return n.IsCluster() }) {
		class, foreign := foreignClass(n)
		if !foreign || slices.Contains(seen, class) {
			continue
		}
		seen = append(seen, class)
		found := &metav1.PartialObjectMetadata{}
		found.SetGroupVersionKind(clusterv1beta1.GroupVersion.WithKind("ClusterClass"))
		err := m.Target.Do(ctx, "read ClusterClass "+class.String(), func(ctx context.Context) error {
			return m.Target.Get(ctx, class, found)
		})
		switch {
		case apierrors.IsNotFound(err):
			missing = append(missing, class)
		case apierrors.IsForbidden(err), meta.IsNoMatchError(err): // Another check reports a kind that is not served.
		case err != nil:
			return nil, err
		}
	}
	return missing, nil
}

// sharedClasses reports Clusters whose ClusterClass would be missing in the target.
func sharedClasses(in input) []string {
	var problems []string
	for _, n := range in.Graph.Select(func(n *graph.Node) bool { return n.IsCluster() }) {
		if class, foreign := foreignClass(n); foreign && slices.Contains(in.MissingClasses, class) {
			problems = append(problems, fmt.Sprintf("%s has ClusterClass %s, which the target cluster does not have, and which cannot be copied "+
				"because it does not exist in the source cluster, or because you may not read it there: create it in the target first",
				n.Key(), class))
		}
	}
	return problems
}

// sharedInTarget adds the shared objects of other namespaces to what the target has, and warns about those that differ from the source:
// they are kept as they are.
func (m *Mover) sharedInTarget(ctx context.Context, g *graph.Graph, existing []graph.Object) ([]graph.Object, error) {
	for _, n := range g.Select(func(n *graph.Node) bool { return n.Shared }) {
		i := slices.IndexFunc(existing, func(o graph.Object) bool { return o.Key() == n.Key() })
		if i < 0 && n.GetNamespace() == m.Namespace {
			continue
		}
		if i < 0 {
			found := &unstructured.Unstructured{}
			err := m.Target.Do(ctx, "read "+n.Key().String(), func(ctx context.Context) error {
				found.SetGroupVersionKind(n.Kind.GroupVersionKind)
				return m.Target.Get(ctx, n.Key().NamespacedName, found)
			})
			switch {
			case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
				continue
			case apierrors.IsForbidden(err):
				found = n.Unstructured // Users of one namespace rely on what there is in others.
			case err != nil:
				return nil, err
			}
			i, existing = len(existing), append(existing, graph.Object{Unstructured: found, Kind: n.Kind})
		}
		if !equality.Semantic.DeepEqual(existing[i].Object["spec"], n.Object.Object["spec"]) {
			m.Progress.Warn("The target cluster has %s with another spec, and keeps it: Clusters that are moved take it over, "+
				"which may replace their Machines", n.Key())
		}
	}
	return existing, nil
}
