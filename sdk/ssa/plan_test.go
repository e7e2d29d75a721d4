package ssa

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// machineCRD has what the tables need: a default, a list that merges by key, a set, an atomic list, a status.
const machineCRD = `
metadata: {name: machines.ssa.test}
spec:
  group: ssa.test
  scope: Namespaced
  names: {kind: Machine, plural: machines, singular: machine, listKind: MachineList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          status: {type: object, properties: {ready: {type: boolean}}}
          spec:
            type: object
            properties:
              size: {type: string}
              replicas: {type: integer, default: 1}
              maybe: {type: string, nullable: true}
              ref: {type: object, x-kubernetes-map-type: atomic, properties: {name: {type: string}, uid: {type: string}}}
              endpoint: {type: object, properties: {host: {type: string}, port: {type: integer}}}
              zones: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              taints: {type: array, items: {type: object, properties: {key: {type: string}, effect: {type: string, default: NoSchedule}}}}
              disks:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties:
                    name: {type: string}
                    gigabytes: {type: integer}
                    options: {type: object, additionalProperties: {type: string}}
              labels: {type: object, additionalProperties: {type: object, additionalProperties: {type: string}}}
              needed:
                type: object
                properties: {inner: {type: object, properties: {x: {type: integer}}}}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
  - name: v2
    served: true
    storage: false
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

func definition(t testing.TB, text string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(text), crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

func machineSchema(t testing.TB) *kindSchema {
	t.Helper()
	s, err := newKindSchema(definition(t, machineCRD), "v1")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const head = "apiVersion: ssa.test/v1\nkind: Machine\n"

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	encoded, err := yaml.YAMLToJSON([]byte(head + text))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(encoded); err != nil {
		t.Fatal(err)
	}
	return u
}

// live is an object that was applied as ours and whose size is owned by someone else too.
const live = `
metadata:
  name: m
  namespace: ns
  uid: u1
  resourceVersion: "7"
  creationTimestamp: "2024-01-01T00:00:00Z"
  labels: {ours: a, foreign: b}
  managedFields:
  - {manager: ours, operation: Apply, apiVersion: ssa.test/v1, fieldsType: FieldsV1, time: "2024-01-01T00:00:00Z", fieldsV1: {
      "f:metadata": {"f:labels": {"f:ours": {}}},
      "f:spec": {"f:size": {}, "f:zones": {'v:"z1"': {}, 'v:"z2"': {}}, "f:taints": {}, "f:disks": {'k:{"name":"root"}': {".": {}, "f:name": {}, "f:gigabytes": {}}}}}}
  - {manager: other, operation: Apply, apiVersion: ssa.test/v1, fieldsType: FieldsV1, fieldsV1: {
      "f:metadata": {"f:labels": {"f:foreign": {}}}, "f:spec": {"f:size": {}, "f:disks": {'k:{"name":"data"}': {".": {}, "f:name": {}, "f:gigabytes": {}}}}}}
  - {manager: ours, operation: Update, apiVersion: ssa.test/v1, subresource: status, fieldsType: FieldsV1, fieldsV1: {"f:status": {"f:ready": {}}}}
spec:
  size: big
  replicas: 3
  zones: [z1, z2]
  taints: [{key: t, effect: NoSchedule}]
  disks: [{name: root, gigabytes: 10}, {name: data, gigabytes: 100}]
