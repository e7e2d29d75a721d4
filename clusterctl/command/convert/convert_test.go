package convert

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
)

func TestConvert(t *testing.T) {
	const machine = "apiVersion: cluster.x-k8s.io/v1beta1\nkind: Machine\nmetadata:\n  name: m\n  namespace: ns\nspec:\n" +
		"  bootstrap:\n    dataSecretName: s\n  clusterName: c\n  infrastructureRef:\n    apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\n" +
		"    kind: ToyMachine\n    name: i\n  nodeDrainTimeout: 1m\n"
	const converted = "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Machine\nmetadata:\n  name: m\n  namespace: ns\nspec:\n" +
		"  bootstrap:\n    dataSecretName: s\n  clusterName: c\n  deletion:\n    nodeDrainTimeoutSeconds: 60\n  infrastructureRef:\n" +
		"    apiGroup: infrastructure.cluster.x-k8s.io\n    kind: ToyMachine\n    name: i\n"
	const other = "# kept\nkind: ConfigMap\napiVersion:   v1\nmetadata: {name: x}\n"
	for _, tt := range []struct {
		reason, in string
		// out is the converted file, messages what is said about it.
		out, messages string
		err           string
	}{
		{reason: "an object", in: machine, out: converted, messages: "1 objects are converted to v1beta2, 0 stay as they are\n"},
		{
			reason: "everything else stays byte by byte", in: other + "---\n" + machine + "---\n" + converted,
			out: other + "---\n" + converted + "---\n" + converted, messages: "1 objects are converted to v1beta2, 2 stay as they are\n",
		},
		{
			reason: "a List", in: "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(machine), "\n", "\n  ") + "\n- {apiVersion: v1, kind: Secret, metadata: {name: s}}\n",
			out: "apiVersion: v1\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(converted), "\n", "\n  ") +
				"\n- apiVersion: v1\n  kind: Secret\n  metadata:\n    name: s\nkind: List\n",
			messages: "1 objects are converted to v1beta2, 1 stay as they are\n",
		},
		{
			reason: "a list of one kind", in: "{apiVersion: addons.cluster.x-k8s.io/v1beta1, kind: ClusterResourceSetList, items: []}\n",
			out:      "apiVersion: addons.cluster.x-k8s.io/v1beta2\nitems: []\nkind: ClusterResourceSetList\n",
			messages: "0 objects are converted to v1beta2, 0 stay as they are\n",
		},
		{
			reason: "kinds of other groups of Cluster API",
			in: "apiVersion: bootstrap.cluster.x-k8s.io/v1beta1\nkind: KubeadmConfigTemplate\nmetadata: {name: t}\n" +
				"spec: {template: {spec: {joinConfiguration: {nodeRegistration: {kubeletExtraArgs: {v: \"4\"}}}}}}\n",
			out: "apiVersion: bootstrap.cluster.x-k8s.io/v1beta2\nkind: KubeadmConfigTemplate\nmetadata:\n  name: t\nspec:\n  template:\n    spec:\n" +
				"      joinConfiguration:\n        nodeRegistration:\n          kubeletExtraArgs:\n          - name: v\n            value: \"4\"\n",
			messages: "1 objects are converted to v1beta2, 0 stay as they are\n",
		},
		{
			reason: "what v1beta2 cannot express", in: strings.Replace(machine, "nodeDrainTimeout: 1m", "nodeDrainTimeout: 1m500ms", 1), out: converted,
			messages: "Machine ns/m: v1beta2 has no field for spec.nodeDrainTimeout: it is left out\n1 objects are converted to v1beta2, 0 stay as they are\n",
		},
		{reason: "only comments", in: "# nothing\n", out: "# nothing\n", messages: "0 objects are converted to v1beta2, 0 stay as they are\n"},
		{reason: "an unknown field is not lost", in: other + "---\n" + machine + "  nodeDrainTimeOuts: 1m\n", err: `nothing is converted: document 2: Machine ns/m: json: unknown field "nodeDrainTimeOuts"`},
		{reason: "a variable", in: strings.Replace(machine, "nodeDrainTimeout: 1m", "nodeDrainTimeout: ${T}", 1), err: "templates with variables are processed first"},
		{reason: "no YAML", in: "a: b: c", err: "nothing is converted: "},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			streams, buffers := iostreams.Test()
			buffers.In.WriteString(tt.in)
			cmd := New(&factory.Factory{IO: streams}, nil)
			cmd.SetArgs([]string{})
			err := cmd.ExecuteContext(t.Context())
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || buffers.Out.Len() > 0 {
					t.Errorf("it printed %q, error %v", buffers.Out, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.out, buffers.Out.String()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(tt.messages, strings.ReplaceAll(buffers.Err.String(), "Warning: ", "")); diff != "" {
				t.Errorf("messages: -want +got:\n%s", diff)
			}
		})
	}
}

// A class keeps the versions of its templates, and the patches that are written for them.
func TestConvertClass(t *testing.T) {
	folder := t.TempDir()
	in, out := filepath.Join(folder, "class.yaml"), filepath.Join(folder, "out.yaml")
	class := `apiVersion: cluster.x-k8s.io/v1beta1
kind: ClusterClass
metadata: {name: c}
spec:
  controlPlane:
    ref: {apiVersion: controlplane.cluster.x-k8s.io/v1beta1, kind: KubeadmControlPlaneTemplate, name: t}
  infrastructure:
    ref: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: ToyClusterTemplate, name: t}
  patches:
  - name: audit
    definitions:
    - selector: {apiVersion: controlplane.cluster.x-k8s.io/v1beta1, kind: KubeadmControlPlaneTemplate, matchResources: {controlPlane: true}}
      jsonPatches: [{op: add, path: /spec/template/spec/replicas, value: 3}]
    - selector: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: ToyClusterTemplate, matchResources: {infrastructureCluster: true}}
      jsonPatches: [{op: add, path: /spec/template/spec/x, value: 3}]
`
	if err := os.WriteFile(in, []byte(class), 0o600); err != nil {
		t.Fatal(err)
	}
	streams, buffers := iostreams.Test()
	cmd := New(&factory.Factory{IO: streams}, nil)
	cmd.SetArgs([]string{in, "-o", out})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	const want = `ClusterClass c: patch "audit" is for KubeadmControlPlaneTemplate in controlplane.cluster.x-k8s.io/v1beta1 and is not converted: ` +
		"look at its paths and values if you change that version"
	if got := buffers.Err.String(); strings.Count(got, "is not converted") != 1 || !strings.Contains(got, want) {
		t.Errorf("it says %s", got)
	}
	raw, err := os.ReadFile(out) // #nosec G304 -- a file of this test
	if err != nil || !strings.Contains(string(raw), "apiVersion: cluster.x-k8s.io/v1beta2\nkind: ClusterClass") || strings.Contains(string(raw), "annotations") {
		t.Errorf("%v\n%s", err, raw)
	}
	if info, err := os.Stat(out); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}
