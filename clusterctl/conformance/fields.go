package conformance

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/version"

	"sigs.k8s.io/cluster-api/sdk/contract"
)

// requirement is a field that the core provider reads or writes in kinds with a name that ends in suffix.
type requirement struct {
	suffix   string
	contract contract.Version
	// path is below the object.
	path string
	// types are the types that the field may have in a schema.
	types []string
	// optional marks a field that a kind may leave out; if it has it, the type must be right.
	optional bool
	// scaled marks a field of control planes that have spec.replicas.
	scaled bool
}

// requirements returns the fields of the contracts.
func requirements() []requirement {
	const old, v1beta2 = contract.V1Beta1, contract.V1Beta2
	flag, text, number, list, object := []string{"boolean"}, []string{"string"}, []string{"integer"}, []string{"array"}, []string{"object"}
	const provisioned, initialized = "status.initialization.provisioned", "status.initialization.controlPlaneInitialized"
	return []requirement{
		{suffix: "Cluster", contract: old, path: "status.ready", types: flag},
		{suffix: "Cluster", contract: old, path: "status.failureDomains", types: object, optional: true},
		{suffix: "Cluster", contract: v1beta2, path: provisioned, types: flag},
		{suffix: "Cluster", contract: v1beta2, path: "status.failureDomains", types: list, optional: true},
		{suffix: "Machine", contract: old, path: "spec.providerID", types: text},
		{suffix: "Machine", contract: old, path: "status.ready", types: flag},
		{suffix: "Machine", contract: v1beta2, path: "spec.providerID", types: text},
		{suffix: "Machine", contract: v1beta2, path: provisioned, types: flag},
		{suffix: "Machine", contract: v1beta2, path: "status.failureDomain", types: text, optional: true},
		{suffix: "MachinePool", contract: old, path: "spec.providerIDList", types: list},
		{suffix: "MachinePool", contract: old, path: "status.ready", types: flag},
		{suffix: "MachinePool", contract: v1beta2, path: "spec.providerIDList", types: list},
		{suffix: "MachinePool", contract: v1beta2, path: provisioned, types: flag},
		{suffix: "Config", contract: old, path: "status.ready", types: flag},
		{suffix: "Config", contract: old, path: "status.dataSecretName", types: text},
		{suffix: "Config", contract: v1beta2, path: "status.initialization.dataSecretCreated", types: flag},
		{suffix: "Config", contract: v1beta2, path: "status.dataSecretName", types: text},
		{suffix: "ControlPlane", contract: old, path: "status.initialized", types: flag},
		{suffix: "ControlPlane", contract: old, path: "status.ready", types: flag},
		{suffix: "ControlPlane", contract: v1beta2, path: initialized, types: flag},
		{suffix: "ControlPlane", contract: v1beta2, path: "status.replicas", types: number, scaled: true},
		{suffix: "ControlPlane", contract: v1beta2, path: "status.readyReplicas", types: number, scaled: true},
		{suffix: "ControlPlane", contract: v1beta2, path: "status.availableReplicas", types: number, scaled: true},
		{suffix: "ControlPlane", contract: v1beta2, path: "status.upToDateReplicas", types: number, scaled: true},
		{suffix: "ControlPlane", contract: v1beta2, path: "status.versions", types: list, optional: true},
		{suffix: "ControlPlane", contract: v1beta2, path: "spec.machineTemplate.spec", types: object, scaled: true},
	}
}

// suffixOf returns the longest end of a kind's name that the core provider refers to.
func (c *checker) suffixOf(kind string) string {
	longest := ""
	for _, s := range suffixes(c.Provider.Type) {
		if strings.HasSuffix(kind, s) && len(s) > len(longest) {
			longest = s
		}
	}
	return longest
}

// fields checks the schemas of a kind, for each contract that its labels have: of the newest version that supports the contract, which
// is the one that the core provider uses.
func (c *checker) fields(d *document, kind string) {
	suffix := c.suffixOf(kind)
	for _, supported := range contracts() {
		label, found := d.GetLabels()[supported.Label()]
		if !found {
			continue
		}
		newest := slices.MaxFunc(strings.Split(label, "_"), version.CompareKubeAwareVersionStrings)
		for i, v := range d.items("spec", "versions") {
			schema, described, _ := unstructured.NestedMap(v, "schema", "openAPIV3Schema")
			if v["name"] != newest || !described {
				continue
			}
			for _, r := range requirements() {
				if r.suffix == suffix && r.contract == supported {
					c.field(d, d.line("spec", "versions", i), newest, r, schema)
				}
			}
		}
	}
}

// field checks one field of a version.
func (c *checker) field(d *document, line int, version string, r requirement, schema map[string]any) {
	if _, scaled := property(schema, "spec.replicas"); r.scaled && scaled == absent {
		return
	}
	typ, state := property(schema, r.path)
	switch {
	case state == open, state == absent && r.optional, state == present && slices.Contains(r.types, typ):
	case state == absent:
		c.add(Error, d.file, line, chapterCRDs, "version %s of %s has no field %s, which contract %s requires",
			version, describe(d), r.path, r.contract)
	default:
		c.add(Error, d.file, line, chapterCRDs, "version %s of %s has the field %s of type %s: in contract %s, it must be %s",
			version, describe(d), r.path, typ, r.contract, strings.Join(r.types, " or "))
	}
}

// presence is what a schema has of a field.
type presence int

const (
	absent presence = iota
	present
	// open means that the schema allows any field at the path.
	open
)

// property returns the type of a field of a schema.
func property(schema map[string]any, path string) (typ string, state presence) {
	for name := range strings.SplitSeq(path, ".") {
		if schema["x-kubernetes-preserve-unknown-fields"] == true {
			state = open
		}
		next, found, _ := unstructured.NestedMap(schema, "properties", name)
		if !found {
			return "", state
		}
		schema = next
	}
	typ, _ = schema["type"].(string)
	return typ, present
}
