package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestPlaceConversion(t *testing.T) {
	definition := func(service map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "things.x.io"},
			"spec": map[string]any{"conversion": map[string]any{"webhook": map[string]any{"clientConfig": map[string]any{"service": service}}}},
		}}
	}
	got := definition(map[string]any{"name": "webhook-service", "namespace": "system", "path": "/convert"})
	place(got, component{Prefix: "capi-", Namespace: "capi-system"})
	want := definition(map[string]any{"name": "capi-webhook-service", "namespace": "capi-system", "path": "/convert"})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conversion (-want +got):\n%s", diff)
	}
}
