package revision

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"sigs.k8s.io/cluster-api/packages/manifest"
)

// shop is a class with two templates, and an object that is neither.
const shop = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata:
  name: shop
  labels: {team: blue}
spec:
  infrastructure:
    templateRef: {apiVersion: infra.example/v1, kind: CloudTemplate, name: cloud}
  controlPlane:
    templateRef: {apiVersion: cp.example/v1, kind: PlaneTemplate, name: elsewhere}
    healthCheck:
      remediation: {templateRef: {apiVersion: fix.example/v1, kind: FixTemplate, name: fix}}
  workers:
    machineDeployments:
    - class: worker
      infrastructure:
        templateRef: {apiVersion: infra.example/v1, kind: HostTemplate, name: host}
  variables:
  - name: ref
    schema: {openAPIV3Schema: {type: object, default: {ref: {apiVersion: infra.example/v1, kind: HostTemplate, name: host}}}}
  patches:
  - name: hosts
    definitions:
    - selector: {apiVersion: infra.example/v1, kind: HostTemplate, matchResources: {machineDeploymentClass: {names: [worker]}}}
      jsonPatches: [{op: add, path: /spec/template/spec/size, value: 1.5e3}]
---
{apiVersion: infra.example/v1, kind: CloudTemplate, metadata: {name: cloud}, spec: {template: {spec: {size: 4, zone: null}}}}
---
{apiVersion: infra.example/v1, kind: HostTemplate, metadata: {name: host, annotations: {a: b}}, spec: {template: {spec: {}}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}
`

// oldShop is a class in v1beta1.
const oldShop = `
apiVersion: cluster.x-k8s.io/v1beta1
kind: ClusterClass
metadata: {name: shop, namespace: ns}
spec:
  infrastructure: {ref: {apiVersion: infra.example/v1alpha1, kind: CloudTemplate, name: cloud, namespace: ns}}
  controlPlane:
    ref: {apiVersion: infra.example/v1, kind: CloudTemplate, name: cloud}
    machineInfrastructure: {ref: {apiVersion: infra.example/v1, kind: HostTemplate, name: host}}
    machineHealthCheck: {remediationTemplate: {apiVersion: infra.example/v1, kind: HostTemplate, name: host}}
  workers:
    machinePools:
    - {class: p, template: {bootstrap: {ref: {apiVersion: infra.example/v1, kind: HostTemplate, name: host}}}}
---
{apiVersion: infra.example/v1, kind: CloudTemplate, metadata: {name: cloud, namespace: ns}, spec: {size: 1}}
---
{apiVersion: infra.example/v1, kind: HostTemplate, metadata: {name: host}}
`

func parse(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := manifest.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var list []*unstructured.Unstructured
	for i := range objects {
		list = append(list, &objects[i])
	}
	return list
}

func publish(t *testing.T, text string, o Options) *Published {
	t.Helper()
	p, err := Publish(parse(t, text), o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func format(t *testing.T, p *Published) string {
	t.Helper()
	var list []unstructured.Unstructured
	for _, u := range p.Objects {
		list = append(list, *u)
	}
	text, err := manifest.Format(list)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPublish also pins the names: what is in repositories must get the same ones from later versions.
func TestPublish(t *testing.T) {
	want := `apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata:
  annotations:
    fleet.cluster.x-k8s.io/revision-of: shop
  labels:
    fleet.cluster.x-k8s.io/class: shop
    team: blue
  name: shop-pj8cfzwfqn
  namespace: ns
spec:
  controlPlane:
    healthCheck:
      remediation:
        templateRef:
          apiVersion: fix.example/v1
          kind: FixTemplate
          name: fix
    templateRef:
      apiVersion: cp.example/v1
      kind: PlaneTemplate
      name: elsewhere
  infrastructure:
    templateRef:
      apiVersion: infra.example/v1
      kind: CloudTemplate
      name: cloud-f79wwpvdf5
  patches:
  - definitions:
    - jsonPatches:
      - op: add
        path: /spec/template/spec/size
        value: 1500
      selector:
        apiVersion: infra.example/v1
        kind: HostTemplate
        matchResources:
          machineDeploymentClass:
            names:
            - worker
    name: hosts
  variables:
  - name: ref
    schema:
      openAPIV3Schema:
        default:
          ref:
            apiVersion: infra.example/v1
            kind: HostTemplate
            name: host
        type: object
  workers:
    machineDeployments:
    - class: worker
      infrastructure:
        templateRef:
          apiVersion: infra.example/v1
          kind: HostTemplate
          name: host-g69srkvdqs
---
apiVersion: infra.example/v1
kind: CloudTemplate
metadata:
  annotations:
    fleet.cluster.x-k8s.io/revision-of: cloud
  name: cloud-f79wwpvdf5
  namespace: ns
spec:
  template:
    spec:
      size: 4
      zone: null
---
apiVersion: infra.example/v1
kind: HostTemplate
metadata:
  annotations:
    a: b
    fleet.cluster.x-k8s.io/revision-of: host
  name: host-g69srkvdqs
  namespace: ns
spec:
  template:
    spec: {}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: other
`
	if diff := cmp.Diff(want, format(t, publish(t, shop, Options{Namespace: "ns", KeepMissing: true}))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// names returns the names of classes and templates.
func (p *Published) names() []string {
	var list []string
	for _, u := range append(append([]*unstructured.Unstructured{}, p.Classes...), p.Templates...) {
		list = append(list, u.GetName())
	}
	return list
}

func TestSameNames(t *testing.T) {
	replaced := func(from, to string) string {
		if !strings.Contains(shop, from) {
			t.Fatalf("%q is not in the example", from)
		}
		return strings.Replace(shop, from, to, 1)
	}
	before := publish(t, shop, Options{KeepMissing: true})
	for _, tc := range []struct {
		reason, text string
		changed      []bool // class, cloud, host
	}{
		{"comments and the order of keys", replaced("{apiVersion: infra.example/v1, kind: CloudTemplate, metadata: {name: cloud}, spec: {template: {spec: {size: 4, zone: null}}}}", `
# A comment.
spec:
  template:
    spec: {zone: null, size: 4} # Another.
metadata: {name: cloud}
kind: CloudTemplate
apiVersion: infra.example/v1`), []bool{false, false, false}},
		{"what an API server adds", replaced("metadata:\n  name: shop", `status: {x: y}
metadata:
  uid: u
  resourceVersion: "7"
  generation: 3
  creationTimestamp: "2026-01-01T00:00:00Z"
  ownerReferences: [{apiVersion: v1, kind: X, name: x, uid: y}]
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}
  name: shop`), []bool{false, false, false}},
		{"a namespace", replaced("name: cloud}, spec", "name: cloud, namespace: ns}, spec"), []bool{false, false, false}},
		{"revisions themselves", format(t, before), []bool{false, false, false}},
		{"a changed template changes the class", replaced("size: 4", "size: 5"), []bool{true, true, false}},
		{"a changed class changes no template", replaced("team: blue", "team: red"), []bool{true, false, false}},
		{"so does a patch", replaced("1.5e3", "1501"), []bool{true, false, false}},
		{"a revision that was edited is of the same class", strings.Replace(format(t, before), "size: 4", "size: 5", 1), []bool{true, true, false}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			after := publish(t, tc.text, Options{KeepMissing: true}).names()
			var changed []bool
			for i, name := range before.names() {
				changed = append(changed, name != after[i])
				if a, b := name[:strings.LastIndex(name, "-")], after[i][:strings.LastIndex(after[i], "-")]; a != b {
					t.Errorf("%s became %s", name, after[i])
				}
			}
			if diff := cmp.Diff(tc.changed, changed); diff != "" {
				t.Errorf("changed: -want +got:\n%s", diff)
			}
		})
	}
}

func TestOldVersion(t *testing.T) {
	p := publish(t, oldShop, Options{Namespace: "ns"})
	var got []string
	for _, r := range References(p.Classes[0]) {
		got = append(got, r.Path+" "+r.Name[:5]+" "+r.namespace())
	}
	want := []string{
		"spec.controlPlane.machineInfrastructure.ref host- ", "spec.controlPlane.ref cloud ", "spec.infrastructure.ref cloud ns",
		"spec.workers.machinePools[0].template.bootstrap.ref host- ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	without := publish(t, strings.Replace(oldShop, ", name: cloud, namespace: ns}}", ", name: cloud}}", 1), Options{Namespace: "ns"})
	if diff := cmp.Diff(p.names(), without.names()); diff != "" {
		t.Errorf("the default namespace of a reference must not matter: -with +without:\n%s", diff)
	}
	if name, _, _ := unstructured.NestedString(p.Classes[0].Object, "spec", "controlPlane", "machineHealthCheck", "remediationTemplate", "name"); name != "host" {
		t.Errorf("templates for remediation are not in the namespace of the class: got %s", name)
	}
}

func TestSharedTemplate(t *testing.T) {
	second := strings.Replace(strings.Split(shop, "---")[0], "name: shop", "name: market", 1)
	p := publish(t, shop+"---"+second, Options{KeepMissing: true})
	if len(p.Classes) != 2 || len(p.Templates) != 2 || len(p.Objects) != 5 {
		t.Errorf("two classes with the same two templates, got %v", p.names())
	}
}

func TestLongNames(t *testing.T) {
	for _, base := range []string{strings.Repeat("a", 253), strings.Repeat("ab.", 80) + "c", strings.Repeat("a", 51) + ".b", strings.Repeat("a", 51) + "-b"} {
		text := strings.ReplaceAll(strings.ReplaceAll(shop, "name: shop", "name: "+base), "name: cloud", "name: "+base)
		p := publish(t, text, Options{KeepMissing: true})
		for _, name := range p.names() {
			if errs := validation.IsDNS1123Subdomain(name); len(errs) > 0 || len(name) > 63 {
				t.Errorf("%s becomes %s: %v", base, name, errs)
			}
		}
		if got := Base(p.Classes[0]); got != base {
			t.Errorf("the class is %s, want %s", got, base)
		}
		for _, value := range p.Classes[0].GetLabels() {
			if errs := validation.IsValidLabelValue(value); len(errs) > 0 {
				t.Errorf("label value %s: %v", value, errs)
			}
		}
	}
}

func TestPublishErrors(t *testing.T) {
	for _, tc := range []struct {
		reason, text string
		options      Options
		want         string
	}{
		{"a template that the files lack", shop, Options{}, "ClusterClass shop: spec.controlPlane.templateRef refers to PlaneTemplate elsewhere, " +
			"which is not in the files: add its file with --file, or leave the reference as it is with --keep-missing"},
		{"no class", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", Options{}, "the files have no ClusterClass: add the file that has it with --file"},
		{"an object twice", shop + "---\n{apiVersion: infra.example/v2, kind: HostTemplate, metadata: {name: host}}", Options{KeepMissing: true},
			"the files have HostTemplate host twice: remove one of both"},
		{"another namespace", oldShop, Options{Namespace: "other"}, "ClusterClass ns/shop is not in namespace other: leave out --namespace, or set it to that of the files"},
		{"a template of another namespace", strings.Replace(oldShop, "kind: CloudTemplate, metadata: {name: cloud, namespace: ns}", "kind: CloudTemplate, metadata: {name: cloud, namespace: b}", 1),
			Options{}, "ClusterClass ns/shop: spec.controlPlane.ref refers to CloudTemplate cloud, which is not in the files: add its file with --file, " +
				"or leave the reference as it is with --keep-missing"},
		{"a reference to another namespace", strings.Replace(oldShop, "name: cloud, namespace: ns}}", "name: cloud, namespace: b}}", 1), Options{},
			"ClusterClass ns/shop: spec.infrastructure.ref refers to CloudTemplate cloud in namespace b: a class can only use templates of its own namespace"},
		{"no name", "{apiVersion: cluster.x-k8s.io/v1beta2, kind: ClusterClass, metadata: {generateName: a}}", Options{}, "a ClusterClass has no name: set metadata.name"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			_, err := Publish(parse(t, tc.text), tc.options)
			if err == nil || err.Error() != tc.want {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}
