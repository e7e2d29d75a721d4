package tree

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ReferenceName returns how kubectl writes and accepts the name of an object with --output name, such as cluster.cluster.x-k8s.io/c1.
func ReferenceName(apiVersion, kind, name string) string {
	group := schema.FromAPIVersionAndKind(apiVersion, kind).Group
	return strings.TrimSuffix(strings.ToLower(kind)+"."+group, ".") + "/" + name
}

// Names returns the names of a tree's objects, each once, in the order of the tree. Nodes that stand for a group have none.
func Names(n *Node) []string {
	var list []string
	if n.APIVersion != "" && len(n.Group) == 0 {
		list = append(list, ReferenceName(n.APIVersion, n.Kind, n.Name))
	}
	for _, child := range n.Children {
		for _, name := range Names(child) {
			if !slices.Contains(list, name) {
				list = append(list, name)
			}
		}
	}
	return list
}

// WriteNames writes one name per line, each once.
func WriteNames(w io.Writer, names []string) error {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			continue
		}
		if _, err := fmt.Fprintln(w, name); err != nil {
			return err
		}
	}
	return nil
}
