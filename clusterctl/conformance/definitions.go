package conformance

import (
	"slices"
	"strings"

	"github.com/gobuffalo/flect"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/version"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/sdk/contract"
)

// contracts returns the contracts that are checked: those of which the labels of a kind list versions.
func contracts() []contract.Version { return []contract.Version{contract.V1Beta1, contract.V1Beta2} }

// aggregationLabel adds the rules of a ClusterRole to those of the core provider.
const aggregationLabel = "cluster.x-k8s.io/aggregate-to-manager"

// definitions checks the CustomResourceDefinitions.
func (c *checker) definitions(b *bundle) {
	for _, d := range b.documents {
		if d.GetKind() != manifest.KindCRD {
			continue
		}
		group, _, _ := unstructured.NestedString(d.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(d.Object, "spec", "names", "kind")
		if want := flect.Pluralize(strings.ToLower(kind)) + "." + group; d.GetName() != want && !skipsNameCheck(d) {
			c.add(Error, b.file, d.line("metadata", "name"), chapterCRDs,
				"%s of kind %s must be named %s, the name by which controllers find it; or add the annotation %s if no contract refers to the kind",
				describe(d), kind, want, clusterctlv1.SkipCRDNamePreflightCheckAnnotation)
		}
		for _, supported := range contracts() {
			c.versions(d, kind, supported.Label())
		}
		if c.referenced(kind) {
			c.contract(d, kind)
			c.fields(d, kind)
			c.aggregation(b, d, group, kind)
		}
	}
}

// versions checks the label of a contract, if there is one: all versions it lists should be served. The core provider uses the newest one.
func (c *checker) versions(d *document, kind, contractLabel string) {
	label, found := d.GetLabels()[contractLabel]
	if !found {
		return
	}
	served := map[string]bool{}
	for _, v := range d.items("spec", "versions") {
		name, _ := v["name"].(string)
		served[name] = v["served"] == true
	}
	listed := strings.Split(label, "_")
	newest := slices.MaxFunc(listed, version.CompareKubeAwareVersionStrings)
	for _, v := range listed {
		if served[v] {
			continue
		}
		severity := Warning
		if v == newest && c.referenced(kind) {
			severity = Error
		}
		c.add(severity, d.file, d.line("metadata", "labels", contractLabel), chapterCRDs,
			"%s has the label %s: %s, but does not serve the version %q", describe(d), contractLabel, label, v)
	}
}

// suffixes returns the ends of the names of kinds that the core provider refers to.
func suffixes(t clusterctlv1.ProviderType) []string {
	switch t {
	case clusterctlv1.InfrastructureProviderType:
		return []string{"Cluster", "Machine", "MachinePool", "ClusterTemplate", "MachineTemplate", "MachinePoolTemplate"}
	case clusterctlv1.BootstrapProviderType:
		return []string{"Config", "ConfigTemplate"}
	case clusterctlv1.ControlPlaneProviderType:
		return []string{"ControlPlane", "ControlPlaneTemplate"}
	default:
		return nil
	}
}

// referenced reports whether objects of the core provider refer to a kind, by the convention for its name.
func (c *checker) referenced(kind string) bool {
	return slices.ContainsFunc(suffixes(c.Provider.Type), func(s string) bool { return strings.HasSuffix(kind, s) })
}

// contract checks the definition of a kind that the core provider refers to.
func (c *checker) contract(d *document, kind string) {
	if label := c.series.Label(); d.GetLabels()[label] == "" {
		c.add(Error, d.file, d.line("metadata", "labels"), chapterCRDs, "%s needs the label %s: {versions, joined by _}: "+
			"without it, the core provider rejects references to a %s", describe(d), label, kind)
	}
	if scope, _, _ := unstructured.NestedString(d.Object, "spec", "scope"); scope != "Namespaced" {
		c.add(Error, d.file, d.line("spec", "scope"), chapterCRDs, "%s has the scope %s: it must be Namespaced", describe(d), scope)
	}
	if !strings.HasSuffix(kind, "ControlPlane") {
		return
	}
	for i, v := range d.items("spec", "versions") {
		_, replicas, _ := unstructured.NestedMap(v, "schema", "openAPIV3Schema", "properties", "spec", "properties", "replicas")
		_, scale, _ := unstructured.NestedMap(v, "subresources", "scale")
		if replicas && !scale {
			c.add(Error, d.file, d.line("spec", "versions", i), chapterCRDs,
				"version %v of %s has spec.replicas: it must have the subresource scale", v["name"], describe(d))
		}
	}
}

// aggregation checks that the core provider gets access to kinds outside of the groups that it always has access to.
func (c *checker) aggregation(b *bundle, d *document, group, kind string) {
	for _, known := range []string{"infrastructure", "bootstrap", "controlplane"} {
		if group == known+"."+clusterv1.GroupVersion.Group {
			return
		}
	}
	for _, role := range b.documents {
		if role.GetKind() != "ClusterRole" || role.GetLabels()[aggregationLabel] != "true" {
			continue
		}
		for _, rule := range role.items("rules") {
			if slices.Contains(values(rule, "apiGroups"), group) {
				return
			}
		}
	}
	c.add(Error, b.file, d.line("spec", "group"), chapterRBAC, "the core provider has no access to %s in group %s: "+
		"add a ClusterRole for the group with the label %s: \"true\"", kind, group, aggregationLabel)
}
