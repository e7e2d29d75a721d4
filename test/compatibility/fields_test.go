package compatibility

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// kindKey identifies a kind in one version.
type kindKey struct{ Kind, GroupVersion string }

// field has the properties of a path in a schema that clients or stored objects may depend on.
type field struct {
	Type string
	// Constraints by keyword.
	Constraints map[string]string
	Default     string
	Required    bool
}

// notServed returns kinds of the reference data that no API server serves, and why.
func notServed() map[kindKey]string {
	return map[kindKey]string{
		{"Metadata", "clusterctl.cluster.x-k8s.io/v1alpha3"}: "the format of a provider's metadata.yaml, not of objects",
	}
}

// ourOwn returns fields that no reference has, with all fields below them, and why we need them.
func ourOwn() map[kindKey]map[string]string {
	const zones = "the contract of infrastructure clusters has failure domains; without the field, a cluster has none"
	const zone = "the contract of infrastructure machines has a failure domain; without the field, machines of pools are in none, and are not replaced for it"
	const hosted = "control planes without machines need an API server; without the field, none runs"
	const version = "extensions of v1.7 and of v1.14 are told apart by it; if the field is lost, they are called with v1beta1"
	const initialized = "contract v1beta2 has it; if the field is lost, status.ready has the same, and the manager writes both"
	const registered = "DockerMachines have it; without the field, machines of a control plane wait for their load balancer forever"
	const pruned = "versions are converted by apiVersion alone; without the field, an update by a client of this version removes it"
	const pinned = "an accepted proposal for releases after v1.14 has it; if the field is lost, the workers get the version of the topology"
	workers := map[string]string{"spec.topology.workers.machineDeployments[].version": pinned, "spec.topology.workers.machinePools[].version": pinned}
	return map[kindKey]map[string]string{
		{"Cluster", "cluster.x-k8s.io/v1beta1"}:              workers,
		{"Cluster", "cluster.x-k8s.io/v1beta2"}:              workers,
		{"IPAddressClaim", "ipam.cluster.x-k8s.io/v1alpha1"}: {"spec.clusterName": pruned, "status.v1beta2": pruned},
		{"ExtensionConfig", "runtime.cluster.x-k8s.io/v1alpha1"}: {
			"status.handlers[].payloadVersion": version,
		},
		{"ExtensionConfig", "runtime.cluster.x-k8s.io/v1beta2"}:          {"status.handlers[].payloadVersion": version},
		{"DevMachine", "infrastructure.cluster.x-k8s.io/v1beta1"}:        {"status.loadBalancerConfigured": registered},
		{"DevMachine", "infrastructure.cluster.x-k8s.io/v1beta2"}:        {"status.loadBalancerConfigured": registered},
		{"DevMachinePool", "infrastructure.cluster.x-k8s.io/v1beta2"}:    {"status.initialization": initialized},
		{"DockerMachinePool", "infrastructure.cluster.x-k8s.io/v1beta2"}: {"status.initialization": initialized},
		{"InMemoryCluster", "infrastructure.cluster.x-k8s.io/v1alpha1"}: {
			"status.port":                      "tenants must not be able to decide which cluster a port belongs to; if the field is lost, the oldest cluster has the port",
			"spec.failureDomains":              zones,
			"status.failureDomains":            zones,
			"spec.hostedControlPlane":          hosted,
			"status.hostedControlPlaneVersion": hosted,
			"status.initialization":            initialized,
		},
		{"InMemoryClusterTemplate", "infrastructure.cluster.x-k8s.io/v1alpha1"}: {
			"spec.template.spec.failureDomains":     zones,
			"spec.template.spec.hostedControlPlane": hosted,
		},
		{"InMemoryMachine", "infrastructure.cluster.x-k8s.io/v1alpha1"}: {
			"spec.failureDomain":    zone,
			"status.initialization": initialized,
		},
		{"InMemoryMachineTemplate", "infrastructure.cluster.x-k8s.io/v1alpha1"}: {
			"spec.template.spec.failureDomain": zone,
			"status":                           "the capacity of machines, for scaling from zero; the contract of infrastructure templates has it",
		},
	}
}

// optional returns fields that the reference requires, and that may be absent here, and why. Objects of either are valid for the other.
func optional() map[kindKey]map[string]string {
	return map[kindKey]map[string]string{
		{"ClusterClass", "cluster.x-k8s.io/v1beta1"}: {"spec.variables[].required": "examples of the book leave it out; it is written as false then"},
	}
}

