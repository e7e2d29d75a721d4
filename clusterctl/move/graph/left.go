package graph

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

var configMap = schema.GroupKind{Kind: "ConfigMap"}

// Left is an object that is not moved.
type Left struct {
	Key
	// Why is a reason to believe that it is needed where the other objects go; empty if there is none.
	Why string
}

// LeftBehind returns the Secrets and ConfigMaps of a namespace that are not in the graph: first those that something suggests are
// needed, because they have the label of a moved Cluster, or because a moved object names them. Of other kinds, it returns only objects
// without an owner that a moved object names, such as the template of a MachineHealthCheck for remediation by its provider, or that name a
// moved Cluster.
func LeftBehind(objects []Object, g *Graph, namespace string) []Left {
	moved, named := map[Key]bool{}, map[Key]string{}
	for _, n := range g.Nodes {
		moved[n.Key()] = true
	}
	for _, n := range g.Nodes {
		if n.GetNamespace() != namespace || n.Kind.GroupKind() == secret || n.Kind.GroupKind() == configMap {
			continue
		}
		r := &references{namespace: namespace, found: func(k Key) {
			if named[k] == "" {
				named[k] = "the spec of " + n.Key().String() + " names it"
			}
		}}
		r.walk("", n.Unstructured.Object["spec"])
	}
	var list []Left
	for _, o := range objects {
		kind, why := o.Kind.GroupKind(), named[o.Key()]
		if o.GetNamespace() != namespace || moved[o.Key()] || o.GetName() == "kube-root-ca.crt" {
			continue
		}
		if kind != secret && kind != configMap {
			if of := ofCluster(o); why == "" && moved[of] {
				why = "its spec.clusterName is that of " + of.String()
			}
			if why == "" || o.Shared || len(o.GetOwnerReferences()) > 0 {
				continue
			}
		}
		label := types.NamespacedName{Namespace: namespace, Name: o.GetLabels()[clusterv1.ClusterNameLabel]}
		owner := Key{GroupKind: cluster, NamespacedName: label}
		if moved[owner] {
			why = "it has the label " + clusterv1.ClusterNameLabel + " of " + owner.String()
		}
		list = append(list, Left{Key: o.Key(), Why: why})
	}
	slices.SortFunc(list, func(a, b Left) int {
		order := func(l Left) int { return min(1, len(l.Why)) }
		return cmp.Or(cmp.Compare(order(b), order(a)), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// ofCluster returns the key of the Cluster that an object belongs to by its spec.
func ofCluster(o Object) Key {
	name, _, _ := unstructured.NestedString(o.Unstructured.Object, "spec", "clusterName")
	return Key{GroupKind: cluster, NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}
}

// references finds the names of objects in a spec, whatever kind it is of: by a field "kind", and the group beside it, or of Secrets and
// ConfigMaps by the name of a field. It may find too many.
type references struct {
	namespace string
	found     func(Key)
}

func (r *references) walk(field string, value any) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			r.walk(field, item)
		}
	case string:
		if kind, ok := kindOf(field); ok && strings.HasSuffix(strings.ToLower(field), "name") {
			r.report(kind, v)
		}
	case map[string]any:
		r.object(field, v)
		for key, child := range v {
			r.walk(key, child)
		}
	}
}

func (r *references) object(field string, object map[string]any) {
	name, _ := object["name"].(string)
	if namespace, _ := object["namespace"].(string); name == "" || namespace != "" && namespace != r.namespace {
		return
	}
	switch kind := object["kind"].(type) {
	case string:
		switch kind {
		case secret.Kind:
			r.report(secret, name)
		case configMap.Kind:
			r.report(configMap, name)
		default:
			r.report(schema.GroupKind{Group: groupOf(object), Kind: kind}, name)
		}
	case nil:
		if kind, ok := kindOf(field); ok {
			r.report(kind, name)
		}
	}
}

// groupOf returns the group of a reference.
func groupOf(object map[string]any) string {
	if group, ok := object["apiGroup"].(string); ok {
		return group
	}
	version, _ := object["apiVersion"].(string)
	return schema.FromAPIVersionAndKind(version, "").Group
}

func (r *references) report(kind schema.GroupKind, name string) {
	r.found(Key{GroupKind: kind, NamespacedName: types.NamespacedName{Namespace: r.namespace, Name: name}})
}

// kindOf returns the kind that the name of a field speaks of.
func kindOf(field string) (schema.GroupKind, bool) {
	field = strings.ToLower(field)
	switch {
	case strings.Contains(field, "secret"), strings.Contains(field, "credentials"):
		return secret, true
	case strings.Contains(field, "configmap"):
		return configMap, true
	}
	return schema.GroupKind{}, false
}
