package revision

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

const (
	// rolloutAnnotation is on Clusters that a ClusterRollout changes or has changed: JSON, with the class to go back to.
	rolloutAnnotation = "fleet.cluster.x-k8s.io/rollout"
	// Phases of ClusterRollouts that have ended.
	rolloutCompleted, rolloutAborted = "Completed", "Aborted"
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

// held returns what ClusterRollouts refer to: the new class of those in progress, and the classes that Clusters may go back to.
func (w *World) held() (map[types.NamespacedName]string, error) {
	held := map[types.NamespacedName]string{}
	for i := range w.Rollouts {
		u := &w.Rollouts[i]
		name := tree.Text(u, "spec", "change", "classRef", "name")
		if phase := tree.Text(u, "status", "phase"); name == "" || phase == rolloutCompleted || phase == rolloutAborted {
			continue
		}
		class := types.NamespacedName{
			Namespace: cmp.Or(tree.Text(u, "spec", "change", "classRef", "namespace"), u.GetNamespace()), Name: name,
		}
		held[class] = fmt.Sprintf("ClusterRollout %s/%s is in progress", u.GetNamespace(), u.GetName())
	}
	for i := range w.Clusters {
		u := &w.Clusters[i]
		text := u.GetAnnotations()[rolloutAnnotation]
		if text == "" {
			continue
		}
		var entry struct {
			Previous struct {
				ClassRef struct{ Name, Namespace string } `json:"classRef"`
			} `json:"previous"`
		}
		if err := json.Unmarshal([]byte(text), &entry); err != nil {
			return nil, fmt.Errorf("Cluster %s/%s: the annotation %s cannot be read, and may have the class to which a rollout goes back: "+
				"correct or remove it: %w", u.GetNamespace(), u.GetName(), rolloutAnnotation, err)
		}
		ref := entry.Previous.ClassRef
		class := types.NamespacedName{Namespace: cmp.Or(ref.Namespace, u.GetNamespace()), Name: ref.Name}
		if ref.Name != "" && held[class] == "" {
			held[class] = fmt.Sprintf("a rollout of Cluster %s/%s can go back to it", u.GetNamespace(), u.GetName())
		}
	}
	return held, nil
}
