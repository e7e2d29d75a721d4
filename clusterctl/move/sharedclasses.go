package move

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/clusterctl/move/graph"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

// foreignClass returns the ClusterClass of a Cluster if it is in another namespace: it is not moved.
func foreignClass(n *graph.Node) (types.NamespacedName, bool) {
	class, _ := tree.Class(n.Unstructured)
	return class, class.Name != "" && class.Namespace != n.GetNamespace()
}

// missingClasses returns the ClusterClasses of other namespaces that the Clusters use and the target does not have. It makes a request for
// each class of another namespace. One that the user may not read does not count as missing.
func (m *Mover) missingClasses(ctx context.Context, g *graph.Graph) ([]types.NamespacedName, error) {
	var seen, missing []types.NamespacedName
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
			problems = append(problems, fmt.Sprintf("%s has ClusterClass %s, which the target cluster does not have. Classes of other namespaces "+
				"are not moved: create it there first", n.Key(), class))
		}
	}
	return problems
}
