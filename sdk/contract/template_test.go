package contract

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const machineTemplate = `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: DockerMachineTemplate
metadata: {name: tpl, namespace: classes, uid: u, resourceVersion: "5", finalizers: [f], labels: {own: label}}
spec:
  template:
    metadata: {name: ignored, finalizers: [ignored], labels: {from: template, both: template}, annotations: {both: template}}
    spec: {customImage: x, extraMounts: [{hostPath: /a}]}
`

func TestClone(t *testing.T) {
	owner := metav1.OwnerReference{APIVersion: "g/v1", Kind: "MachineSet", Name: "ms", UID: "1"}
	in := CloneInput{
		Template: parse(t, machineTemplate), Name: "m-1", Namespace: "ns", ClusterName: "c", Owner: &owner,
		Labels: map[string]string{"both": "caller", "cluster.x-k8s.io/cluster-name": "loses"}, Annotations: map[string]string{"both": "caller"},
	}
	want := parse(t, `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: DockerMachine
metadata:
  name: m-1
  namespace: ns
  labels: {from: template, both: caller, cluster.x-k8s.io/cluster-name: c}
  annotations:
    both: caller
    cluster.x-k8s.io/cloned-from-name: tpl
    cluster.x-k8s.io/cloned-from-groupkind: DockerMachineTemplate.infrastructure.cluster.x-k8s.io
  ownerReferences: [{apiVersion: g/v1, kind: MachineSet, name: ms, uid: "1"}]
spec: {customImage: x, extraMounts: [{hostPath: /a}]}
`)
	got, err := Clone(in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Object, got.Object); diff != "" {
		t.Errorf("clone (-want +got):\n%s", diff)
	}
	got.Object["spec"].(map[string]any)["extraMounts"].([]any)[0].(map[string]any)["hostPath"] = "changed"
	if diff := cmp.Diff(parse(t, machineTemplate).Object, in.Template.Object); diff != "" {
		t.Errorf("changing the clone changed the template (-want +got):\n%s", diff)
	}
}

func TestCloneNeedsATemplate(t *testing.T) {
	for _, fields := range []string{"", "spec: {}", "spec: {template: text}", "spec: {template: null}"} {
		_, err := Clone(CloneInput{Template: parse(t, head+fields), Name: "n"})
		if err == nil || !strings.Contains(err.Error(), "ns/one: field spec.template is") {
			t.Errorf("%q: error is %v, want one that names the template and the field", fields, err)
		}
	}
}

// TestCloneOfAnEmptyTemplate: v1beta2 neither stores nor accepts the empty objects of a template that sets no field.
func TestCloneOfAnEmptyTemplate(t *testing.T) {
	for _, fields := range []string{"", "spec: {}"} {
		template := parse(t, "{apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: DockerMachineTemplate, metadata: {name: t}}\n")
		if fields != "" {
			template.Object["spec"] = map[string]any{}
		}
		clone, err := Clone(CloneInput{Template: template, Name: "n", Namespace: "ns", ClusterName: "c"})
		if err != nil {
			t.Fatalf("%q: %v", fields, err)
		}
		if spec, ok := clone.Object["spec"]; clone.GetKind() != "DockerMachine" || ok {
			t.Errorf("%q: the clone has the spec %v: %v", fields, spec, clone.Object)
		}
	}
}

func TestTemplateMetadata(t *testing.T) {
	meta, err := Object{Unstructured: parse(t, machineTemplate)}.metadata("spec", "template", "metadata")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"from": "template", "both": "template"}, meta.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}
