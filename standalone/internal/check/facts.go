package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// facts are what is noted of the objects of a management cluster while they are copied.
type facts struct {
	// providers are such as "cluster-api v1.7.0".
	providers []string
	// kinds are the kinds of definitions, by GROUP/PLURAL.
	kinds map[string]string
	// storing are the names of definitions by the versions that they store and serve, and several those that may store several versions.
	storing map[string][]string
	several []string
	// contracts are the kinds of providers by the versions of the contract that they support.
	contracts map[string][]string
	// notConverted are the kinds whose objects are converted by managers that do not run in the copy.
	notConverted []string
	// managers are how many objects each manager of fields has written.
	managers map[string]int
	// unknown are fields that our API does not have, with objects that have them.
	unknown map[string][]string
	// clusters are the names of the Clusters.
	clusters map[types.NamespacedName]bool
	// extensions are the ExtensionConfigs, and external the classes with patches of extensions. classes are those of the Clusters.
	extensions []string
	external   map[types.NamespacedName]bool
	classes    map[types.NamespacedName]types.NamespacedName
}

func newFacts() *facts {
	return &facts{
		kinds: map[string]string{}, storing: map[string][]string{}, contracts: map[string][]string{}, managers: map[string]int{},
		unknown: map[string][]string{}, clusters: map[types.NamespacedName]bool{}, external: map[types.NamespacedName]bool{},
		classes: map[types.NamespacedName]types.NamespacedName{},
	}
}

// definition notes a definition.
func (f *facts) definition(d definition) {
	f.kinds[d.Spec.Group+"/"+d.Spec.Names.Plural] = d.Spec.Names.Kind
	var served []string
	for _, v := range d.Spec.Versions {
		if v.Served {
			served = append(served, v.Name)
		}
	}
	how := "stores " + stored(d.CustomResourceDefinition) + ", serves " + strings.Join(served, " and ")
	f.storing[how] = append(f.storing[how], d.Name)
	if len(d.Status.StoredVersions) > 1 {
		f.several = append(f.several, fmt.Sprintf("%s (%s)", d.Name, strings.Join(d.Status.StoredVersions, ", ")))
	}
	for _, contract := range []string{"v1beta2", "v1beta1"} {
		if d.Labels[domain+"/"+contract] != "" {
			f.contracts[contract] = append(f.contracts[contract], d.Spec.Names.Kind)
			return
		}
	}
}

// unconverted notes a definition whose objects are not converted in the copy.
func (f *facts) unconverted(d definition) {
	f.notConverted = append(f.notConverted, fmt.Sprintf("%s (in %s)", d.Name, d.version))
}

// object notes a custom resource.
func (f *facts) object(o *unstructured.Unstructured) {
	for _, e := range o.GetManagedFields() {
		f.managers[e.Manager+" ("+string(e.Operation)+")"]++
	}
	key := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
	switch o.GetKind() {
	case "Provider":
		name, _, _ := unstructured.NestedString(o.Object, "providerName")
		kind, _, _ := unstructured.NestedString(o.Object, "type")
		version, _, _ := unstructured.NestedString(o.Object, "version")
		f.providers = append(f.providers, fmt.Sprintf("%s %s %s", kind, name, version))
	case "Cluster":
		if o.GroupVersionKind().Group == domain {
			f.cluster(key, o)
		}
	case "ClusterClass":
		patches, _, _ := unstructured.NestedSlice(o.Object, "spec", "patches")
		if slices.ContainsFunc(patches, func(p any) bool { patch, _ := p.(map[string]any); return patch["external"] != nil }) {
			f.external[key] = true
		}
	case "ExtensionConfig":
		f.extensions = append(f.extensions, o.GetName())
	}
	for _, field := range unknownFields(o) {
		field = o.GetKind() + " " + field
		f.unknown[field] = append(f.unknown[field], key.String())
	}
}

// cluster notes a Cluster and its class.
func (f *facts) cluster(key types.NamespacedName, o *unstructured.Unstructured) {
	f.clusters[key] = true
	class := types.NamespacedName{Namespace: key.Namespace}
	for _, path := range [][]string{{"spec", "topology", "class"}, {"spec", "topology", "classRef", "name"}} {
		if name, ok, _ := unstructured.NestedString(o.Object, path...); ok {
			class.Name = name
		}
	}
	for _, path := range [][]string{{"spec", "topology", "classNamespace"}, {"spec", "topology", "classRef", "namespace"}} {
		if namespace, ok, _ := unstructured.NestedString(o.Object, path...); ok && namespace != "" {
			class.Namespace = namespace
		}
	}
	if class.Name != "" {
		f.classes[key] = class
	}
}

// index is the index of an element in a path.
var index = regexp.MustCompile(`\[\d+\]`)

// unknownFields returns the paths of the fields of an object that the Go type of its kind does not have.
func unknownFields(o *unstructured.Unstructured) []string {
	typed, err := conversion.Shared().NewObject(o.GroupVersionKind())
	if err != nil {
		return nil
	}
	if _, isTree := typed.(runtime.Unstructured); isTree {
		return nil
	}
	err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, typed, true)
	strict, ok := runtime.AsStrictDecodingError(err)
	if !ok {
		return nil
	}
	found := map[string]bool{}
	for _, e := range strict.Errors() {
		if quoted, ok := strings.CutPrefix(e.Error(), "unknown field "); ok {
			var path string
			if json.Unmarshal([]byte(quoted), &path) == nil {
				found[index.ReplaceAllString(path, "[]")] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}
