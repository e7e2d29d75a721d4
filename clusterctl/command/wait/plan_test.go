package wait

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/clusterctl/command/plan"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/providers/core/topologyplan"
)

const planned = `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: c1, namespace: default}
spec:
  topology:
    class: in-memory
    version: v1.30.0
    controlPlane: {replicas: 3}
    workers: {machineDeployments: [{class: default-worker, name: md-0, replicas: 2}]}`

// rolledOut returns the objects of a Cluster whose topology is applied.
func rolledOut(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	class, err := os.ReadFile("../../../providers/infrastructure-in-memory/config/templates/clusterclass-in-memory.yaml")
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := manifest.Parse([]byte(string(class) + "\n---" + planned))
	if err != nil {
		t.Fatal(err)
	}
	all, list := map[string]*unstructured.Unstructured{}, []*unstructured.Unstructured{}
	for i := range parsed {
		parsed[i].SetNamespace("default")
		list = append(list, &parsed[i])
		all[parsed[i].GetKind()+"/"+parsed[i].GetName()] = &parsed[i]
	}
	p, err := topologyplan.Compute(t.Context(), topologyplan.Input{Objects: list, Namespace: "default"})
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range p.Rounds[0].Changes {
		all[change.After.GetKind()+"/"+change.After.GetName()] = change.After
	}
	return all
}

// TestPlansAgree compares what both names of the command plan print, for users and for programs, with what wait waits for.
func TestPlansAgree(t *testing.T) {
	for _, tc := range []struct {
		reason string
		// patch is merged into the objects of a kind whose name has a prefix.
		object, patch string
		// rounds is how many there are, and text what the plan says. Control plane Machines are still being created, which some wait for.
		rounds int
		text   string
	}{
		{"nothing is changed", "", "", 0, `No changes for Cluster "default/c1"`},
		{"a version", "Cluster/", `{spec: {topology: {version: v1.31.0}}}`, 3, "After that:"},
		{"a number of control plane Machines", "Cluster/", `{spec: {topology: {controlPlane: {replicas: 5}}}}`, 1, "No Machines are replaced."},
		{
			"a number of workers", "Cluster/", `{spec: {topology: {workers: {machineDeployments: [{class: default-worker, name: md-0, replicas: 3}]}}}}`,
			1, "MachineDeployment",
		},
		{
			"another worker", "Cluster/", `{spec: {topology: {workers: {machineDeployments: [{class: default-worker, name: md-0, replicas: 2}, ` +
				`{class: default-worker, name: md-1, replicas: 1}]}}}}`, 2, "created",
		},
		{"no worker", "Cluster/", `{spec: {topology: {workers: null}}}`, 1, "deleted"},
		{"a label of Machines", "Cluster/", `{spec: {topology: {controlPlane: {metadata: {labels: {team: blue}}}}}}`, 1, "KubeadmControlPlane"},
		{
			"a deferred upgrade", "Cluster/", `{spec: {topology: {version: v1.31.0, workers: {machineDeployments: [{class: default-worker, name: md-0, ` +
				`replicas: 2, metadata: {annotations: {topology.cluster.x-k8s.io/defer-upgrade: ""}}}]}}}}`, 2, "Not part of the plan: ",
		},
		{
			"a held upgrade", "Cluster/", `{spec: {topology: {version: v1.31.0, workers: {machineDeployments: [{class: default-worker, name: md-0, ` +
				`replicas: 2, metadata: {annotations: {topology.cluster.x-k8s.io/hold-upgrade-sequence: ""}}}]}}}}`, 2, "Not part of the plan: ",
		},
		{"an object that a user changed", "MachineDeployment/", `{spec: {replicas: 7}}`, 1, "modified"},
		{"a template of the class", "KubeadmControlPlaneTemplate/", `{spec: {template: {spec: {kubeadmConfigSpec: {preKubeadmCommands: [date]}}}}}`, 1, "KubeadmControlPlane"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			files := changedFiles(t, tc.object, tc.patch)
			text, _ := runPlan(t, false, files)
			old, _ := runPlan(t, true, files)
			asJSON, code := runPlan(t, false, files, "-o", "json", "--exit-code")
			var report struct {
				Rounds  []any
				Waiting string
			}
			if err := json.Unmarshal([]byte(asJSON), &report); err != nil {
				t.Fatalf("%v:\n%s", err, asJSON)
			}
			if len(report.Rounds) != tc.rounds || !strings.Contains(text, tc.text) || old != text {
				t.Errorf("%d rounds, want %d; want %q in:\n%s\nwith the previous name:\n%s", len(report.Rounds), tc.rounds, tc.text, text, old)
			}
			if none := strings.Contains(text, "No changes for"); none != (len(report.Rounds) == 0) || none != (code == 0) || !none && code != factory.ExitChanges {
				t.Errorf("exit code %d, JSON has %d rounds, and the text is:\n%s", code, len(report.Rounds), text)
			}
			if strings.Contains(text, "Not part of the plan: ") != (report.Waiting != "") || !strings.Contains(text, report.Waiting) {
				t.Errorf("JSON waits for %q, and the text is:\n%s", report.Waiting, text)
			}
			p, err := topologyplan.Compute(t.Context(), topologyplan.Input{Objects: parse(t, files), Namespace: "default"})
			if err != nil {
				t.Fatal(err)
			}
			if waits := pending(p); (len(waits) > 0) != (len(report.Rounds) > 0 || report.Waiting != "") {
				t.Errorf("wait waits for %q, and the plan is:\n%s", waits, text)
			}
		})
	}
}

// changedFiles writes the objects to a file, after a patch of those with the prefix.
func changedFiles(t *testing.T, prefix, patch string) string {
	t.Helper()
	var documents []string
	for name, u := range rolledOut(t) {
		if prefix != "" && strings.HasPrefix(name, prefix) {
			changes := map[string]any{}
			if err := yaml.Unmarshal([]byte(patch), &changes); err != nil {
				t.Fatal(err)
			}
			merge(u.Object, changes)
		}
		raw, err := yaml.Marshal(u.Object)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, string(raw))
	}
	path := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(path, []byte(strings.Join(documents, "---\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// merge is a JSON merge patch.
func merge(into, changes map[string]any) {
	for key, value := range changes {
		below, ok := value.(map[string]any)
		current, exists := into[key].(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case ok && exists:
			merge(current, below)
		default:
			into[key] = value
		}
	}
}

func parse(t *testing.T, path string) []*unstructured.Unstructured {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := manifest.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	var list []*unstructured.Unstructured
	for i := range parsed {
		list = append(list, &parsed[i])
	}
	return list
}

// runPlan returns what the command prints without a management cluster, and its exit code.
func runPlan(t *testing.T, old bool, path string, args ...string) (out string, code int) {
	t.Helper()
	streams, buffers := iostreams.Test()
	f := factory.New(streams, func(string) (string, bool) { return "", false }, nil)
	f.Connect = func(management.Kubeconfig) (*management.Cluster, error) { return nil, management.ErrNoKubeconfig }
	cmd := plan.NewPlan(f, nil)
	if old {
		cmd = plan.NewTopologyPlan(f, nil)
	}
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs(append(args, "-f", path, "--cluster", "c1"))
	err := cmd.ExecuteContext(t.Context())
	if code = factory.ExitCode(err); code == 1 {
		t.Fatal(err)
	}
	return buffers.Out.String(), code
}
