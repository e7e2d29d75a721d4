package tree

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestInV1Beta1(t *testing.T) {
	object := func(apiVersion, kind string, fields map[string]any) *unstructured.Unstructured {
		out := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a"}}}
		maps.Copy(out.Object, fields)
		out.SetAPIVersion(apiVersion)
		out.SetKind(kind)
		return out
	}
	const foreign = "infrastructure.example/v1"
	status := func(initialization map[string]any, more ...string) map[string]any {
		fields := map[string]any{"initialization": initialization}
		for _, name := range more {
			fields[name] = true
		}
		return map[string]any{"status": fields}
	}
	provisioned, secret := map[string]any{"provisioned": true}, map[string]any{"dataSecretCreated": true}
	initialized := map[string]any{"controlPlaneInitialized": true}
	running := status(initialized, "initialized", "ready")
	running["status"].(map[string]any)["readyReplicas"] = int64(1)
	starting := status(initialized)
	starting["status"].(map[string]any)["readyReplicas"] = int64(1)
	for _, tc := range []struct {
		reason    string
		obj, want *unstructured.Unstructured
	}{
		{
			"infrastructure of contract v1beta2",
			object(foreign, "ExampleCluster", status(provisioned)), object(foreign, "ExampleCluster", status(provisioned, "ready")),
		},
		{
			"a bootstrap config of contract v1beta2",
			object(foreign, "ExampleConfig", status(secret)), object(foreign, "ExampleConfig", status(secret, "ready")),
		},
		{
			"an initialized control plane without ready replicas",
			object(foreign, "ExamplePlane", status(initialized)), object(foreign, "ExamplePlane", status(initialized, "initialized")),
		},
		{
			"a control plane with ready replicas",
			object(foreign, "ExamplePlane", starting), object(foreign, "ExamplePlane", running),
		},
		{
			"not yet provisioned",
			object(foreign, "ExampleCluster", status(map[string]any{"provisioned": false})),
			object(foreign, "ExampleCluster", status(map[string]any{"provisioned": false})),
		},
		{
			"contract v1beta1",
			object(foreign, "ExampleCluster", map[string]any{"status": map[string]any{"ready": true}}),
			object(foreign, "ExampleCluster", map[string]any{"status": map[string]any{"ready": true}}),
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			before := tc.obj.DeepCopy()
			if diff := cmp.Diff(tc.want, InV1Beta1(tc.obj)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.obj); diff != "" {
				t.Errorf("the object itself changed: -before +after:\n%s", diff)
			}
		})
	}
}
