package revision

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/packages/manifest"
)

// Decision is what happens to a revision.
type Decision struct {
	Row
	// Keep is why it is kept; empty: it is deleted.
	Keep string `json:"keep,omitempty"`
	// Templates are those that only deleted revisions refer to. They are deleted with the last of their owners.
	Templates []string `json:"templates,omitempty"`
	// Shared are templates that classes which stay use, too.
	Shared []Shared `json:"-"`

	// Object is the ClusterClass.
	Object *unstructured.Unstructured `json:"-"`
}

// Shared is a template that a class uses which stays. The class has to be an owner of the template when another owner is deleted.
type Shared struct {
	Reference
	By *unstructured.Unstructured
}

// Prune decides which revisions of a class are deleted: those that nothing uses, except the newest.
func (w *World) Prune(class types.NamespacedName, keep int) ([]Decision, error) {
	rows, err := w.Rows(class.Name)
	if err != nil {
		return nil, err
	}
	var list []Decision
	deleted := map[string]bool{}
	for _, r := range rows {
		if !r.Revision || r.Namespace != class.Namespace {
			continue
		}
		d := Decision{Row: r, Object: w.find(r)}
		switch {
		case r.Clusters == 1:
			d.Keep = "a Cluster uses it"
		case r.Clusters > 1:
			d.Keep = fmt.Sprintf("%d Clusters use it", r.Clusters)
		case r.Held != "":
			d.Keep = r.Held
		case len(list) < keep:
			d.Keep = "it is one of the newest"
		case d.Object.GetDeletionTimestamp() != nil:
			d.Keep = "it is being deleted"
		}
		deleted[r.Name] = d.Keep == ""
		list = append(list, d)
	}
	stays := w.users(class.Namespace, deleted)
	named := map[manifest.Key]bool{}
	for i := range list {
		if list[i].Keep != "" {
			continue
		}
		for _, ref := range References(list[i].Object) {
			key := manifest.Key{GroupKind: ref.Kind.GroupKind(), Name: ref.Name}
			switch by := stays[key]; {
			case len(by) > 0:
				for _, user := range by {
					list[i].Shared = append(list[i].Shared, Shared{ref, user})
				}
			case !named[key]:
				named[key] = true
				list[i].Templates = append(list[i].Templates, ref.String())
			}
		}
		slices.Sort(list[i].Templates)
	}
	return list, nil
}

// find returns the object of a row.
func (w *World) find(r Row) *unstructured.Unstructured {
	for i := range w.Classes {
		if w.Classes[i].GetNamespace() == r.Namespace && w.Classes[i].GetName() == r.Name {
			return &w.Classes[i]
		}
	}
	return nil
}

// users returns the classes of a namespace that are not deleted, by the templates to which they refer.
func (w *World) users(namespace string, deleted map[string]bool) map[manifest.Key][]*unstructured.Unstructured {
	users := map[manifest.Key][]*unstructured.Unstructured{}
	for i := range w.Classes {
		u := &w.Classes[i]
		if u.GetNamespace() != namespace || deleted[u.GetName()] || u.GetDeletionTimestamp() != nil {
			continue
		}
		for _, ref := range References(u) {
			key := manifest.Key{GroupKind: ref.Kind.GroupKind(), Name: ref.Name}
			if !slices.Contains(users[key], u) {
				users[key] = append(users[key], u)
			}
		}
	}
	return users
}
