package patches

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestEmptyLists: a released class adds an empty list in one patch, to which others append, or not. No list of v1beta2 may be empty.
func TestEmptyLists(t *testing.T) {
	const patched = `{template: {spec: {files: [], users: [{name: a, sshAuthorizedKeys: []}], ntp: {servers: [], enabled: false}, mounts: [[a, ""]]}}}`
	const without = `{template: {spec: {users: [{name: a}], ntp: {enabled: false}, mounts: [[a, ""]]}}}`
	for _, tc := range []struct{ reason, apiVersion, kind, want string }{
		{"v1beta2", "bootstrap.cluster.x-k8s.io/v1beta2", "KubeadmConfigTemplate", without},
		{"v1beta1 has them", "bootstrap.cluster.x-k8s.io/v1beta1", "KubeadmConfigTemplate", patched},
		{"they may mean something to another project", "bootstrap.example.com/v1beta2", "ExampleConfigTemplate", patched},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			i := &item{place: machineDeployment, source: object(t, tc.apiVersion, tc.kind, "a", patched)}
			before := i.source.DeepCopy()
			i.mutable()
			got, err := i.patchedSpec()
			if err != nil {
				t.Fatal(err)
			}
			var want map[string]any
			if err := yaml.Unmarshal([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(before.Object, i.source.Object); diff != "" {
				t.Errorf("the template changed: -before +after:\n%s", diff)
			}
		})
	}
}

// TestFieldsOfTheTopology: what class or Cluster set for the control plane is not lost when a patch applies to its template.
func TestFieldsOfTheTopology(t *testing.T) {
	const patched = `[{op: add, path: /spec/template/spec/rollout, value: {after: "2026-02-02T00:00:00Z", strategy: {type: RollingUpdate}}}, {op: add, path: /spec/template/spec/machineTemplate, value: {spec: {taints: [{key: patched}], readinessGates: [{conditionType: Patched}]}}}]`
	for _, tc := range []struct{ reason, template, object, want string }{
		{"set by the topology", `{}`,
			`{rollout: {after: "2026-01-01T00:00:00Z"}, machineTemplate: {spec: {taints: [{key: topology}], readinessGates: [{conditionType: Topology}]}}}`,
			`{rollout: {after: "2026-01-01T00:00:00Z", strategy: {type: RollingUpdate}}, machineTemplate: {spec: {taints: [{key: topology}], readinessGates: [{conditionType: Topology}]}}}`},
		{"left to the template", `{machineTemplate: {spec: {taints: [{key: template}]}}}`, `{machineTemplate: {spec: {taints: [{key: template}]}}}`,
			`{rollout: {after: "2026-02-02T00:00:00Z", strategy: {type: RollingUpdate}}, machineTemplate: {spec: {taints: [{key: patched}], readinessGates: [{conditionType: Patched}]}}}`},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			in := fixture(t, "[]", `[{name: p, definitions: [{`+onControlPlane+`, jsonPatches: `+patched+`}]}]`, `{}`)
			in.ControlPlane.Source.Object["spec"] = map[string]any{"template": map[string]any{"spec": tree(t, tc.template)}}
			in.ControlPlane.Target.Object["spec"] = tree(t, tc.object)
			engine, err := New(in.Class, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := engine.Apply(t.Context(), in); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tree(t, tc.want), in.ControlPlane.Target.Object["spec"]); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