// TestFields compares every path of every schema in both directions: a missing field breaks manifests that use it, a stricter
// one breaks manifests that are valid elsewhere, and an additional one would be lost elsewhere. Versions of v1.7 have its fields and
// those that releases until v1.14 added (additions_test.go); others are those of v1.14.
func TestFields(t *testing.T) {
	reference := supersets(t)
	actual := servedFields(t)
	for key := range actual {
		if _, ok := reference[key]; !ok && !isOurKind(key) {
			t.Errorf("%s of %s is in no reference", key.Kind, key.GroupVersion)
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(reference), compareKeys) {
		if _, ok := notServed()[key]; ok {
			continue
		}
		t.Run(key.Kind+" "+key.GroupVersion, func(t *testing.T) {
			fields, ok := actual[key]
			if !ok {
				t.Fatalf("%s of %s is not served", key.Kind, key.GroupVersion)
			}
			for path := range ourOwn()[key] {
				if fields[path].Required {
					t.Errorf("%s is our own field, so it must not be required", path)
				}
				maps.DeleteFunc(fields, func(other string, _ field) bool { return isBelow(other, path) })
			}
			for path := range optional()[key] {
				f := reference[key][path]
				f.Required = false
				reference[key][path] = f
			}
			if diff := cmp.Diff(reference[key], fields); diff != "" {
				t.Errorf("fields differ (-reference +ours):\n%s", diff)
			}
		})
	}
}

// isBelow reports whether a path is another one, or the path of a field below it.
func isBelow(path, other string) bool {
	rest, ok := strings.CutPrefix(path, other)
	return ok && (rest == "" || strings.ContainsRune(".[{", rune(rest[0])))
}

// compareKeys orders kinds for stable output.
func compareKeys(a, b kindKey) int {
	return strings.Compare(a.GroupVersion+a.Kind, b.GroupVersion+b.Kind)
}

// servedFields returns the fields of every version that our CRDs serve.
func servedFields(t *testing.T) map[kindKey]map[string]field {
	t.Helper()
	return fieldsOf(t, ours(t))
}

// fieldsOf returns the fields of every version that CRDs serve.
func fieldsOf(t *testing.T, definitions map[string]object) map[kindKey]map[string]field {
	t.Helper()
	fields := map[kindKey]map[string]field{}
	for _, definition := range definitions {
		for _, version := range list(definition, "spec", "versions") {
			schema, ok := at(version, "schema", "openAPIV3Schema").(object)
			if !ok {
				t.Fatalf("%s has a version without a schema", text(definition, "metadata", "name"))
			}
			if at(version, "served") != true {
				continue
			}
			key := kindKey{text(definition, "spec", "names", "kind"), text(definition, "spec", "group") + "/" + text(version, "name")}
			fields[key] = map[string]field{}
			collect(fields[key], "", schema, false)
		}
	}
	return fields
}

// collect adds the field at path and all fields below it.
func collect(into map[string]field, path string, schema object, required bool) {
	if path != "" {
		into[path] = describe(schema, required)
	}
	needed := list(schema, "required")
	if properties, ok := schema["properties"].(object); ok {
		for name, property := range properties {
			below := name
			if path != "" {
				below = path + "." + name
			}
			collect(into, below, property.(object), slices.Contains(needed, any(name)))
		}
	}
	if items, ok := schema["items"].(object); ok {
		collect(into, path+"[]", items, false)
	}
	if values, ok := schema["additionalProperties"].(object); ok {
		collect(into, path+"{}", values, false)
	}
}

// describe returns the properties of a schema.
func describe(schema object, required bool) field {
	f := field{Type: text(schema, "type"), Required: required}
	if f.Type == "" {
		f.Type = "any"
		if schema["x-kubernetes-int-or-string"] == true {
			f.Type = "int-or-string"
		}
	}
	if _, isMap := schema["additionalProperties"].(object); isMap && f.Type == "object" {
		f.Type = "map"
	}
	constraints := map[string]string{}
	for _, keyword := range keywords() {
		value, ok := schema[keyword]
		if keyword == "x-kubernetes-list-type" && value == "atomic" {
			// This is the default, which newer Kubernetes types set explicitly.
			continue
		}
		if ok {
			constraints[keyword] = short(value)
		}
	}
	if len(constraints) > 0 {
		f.Constraints = constraints
	}
	if value, ok := schema["default"]; ok {
		f.Default = short(value)
	}
	return f
}

// keywords returns the keywords that constrain values.
func keywords() []string {
	return []string{
		"format", "enum", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength",
		"minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "multipleOf", "nullable",
		"x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type", "x-kubernetes-int-or-string",
		"x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource", "x-kubernetes-validations",
		"anyOf", "oneOf",
	}
}

// short returns strings unchanged, and other values as compact JSON.
func short(value any) string {
	if s, ok := value.(string); ok {
		return s
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Sprint(value)
	}
	return strings.TrimSuffix(out.String(), "\n")
}