status: {ready: true}
`

const applied = `
metadata: {name: m, namespace: ns, labels: {ours: a}}
spec: {size: big, zones: [z1, z2], taints: [{key: t}], disks: [{name: root, gigabytes: 10}]}
`

// plan computes what an apply by a manager would change.
func plan(s *kindSchema, live, desired *unstructured.Unstructured, manager string, opts ...Option) (Diff, error) {
	c, err := newComparison(s, live, desired, manager, opts)
	if err != nil {
		return Diff{}, err
	}
	return c.plan()
}

func TestPlan(t *testing.T) {
	tests := []struct {
		reason  string
		live    string
		desired string
		want    Diff
	}{
		{"no object", "", applied, Diff{Create: true}},
		{"the same again; defaults and others' fields do not count", live, applied, Diff{}},
		{"what an apply cannot set does not count", live, strings.Replace(applied, "name: m,",
			"name: m, creationTimestamp: null, resourceVersion: '1', generation: 9, annotations: {}, finalizers: [],", 1) + "status: {ready: false}", Diff{}},
		{"null is absent where it is not allowed", live, strings.Replace(applied, "size: big", "size: big, replicas: null", 1), Diff{}},
		{"null is a value where it is allowed", live, strings.Replace(applied, "size: big", "size: big, maybe: null", 1),
			Diff{Spec: []string{".spec.maybe"}, Ownership: true}},
		{"another value", live, strings.Replace(applied, "gigabytes: 10", "gigabytes: 20", 1),
			Diff{Spec: []string{`.spec.disks[name="root"].gigabytes`}}},
		{"another manager loses a value that it owns, too", live, strings.Replace(applied, "size: big", "size: small", 1),
			Diff{Spec: []string{".spec.size"}, Ownership: true}},
		{"owning a field that already has the value changes no fields", live, strings.Replace(applied, "size: big", "size: big, replicas: 3", 1),
			Diff{Ownership: true}},
		{"owning a field besides others is not worth a write", strings.Replace(live, `"f:size": {}, "f:disks": {'k:{"name":"data"}'`, `"f:size": {}, "f:replicas": {}, "f:disks": {'k:{"name":"data"}'`, 1), strings.Replace(applied, "size: big", "size: big, replicas: 3", 1),
			Diff{}},
		{"no longer applied: removed", live, strings.Replace(applied, "zones: [z1, z2]", "zones: [z1]", 1),
			Diff{Spec: []string{`.spec.zones[="z2"]`}, Ownership: true}},
		{"no longer applied, but another manager does", live, strings.Replace(applied, "size: big, ", "", 1), Diff{Ownership: true}},
		{"a label, and nothing else", live, strings.Replace(applied, "ours: a", "ours: c", 1), Diff{Metadata: []string{".metadata.labels.ours"}}},
		{"a label is removed", live, strings.Replace(applied, ", labels: {ours: a}", "", 1),
			Diff{Metadata: []string{".metadata.labels.ours"}, Ownership: true}},
		{"a list that merges as a whole", live, strings.Replace(applied, "taints: [{key: t}]", "taints: [{key: t}, {key: u}]", 1),
			Diff{Spec: []string{".spec.taints"}}},
		{"a set in another order is written in that order", live, strings.Replace(applied, "zones: [z1, z2]", "zones: [z2, z1]", 1), Diff{Spec: []string{".spec"}}},
		{"a new owner", live, strings.Replace(applied, "name: m,", "name: m, ownerReferences: [{apiVersion: v1, kind: K, name: o, uid: u}],", 1),
			Diff{Metadata: []string{`.metadata.ownerReferences[uid="u"]`}, Ownership: true}},
		{"a manager's first apply owns at least", strings.Replace(live, "manager: ours, operation: Apply", "manager: older, operation: Apply", 1), applied,
			Diff{Ownership: true}},
		{"an entry from another version is rewritten", strings.Replace(live, "manager: ours, operation: Apply, apiVersion: ssa.test/v1", "manager: ours, operation: Apply, apiVersion: ssa.test/v0", 1), applied,
			Diff{Ownership: true}},
		{"nothing owned before and nothing after", "metadata: {name: m, namespace: ns}", "metadata: {name: m, namespace: ns}", Diff{}},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			var l *unstructured.Unstructured
			if tc.live != "" {
				l = object(t, tc.live)
			}
			desired := object(t, tc.desired)
			got, err := plan(machineSchema(t), l, desired, "ours")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if got.Changed() != (diffString(tc.want) != diffString(Diff{})) {
				t.Errorf("Changed is %t for %+v", got.Changed(), got)
			}
			if diff := cmp.Diff(object(t, tc.desired).Object, desired.Object); diff != "" {
				t.Errorf("Plan changed what is desired (-before +after):\n%s", diff)
			}
			if l != nil && !cmp.Equal(object(t, tc.live).Object, l.Object) {
				t.Error("Plan changed the live object")
			}
		})
	}
}

func diffString(d Diff) string { return cmp.Diff(Diff{}, d) }

func TestPlanRejects(t *testing.T) {
	tests := []struct {
		reason  string
		live    string
		desired string
		want    string
	}{
		{"a field that the schema does not have", live, strings.Replace(applied, "size: big", "sise: big", 1), "Machine ns/m does not fit its schema: .spec.sise: field not declared in schema"},
		{"a value of another type", live, strings.Replace(applied, "size: big", "size: [big]", 1), "does not fit its schema"},
		{"the same item twice", live, strings.Replace(applied, "zones: [z1, z2]", "zones: [z1, z1]", 1), "does not fit its schema"},
		{"another object", live, strings.Replace(applied, "name: m,", "name: x,", 1), "Machine ns/m cannot be compared: the object to apply is ns/x"},
		{"another version", live, applied + "apiVersion: ssa.test/v2", "the schema is for ssa.test/v1, Kind=Machine"},
		{"a live object of another version", live + "\napiVersion: ssa.test/v2", applied, "read it in that version"},
		{"ownership that cannot be read", strings.Replace(live, `"f:size"`, `"size"`, 1), applied, "managedFields of ours"},
		{"a live object from before the schema", strings.Replace(live, "size: big", "size: {cpu: 1}", 1), applied, "Machine ns/m cannot be compared"},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			_, err := plan(machineSchema(t), last(t, tc.live), last(t, tc.desired), "ours")
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want one with %q", err, tc.want)
			}
		})
	}
}

// last is object for texts that end with another apiVersion.
func last(t *testing.T, text string) *unstructured.Unstructured {
	body, version, _ := strings.Cut(text, "apiVersion: ssa.test/v2")
	u := object(t, body)
	if strings.Contains(text, "apiVersion: ssa.test/v2") {
		u.SetAPIVersion("ssa.test/v2" + version)
	}
	return u
}

func TestPlanRejectsInvalidJSON(t *testing.T) {
	desired := object(t, applied)
	desired.Object["spec"].(map[string]any)["disks"] = []any{map[string]any{"name": struct{}{}}}
	_, err := plan(machineSchema(t), nil, desired, "ours")
	if err == nil || !strings.Contains(err.Error(), "field .spec.disks[0].name is a struct {}") {
		t.Errorf("error is %v, want one that names the field", err)
	}
}

func TestPlanTakesGoNumbers(t *testing.T) {
	desired := object(t, applied)
	disk := desired.Object["spec"].(map[string]any)["disks"].([]any)[0].(map[string]any)
	for _, ten := range []any{int(10), int32(10), int64(10), float64(10)} {
		disk["gigabytes"] = ten
		if got, err := plan(machineSchema(t), object(t, live), desired, "ours"); err != nil || got.Changed() {
			t.Errorf("%T: %+v, error %v; want no change", ten, got, err)
		}
	}
}

func TestLeaveZero(t *testing.T) {
	const (
		created = `
metadata: {name: m, namespace: ns, managedFields: [{manager: ours, operation: Apply, apiVersion: ssa.test/v1, fieldsV1: {"f:spec": {"f:size": {}, "f:endpoint": {"f:host": {}, "f:port": {}}}}}]}
spec: {size: big, replicas: 1, endpoint: {host: "", port: 0}}`
		taken = `
metadata: {name: m, namespace: ns, managedFields: [
  {manager: ours, operation: Apply, apiVersion: ssa.test/v1, fieldsV1: {"f:spec": {"f:size": {}}}},
  {manager: provider, operation: Update, apiVersion: ssa.test/v1, fieldsV1: {"f:spec": {"f:endpoint": {"f:host": {}, "f:port": {}}}}}]}
spec: {size: big, replicas: 1, endpoint: {host: lb, port: 6443}}`
		half = `
metadata: {name: m, namespace: ns, managedFields: [
  {manager: ours, operation: Apply, apiVersion: ssa.test/v1, fieldsV1: {"f:spec": {"f:size": {}, "f:endpoint": {"f:port": {}}}}},
  {manager: provider, operation: Update, apiVersion: ssa.test/v1, fieldsV1: {"f:spec": {"f:endpoint": {"f:host": {}}}}}]}
spec: {size: big, replicas: 1, endpoint: {host: lb, port: 0}}`
		zeroes = "metadata: {name: m, namespace: ns}\nspec: {size: big, endpoint: {host: '', port: 0}}"
		set    = "metadata: {name: m, namespace: ns}\nspec: {size: big, endpoint: {host: mine, port: 0}}"
		absent = "metadata: {name: m, namespace: ns}\nspec: {size: big}"
	)
	tests := []struct {
		reason  string
		live    string
		desired string
		want    Diff
		exact   bool
	}{
		{"not set yet: they are kept as created", created, zeroes, Diff{}, true},
		{"the provider has set them: they are kept", taken, zeroes, Diff{}, false},
		{"the provider has set one of them", half, zeroes, Diff{}, true},
		{"desired has a value: it wins", taken, set, Diff{Spec: []string{".spec.endpoint.host"}, Ownership: true}, false},
		{"desired does not have them", taken, absent, Diff{}, false},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			opt := LeaveZero([]string{"spec", "endpoint", "host"}, []string{"spec", "endpoint", "port"})
			got, err := plan(machineSchema(t), object(t, tc.live), object(t, tc.desired), "ours", opt)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			c, err := newComparison(machineSchema(t), object(t, tc.live), object(t, tc.desired), "ours", []Option{opt})
			if err != nil {
				t.Fatal(err)
			}
			if c.exact != tc.exact {
				t.Errorf("a request needs the object as it was read: %t, want %t", c.exact, tc.exact)
			}
		})
	}
}

func TestKeepReferences(t *testing.T) {
	const is = `
metadata: {name: m, namespace: ns, managedFields: [{manager: ours, operation: Apply, apiVersion: ssa.test/v1, fieldsV1: {"f:spec": {"f:ref": {}}}}]}
spec: {replicas: 1, ref: {name: a, uid: u}}`
	for _, tc := range []struct {
		reason  string
		desired string
		want    Diff
	}{
		{"the same object: it keeps what it has", "{name: a}", Diff{}},
		{"all of it", "{name: a, uid: u}", Diff{}},
		{"another object", "{name: b}", Diff{Spec: []string{".spec.ref"}}},
		{"another one of that name", "{name: a, uid: v}", Diff{Spec: []string{".spec.ref"}}},
		{"empty", "{}", Diff{Spec: []string{".spec.ref"}}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			desired := object(t, "metadata: {name: m, namespace: ns}\nspec: {ref: "+tc.desired+"}")
			got, err := plan(machineSchema(t), object(t, is), desired, "ours", KeepReferences([]string{"spec", "ref"}, []string{"spec", "other"}))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}
