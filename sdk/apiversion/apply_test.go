package apiversion

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestApplied(t *testing.T) {
	tests := []struct{ reason, code, stored, obj, want string }{
		{
			reason: "what is not set stays unset", code: newer, stored: older,
			obj: `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","metadata":{"name":"m","labels":{"a":"b"}},
				"spec":{"version":"v1.36.3","deletion":{"nodeDrainTimeoutSeconds":30}}}`,
			want: `{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Machine","metadata":{"name":"m","labels":{"a":"b"}},
				"spec":{"version":"v1.36.3","nodeDrainTimeout":"30s"}}`,
		},
		{
			reason: "metadata alone", code: newer, stored: older,
			obj:  `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","metadata":{"name":"m","finalizers":["a"]}}`,
			want: `{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Machine","metadata":{"name":"m","finalizers":["a"]}}`,
		},
		{
			reason: "what the stored version has no field for", code: newer, stored: older,
			obj: `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","metadata":{"name":"m"},"spec":{"clusterName":"c","minReadySeconds":5}}`,
			want: `{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Machine",
				"metadata":{"name":"m","annotations":{"kept":"..."}},"spec":{"clusterName":"c"}}`,
		},
		{
			reason: "an object of which nothing is left, but which is required", code: newer, stored: older,
			obj:  `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","metadata":{"name":"m"},"spec":{"clusterName":"c","bootstrap":{"dataSecretName":""}}}`,
			want: `{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Machine","metadata":{"name":"m","annotations":{"kept":"..."}},"spec":{"clusterName":"c","bootstrap":{}}}`,
		},
		{
			reason: "older code", code: older, stored: newer,
			obj:  `{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Machine","metadata":{"name":"m"},"spec":{"clusterName":"c","nodeDrainTimeout":"30s"}}`,
			want: `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","metadata":{"name":"m"},"spec":{"clusterName":"c","deletion":{"nodeDrainTimeoutSeconds":30}}}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			obj := &unstructured.Unstructured{Object: parsed(t, tt.obj)}
			got, err := newTranslation(t, tt.code, tt.stored).Applied(t.Context(), obj)
			if err != nil {
				t.Fatal(err)
			}
			hideConversionData(got.Object)
			if diff := cmp.Diff(parsed(t, tt.want), got.Object); diff != "" {
				t.Errorf("applied (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(parsed(t, tt.obj), obj.Object); diff != "" {
				t.Errorf("the object was changed:\n%s", diff)
			}
		})
	}
}

func TestApplyInAnotherVersion(t *testing.T) {
	tr := newTranslation(t, newer, older)
	c := tr.Client(fake.NewClientBuilder().WithScheme(tr.scheme).Build())
	for version, refused := range map[string]bool{newer: true, older: false} {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(machineKind().WithVersion(version))
		u.SetName("m")
		u.SetNamespace("ns")
		err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("test"))
		if refused != (err != nil && strings.Contains(err.Error(), "see Applied of package apiversion")) || !refused && err != nil {
			t.Errorf("%s: %v", version, err)
		}
	}
}
