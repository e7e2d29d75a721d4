package contract

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// definitions answers for the metadata of CustomResourceDefinitions: their labels by name.
type definitions map[string]map[string]string

func (d definitions) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	meta, ok := into.(*metav1.PartialObjectMetadata)
	if !ok || meta.Kind != "CustomResourceDefinition" {
		return errors.New("more than the metadata of a CustomResourceDefinition was read")
	}
	if key.Name == "unreadables.g" {
		return errors.New("timeout")
	}
	labels, ok := d[key.Name]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}, key.Name)
	}
	meta.Labels = labels
	return nil
}

func (definitions) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("nothing should list")
}

func TestRefresh(t *testing.T) {
	const label = "cluster.x-k8s.io/v1beta1"
	crds := definitions{
		"foopolicies.g": {label: "v1beta1"},
		"stables.g":     {label: "v1_v2alpha1_v1beta2"},
		"previews.g":    {label: "v1beta2_v1beta10_v1alpha4"},
		"empties.g":     {label: ""},
		"strangers.g":   {"cluster.x-k8s.io/v1beta9": "v1"},
	}
	tests := []struct {
		reason     string
		apiVersion string
		kind       string
		want       string
		changed    bool
		err        []string
	}{
		{"already at the newest; the plural is English", "g/v1beta1", "FooPolicy", "g/v1beta1", false, nil},
		{"bumped", "g/v1alpha4", "FooPolicy", "g/v1beta1", true, nil},
		{"a stable version is above a newer beta", "g/v1beta1", "Stable", "g/v1", true, nil},
		{"versions are numbers, not text", "g/v1beta1", "Preview", "g/v1beta10", true, nil},
		{"no such definition", "g/v1", "Gone", "g/v1", false, []string{"gones.g", "install its provider"}},
		{"no versions in the label", "g/v1", "Empty", "g/v1", false, []string{"empties.g", label}},
		{"another contract's label", "g/v1", "Stranger", "g/v1", false, []string{"strangers.g", label}},
		{"reading fails", "g/v1", "Unreadable", "g/v1", false, []string{"unreadables.g", "timeout"}},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			ref := &corev1.ObjectReference{APIVersion: tc.apiVersion, Kind: tc.kind, Name: "n"}
			changed, err := APIVersions{Reader: crds}.Refresh(t.Context(), ref)
			if (err != nil) != (tc.err != nil) {
				t.Fatalf("error is %v, want one: %t", err, tc.err != nil)
			}
			for _, part := range tc.err {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not contain %q", err, part)
				}
			}
			if apierrors.IsNotFound(err) {
				t.Error("a missing definition looks like a missing object")
			}
			if diff := cmp.Diff([]any{tc.want, tc.changed}, []any{ref.APIVersion, changed}); diff != "" {
				t.Errorf("reference (-want +got):\n%s", diff)
			}
		})
	}
}
