package revision

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

// World is what a management cluster has. Clusters and Rollouts are those of all namespaces.
type World struct {
	Classes, Clusters, Rollouts []unstructured.Unstructured
}

// Row is a ClusterClass, and who uses it.
type Row struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Class is the name of the class of which this is a revision; its own name if it is none.
	Class string `json:"class"`
	// Revision is false for a class that is edited in place.
	Revision bool      `json:"revision"`
	Created  time.Time `json:"created"`
	// Newest is true for the newest revision of a class.
	Newest bool `json:"newest"`
	// Clusters is how many Clusters use it, and Versions how many of each version of Kubernetes.
	Clusters int            `json:"clusters"`
	Versions map[string]int `json:"versions,omitempty"`
	// Held says what else refers to it, such as a ClusterRollout in progress.
	Held string `json:"held,omitempty"`
}

// Rows returns the ClusterClasses by namespace and class, the newest first, and a class that is no revision after its revisions. names, if
// there are any, select classes.
func (w *World) Rows(names ...string) ([]Row, error) {
	held, err := w.held()
	if err != nil {
		return nil, err
	}
	users := map[types.NamespacedName]map[string]int{}
	for i := range w.Clusters {
		class, _ := tree.Class(&w.Clusters[i])
		if users[class] == nil {
			users[class] = map[string]int{}
		}
		users[class][tree.Text(&w.Clusters[i], "spec", "topology", "version")]++
	}
	var rows []Row
	for i := range w.Classes {
		u := &w.Classes[i]
		key := types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}
		base := Base(u)
		r := Row{
			Namespace: key.Namespace, Name: key.Name, Class: cmp.Or(base, key.Name), Revision: base != "",
			Created: u.GetCreationTimestamp().Time, Versions: users[key], Held: held[key],
		}
		for _, n := range r.Versions {
			r.Clusters += n
		}
		if len(names) == 0 || slices.Contains(names, r.Class) {
			rows = append(rows, r)
		}
	}
	order(rows)
	return rows, nil
}

// order sorts rows, and marks the newest revisions.
func order(rows []Row) {
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Class, b.Class), last(a, b), b.Created.Compare(a.Created),
			cmp.Compare(a.Name, b.Name))
	})
	for i := range rows {
		first := i == 0 || rows[i-1].Namespace != rows[i].Namespace || rows[i-1].Class != rows[i].Class
		rows[i].Newest = first && rows[i].Revision
	}
}

// last sorts what is no revision last.
func last(a, b Row) int {
	switch {
	case a.Revision == b.Revision:
		return 0
	case a.Revision:
		return -1
	default:
		return 1
	}
}

// held returns what ClusterRollouts that have not ended refer to: the new class, and the classes that Clusters may go back to.
func (w *World) held() (map[types.NamespacedName]string, error) {
	held, active := map[types.NamespacedName]string{}, map[types.NamespacedName]bool{}
	for i := range w.Rollouts {
		u := &w.Rollouts[i]
		phase := fleetv1.RolloutPhase(tree.Text(u, "status", "phase"))
		if phase == fleetv1.RolloutCompleted || phase == fleetv1.RolloutAborted {
			continue
		}
		active[types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}] = true
		class := types.NamespacedName{
			Namespace: cmp.Or(tree.Text(u, "spec", "change", "classRef", "namespace"), u.GetNamespace()),
			Name:      tree.Text(u, "spec", "change", "classRef", "name"),
		}
		if class.Name != "" {
			held[class] = fmt.Sprintf("ClusterRollout %s/%s is in progress", u.GetNamespace(), u.GetName())
		}
	}
	for i := range w.Clusters {
		u := &w.Clusters[i]
		entry, err := fleetv1.RolloutEntryOf(u)
		if err != nil {
			return nil, fmt.Errorf("Cluster %s/%s may go back to a class: correct or remove what cannot be read: %w",
				u.GetNamespace(), u.GetName(), err)
		}
		if entry == nil || entry.Previous == nil || entry.Previous.ClassRef == nil ||
			!active[types.NamespacedName{Namespace: u.GetNamespace(), Name: entry.Rollout}] {
			continue
		}
		ref := entry.Previous.ClassRef
		class := types.NamespacedName{Namespace: cmp.Or(ref.Namespace, u.GetNamespace()), Name: ref.Name}
		if held[class] == "" {
			held[class] = fmt.Sprintf("ClusterRollout %s can set Cluster %s/%s back to it", entry.Rollout, u.GetNamespace(), u.GetName())
		}
	}
	return held, nil
}
