package stage

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sigs.k8s.io/cluster-api/packages/manifest"
)

func parse(t *testing.T, text string) []unstructured.Unstructured {
	t.Helper()
	objects, err := manifest.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

const (
	deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns}, spec: {selector: {matchLabels: {app: %s}}}}\n---\n"
	binding    = "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: b, namespace: ns}, roleRef: {kind: Role, name: %s}}\n---\n"
	crd        = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %s}}\n---\n"
	service    = "{apiVersion: v1, kind: Service, metadata: {name: %s, namespace: ns}}\n---\n"
	webhook    = "{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: %s}}\n---\n"
	ns         = "{apiVersion: v1, kind: Namespace, metadata: {name: %s}}\n---\n"
)

func f(text, name string) string { return fmt.Sprintf(text, name) }

func TestPlan(t *testing.T) {
	tests := []struct {
		reason        string
		desired, live string
		want          []string
	}{
		{
			reason:  "What would cut the old version off is written when the new one is available.",
			desired: f(webhook, "w") + f(deployment, "a") + f(service, "s") + f(crd, "c"), live: f(webhook, "w") + f(deployment, "a") + f(service, "s") + f(crd, "c"),
			want: []string{
				"definitions: write CustomResourceDefinition c", "additions: extend Service ns/s", "controllers: roll Deployment ns/d",
				"controllers: await Deployment ns/d", "cut-over: write Service ns/s", "cut-over: write Deployment ns/d", "cut-over: write MutatingWebhookConfiguration w",
			},
		},
		{
			reason:  "A Deployment whose selector changes is created again; so is a binding of another role, before the new version starts.",
			desired: f(deployment, "b") + f(binding, "new"), live: f(deployment, "a") + f(binding, "old"),
			want: []string{
				"additions: recreate RoleBinding ns/b", "controllers: recreate Deployment ns/d", "controllers: await Deployment ns/d", "cut-over: write Deployment ns/d",
			},
		},
		{
			reason:  "What is created anew needs no deletion.",
			desired: f(deployment, "b") + f(binding, "new"),
			want: []string{
				"additions: extend RoleBinding ns/b", "controllers: roll Deployment ns/d", "controllers: await Deployment ns/d",
				"cut-over: write RoleBinding ns/b", "cut-over: write Deployment ns/d",
			},
		},
		{
			reason: "Webhooks are deleted before the Service that they call; Namespaces and definitions stay.",
			live:   f(ns, "ns") + f(crd, "c") + f(service, "s") + f(webhook, "w") + f(deployment, "a"),
			want:   []string{"removal: delete MutatingWebhookConfiguration w", "removal: delete Deployment ns/d", "removal: delete Service ns/s"},
		},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			var got []string
			for _, s := range Plan(parse(t, tc.desired), parse(t, tc.live)) {
				for _, step := range s.Steps {
					got = append(got, fmt.Sprintf("%s: %s %s", s.Name, step.Action, manifest.Describe(step.Object)))
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Plan(): -want +got:\n%s", diff)
			}
		})
	}
}
