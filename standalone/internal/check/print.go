package check

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/clusterctl/takeover/difference"
)

// JSON writes all of a result.
func (r *Result) JSON(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// Text writes a result for people: created and deleted objects by name, changes by field over all objects, notes, and one line that sums
// up.
func (r *Result) Text(out io.Writer) error {
	var text strings.Builder
	for _, effect := range []difference.Effect{difference.Deleted, difference.Created} {
		for _, w := range r.Writes {
			if w.Effect == effect {
				fmt.Fprintf(&text, "%s %s %s\n", effect, w.Kind, w.fullName())
			}
		}
	}
	for _, g := range r.groups() {
		fmt.Fprintf(&text, "%d %s  %s  (%s)\n", len(g.names), plural(g.kind, len(g.names)), g.change, some(g.names))
	}
	for _, request := range r.WorkloadClusters {
		fmt.Fprintf(&text, "workload cluster %s\n", request)
	}
	for _, f := range r.Failed {
		fmt.Fprintf(&text, "not reconciled: %s %s: %s\n", f.Controller, types.NamespacedName{Namespace: f.Namespace, Name: f.Name}, f.Error)
	}
	if text.Len() > 0 {
		text.WriteString("\n")
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&text, "note: %s: %s\n", n.About, n.Text)
	}
	if len(r.Notes) > 0 {
		text.WriteString("\n")
	}
	fmt.Fprintf(&text, "%d Clusters, %d objects: %d writes, %d Machines created or deleted, %d notes\n",
		r.Clusters, r.Objects, len(r.Writes)+len(r.WorkloadClusters), r.Machines(), len(r.Notes))
	if n := len(r.Failed); n > 0 {
		fmt.Fprintf(&text, "%d objects could not be reconciled: what else would be written to them, and to what they own, is open\n", n)
	}
	_, err := io.WriteString(out, text.String())
	return err
}

func (w Write) fullName() string {
	if w.Namespace == "" {
		return w.Name
	}
	return w.Namespace + "/" + w.Name
}

// group is one change of several objects of a kind.
type group struct {
	kind, change string
	names        []string
}

// groups returns the changes of fields, by kind and field.
func (r *Result) groups() []group {
	var all []group
	add := func(w Write, change string) {
		at := slices.IndexFunc(all, func(g group) bool { return g.kind == w.Kind && g.change == change })
		if at < 0 {
			all, at = append(all, group{kind: w.Kind, change: change}), len(all)
		}
		all[at].names = append(all[at].names, w.fullName())
	}
	for _, w := range r.Writes {
		for _, field := range w.Fields {
			add(w, field)
		}
		if len(w.Managers) > 0 {
			names := make([]string, 0, len(w.Managers))
			for _, m := range w.Managers {
				names = append(names, strings.TrimSpace(m))
			}
			add(w, "only managed fields of "+strings.Join(names, ", "))
		}
	}
	slices.SortFunc(all, func(a, b group) int {
		return cmp.Or(strings.Compare(a.kind, b.kind), strings.Compare(path(a.change), path(b.change)), strings.Compare(a.change, b.change))
	})
	return all
}

// path is what changes are sorted by.
func path(change string) string { return change[min(2, len(change)):] }

// plural returns the name of a kind for a number of objects.
func plural(kind string, n int) string {
	switch {
	case n == 1:
		return kind
	case strings.HasSuffix(kind, "s"):
		return kind + "es"
	case strings.HasSuffix(kind, "y"):
		return strings.TrimSuffix(kind, "y") + "ies"
	}
	return kind + "s"
}
