package conversion

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// TestDevKinds converts objects of both backends in both directions. What is empty, such as a backend without fields, stays.
func TestDevKinds(t *testing.T) {
	tests := []struct{ reason, kind, v1beta1, v1beta2 string }{
		{
			reason: "containers", kind: "DevCluster",
			v1beta1: `
spec:
  controlPlaneEndpoint: {host: h, port: 6443}
  backend: {docker: {failureDomains: {a: {controlPlane: true}}, loadBalancer: {imageTag: t}}}
status: {ready: true, failureDomains: {a: {controlPlane: true}}, conditions: [{type: Ready, status: "True"}]}
`,
			v1beta2: `
spec:
  controlPlaneEndpoint: {host: h, port: 6443}
  backend: {docker: {failureDomains: [{name: a, controlPlane: true}], loadBalancer: {imageTag: t}}}
status:
  initialization: {provisioned: true}
  failureDomains: [{name: a, controlPlane: true}]
  deprecated: {v1beta1: {conditions: [{type: Ready, status: "True"}]}}
`,
		},
		{
			reason: "a simulation without fields", kind: "DevCluster",
			v1beta1: `{spec: {controlPlaneEndpoint: {host: h, port: 20001}, backend: {inMemory: {}}}}`,
			v1beta2: `{spec: {controlPlaneEndpoint: {host: h, port: 20001}, backend: {inMemory: {}}}}`,
		},
		{
			reason: "a template", kind: "DevClusterTemplate",
			v1beta1: `{spec: {template: {spec: {backend: {docker: {failureDomains: {a: {controlPlane: true}}}}}}}}`,
			v1beta2: `{spec: {template: {spec: {backend: {docker: {failureDomains: [{name: a, controlPlane: true}]}}}}}}`,
		},
		{
			reason: "a container", kind: "DevMachine",
			v1beta1: `
spec: {providerID: "docker:////c-m", backend: {docker: {customImage: i, extraMounts: [{hostPath: /a, containerPath: /b, readOnly: true}]}}}
status: {ready: true, loadBalancerConfigured: true, addresses: [{type: Hostname, address: c-m}]}
`,
			v1beta2: `
spec: {providerID: "docker:////c-m", backend: {docker: {customImage: i, extraMounts: [{hostPath: /a, containerPath: /b, readOnly: true}]}}}
status: {initialization: {provisioned: true}, loadBalancerConfigured: true, addresses: [{type: Hostname, address: c-m}]}
`,
		},
		{
			reason: "a simulated machine", kind: "DevMachine",
			v1beta1: `{spec: {backend: {inMemory: {vm: {provisioning: {startupDuration: 10s, startupJitter: "0.2"}}}}}}`,
			v1beta2: `{spec: {backend: {inMemory: {vm: {provisioning: {startupDuration: 10s, startupJitter: "0.2"}}}}}}`,
		},
		{
			reason: "a template of a simulated machine", kind: "DevMachineTemplate",
			v1beta1: `{spec: {template: {spec: {backend: {inMemory: {}}}}}}`,
			v1beta2: `{spec: {template: {spec: {backend: {inMemory: {}}}}}}`,
		},
	}
	registry := New(nil)
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			old, current := devObject(t, tc.kind, "v1beta1", tc.v1beta1), devObject(t, tc.kind, "v1beta2", tc.v1beta2)
			for _, direction := range [][2]*unstructured.Unstructured{{old, current}, {current, old}} {
				got := newTree(direction[1].GroupVersionKind())
				if err := registry.Convert(t.Context(), direction[0], got); err != nil {
					t.Fatal(err)
				}
				got.SetAnnotations(nil)
				dropZeros(got.Object)
				got.SetGroupVersionKind(direction[1].GroupVersionKind())
				if diff := cmp.Diff(direction[1].Object, got.Object); diff != "" {
					t.Errorf("to %s (-want +got):\n%s", got.GetAPIVersion(), diff)
				}
			}
		})
	}
}

// dropZeros removes what v1beta1 always writes, although it is not set.
func dropZeros(object map[string]any) {
	for _, path := range [][]string{
		{"status"}, {"spec", "template", "metadata"}, {"spec", "template", "spec", "controlPlaneEndpoint"},
		{"spec", "template", "spec", "backend", "docker", "loadBalancer"},
	} {
		if value, found, _ := unstructured.NestedFieldNoCopy(object, path...); found && isZero(value) {
			unstructured.RemoveNestedField(object, path...)
		}
	}
}

func isZero(value any) bool {
	fields, ok := value.(map[string]any)
	if !ok {
		return value == false || value == "" || value == int64(0)
	}
	for _, field := range fields {
		if !isZero(field) {
			return false
		}
	}
	return true
}

// devObject returns an object with a name.
func devObject(t *testing.T, kind, version, content string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(content))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &u.Object); err != nil { // With whole numbers.
		t.Fatal(err)
	}
	u.SetAPIVersion("infrastructure.cluster.x-k8s.io/" + version)
	u.SetKind(kind)
	u.SetName("a")
	return u
}
