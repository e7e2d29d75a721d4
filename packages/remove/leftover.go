package remove

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/live"
)

// Leftovers returns an entry for each provider that is not installed, but has objects, such as CustomResourceDefinitions and a Namespace
// that were kept when it was deleted; one per namespace. present reports whether the provider with a label is installed or declared.
// Objects whose label is of no type of provider are not among them.
func Leftovers(found live.Objects, present func(label string) bool) []clusterctlv1.Provider {
	var entries []clusterctlv1.Provider
	for _, label := range slices.Sorted(maps.Keys(found)) {
		t, name, ok := identify(label)
		if !ok || present(label) {
			continue
		}
		namespaces := map[string]bool{}
		for i := range found[label] {
			if o := &found[label][i]; o.GetKind() == "Namespace" {
				namespaces[o.GetName()] = true
			} else if o.GetNamespace() != "" {
				namespaces[o.GetNamespace()] = true
			}
		}
		if len(namespaces) == 0 {
			namespaces[""] = true
		}
		for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
			entries = append(entries, clusterctlv1.Provider{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: label}, Type: string(t), ProviderName: name,
			})
		}
	}
	return entries
}

// identify returns the type and name of the provider with a label.
func identify(label string) (clusterctlv1.ProviderType, string, bool) {
	for _, t := range packages.Types() {
		prefix := strings.TrimSuffix(clusterctlv1.ManifestLabel("x", t), "x")
		if name, ok := strings.CutPrefix(label, prefix); ok && prefix != "" && name != "" {
			return t, name, true
		}
	}
	return clusterctlv1.CoreProviderType, label, label == clusterctlv1.ClusterAPIProviderName
}
