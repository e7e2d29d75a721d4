package compatibility

import (
	"context"
	"encoding/json"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
)

// TestDefinitionsAreAccepted validates CRDs as the API server does.
func TestDefinitionsAreAccepted(t *testing.T) {
	for name, definition := range ours(t) {
		t.Run(name, func(t *testing.T) {
			document, err := json.Marshal(definition)
			if err != nil {
				t.Fatalf("write definition: %v", err)
			}
			external := &apiextensionsv1.CustomResourceDefinition{}
			if err := json.Unmarshal(document, external); err != nil {
				t.Fatalf("read definition: %v", err)
			}
			apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(external)
			internal := &apiextensions.CustomResourceDefinition{}
			if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(external, internal, nil); err != nil {
				t.Fatalf("convert definition: %v", err)
			}
			// The API server sets this when it stores a definition.
			internal.Status.StoredVersions = []string{storageVersion(external)}
			for _, problem := range validation.ValidateCustomResourceDefinition(context.Background(), internal) {
				t.Error(problem)
			}
		})
	}
}

// storageVersion is the version in which objects are stored.
func storageVersion(d *apiextensionsv1.CustomResourceDefinition) string {
	for _, v := range d.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}
