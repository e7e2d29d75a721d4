package create

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTargets(t *testing.T) {
	tests := []struct {
		reason, object string
		want           []string
	}{
		{
			reason: "a Cluster refers to its class, its control plane and its infrastructure",
			object: `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: c1}
spec:
  topology: {class: toy, variables: [{name: v, value: {apiVersion: example.org/v1, kind: Toy, name: x}}]}
  infrastructureRef: {apiVersion: example.org/v1, kind: ToyCluster, name: i}
  controlPlaneRef: {apiVersion: example.org/v1, kind: ToyPlane, name: p, namespace: elsewhere}`,
			want: []string{"ClusterClass ns/toy", "ToyPlane elsewhere/p", "ToyCluster ns/i"},
		},
		{
			reason: "a class refers to its templates; patches contain no references",
			object: `
apiVersion: cluster.x-k8s.io/v1beta1
kind: ClusterClass
metadata: {name: toy}
spec:
  infrastructure: {ref: {apiVersion: example.org/v1, kind: ToyClusterTemplate, name: i}}
  workers: {machineDeployments: [{class: w, template: {bootstrap: {ref: {apiVersion: example.org/v1, kind: ToyConfigTemplate, name: b}}}}]}
  patches: [{name: a, definitions: [{jsonPatches: [{op: add, path: /spec, value: {apiVersion: example.org/v1, kind: Toy, name: x}}]}]}]`,
			want: []string{"ToyClusterTemplate ns/i", "ToyConfigTemplate ns/b"},
		},
		{
			reason: "references in v1beta2 have a group; the class may be in another namespace",
			object: `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: c1}
spec:
  topology: {classRef: {name: toy, namespace: shared}}
  infrastructureRef: {apiGroup: toys.example.org, kind: ToyCluster, name: i}`,
			want: []string{"ClusterClass shared/toy", "ToyCluster ns/i"},
		},
		{
			reason: "a class in v1beta2 refers to its templates by version",
			object: `
apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata: {name: toy}
spec:
  infrastructure: {templateRef: {apiVersion: example.org/v1, kind: ToyClusterTemplate, name: i}}
  workers: {machineDeployments: [{class: w, bootstrap: {templateRef: {apiVersion: example.org/v1, kind: ToyConfigTemplate, name: b}}}]}`,
			want: []string{"ToyClusterTemplate ns/i", "ToyConfigTemplate ns/b"},
		},
		{
			reason: "other kinds are ignored",
			object: `{apiVersion: cluster.x-k8s.io/v1beta1, kind: Machine, metadata: {name: m}, spec: {x: {apiVersion: v1, kind: Secret, name: s}}}`,
		},
		{
			reason: "the contents of providers' objects are ignored",
			object: `{apiVersion: example.org/v1, kind: Toy, metadata: {name: m}, spec: {ref: {apiVersion: example.org/v1, kind: Toy, name: s}}}`,
		},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			var got []string
			for _, target := range targets(object(t, tc.object)) {
				got = append(got, target.kind.Kind+" "+target.name.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
