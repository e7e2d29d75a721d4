package journey

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// mistake is invalid input for kubectl, and words that the error must contain: what is wrong, where, and what is valid.
type mistake struct {
	reason string
	args   []string
	input  string
	words  []string
}

// manifest returns a Cluster with this topology.
func manifest(name, topology string) string {
	return `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: ` + name + `}
spec:
  topology:
` + topology
}

const (
	apply    = "apply --filename -"
	topology = "    class: in-memory\n    version: v1.30.5\n"
)

func mistakes(p *Snapshot) []mistake {
	const name = "right"
	patch := func(resource, patch string) []string {
		return []string{"patch", resource, "--type", "merge", "--patch", patch}
	}
	cluster, deployment := "clusters.v1beta1.cluster.x-k8s.io/"+name, "machinedeployments.v1beta1.cluster.x-k8s.io/"+p.Deployments.Items[0].Name
	kcp := "kubeadmcontrolplanes.v1beta1.controlplane.cluster.x-k8s.io/" + p.ControlPlanes.Items[0].Name
	machine := "machines.v1beta1.cluster.x-k8s.io/" + p.Machines.Items[0].Name
	file := strings.Fields(apply)
	return []mistake{
		{"an unknown field", file, manifest("wrong", topology+"    klass: in-memory\n"), []string{`unknown field "spec.topology.klass"`}},
		{"a wrong type", file, manifest("wrong", topology+"    controlPlane: {replicas: three}\n"), []string{"spec.topology.controlPlane.replicas", "string", "int32"}},
		{"no version", file, manifest("wrong", "    class: in-memory\n"), []string{"spec.topology.version", "Required"}},
		{"an invalid version", file, manifest("wrong", "    class: in-memory\n    version: latest\n"), []string{"spec.topology.version", "latest"}},
		{"a variable that fails its schema", file, manifest("wrong", topology+"    variables: [{name: startupDuration, value: soon}]\n"),
			[]string{"spec.topology.variables", "startupDuration", "^[0-9]+(ms|s|m)$"}},
		{"a variable of the wrong type", file, manifest("wrong", topology+"    variables: [{name: startupDuration, value: 5}]\n"),
			[]string{"spec.topology.variables", "startupDuration", "string"}},
		{"an undefined variable", file, manifest("wrong", topology+"    variables: [{name: color, value: red}]\n"),
			[]string{"spec.topology.variables", "color", "startupDuration"}},
		{"workers of an unknown class", file, manifest("wrong", topology+"    workers: {machineDeployments: [{class: gpu, name: md-0}]}\n"),
			[]string{"spec.topology.workers.machineDeployments[0].class", "gpu"}},
		{"an even number of control plane Machines", patch(kcp, `{"spec":{"replicas":2}}`), "", []string{"spec.replicas", "even"}},
		{"a lower version", patch(cluster, `{"spec":{"topology":{"version":"v1.29.4"}}}`), "", []string{"spec.topology.version", "v1.29.4"}},
		{"a version too far ahead", patch(cluster, `{"spec":{"topology":{"version":"v1.32.0"}}}`), "", []string{"spec.topology.version", "v1.32.0"}},
		{"an existing Cluster moved to a missing class", patch(cluster, `{"spec":{"topology":{"class":"none"}}}`), "", []string{"spec.topology.class", "none"}},
		{"a Cluster whose topology is removed", []string{"patch", cluster, "--type", "json", "--patch", `[{"op":"remove","path":"/spec/topology"}]`}, "", []string{"spec.topology"}},
		{"another cluster of a MachineDeployment", patch(deployment, `{"spec":{"clusterName":"other"}}`), "", []string{"spec.clusterName", "cannot be changed"}},
		{"another cluster of a Machine", patch(machine, `{"spec":{"clusterName":"other"}}`), "", []string{"spec.clusterName", "cannot be changed"}},
		{"another cluster name for kubeadm", patch(kcp, `{"spec":{"kubeadmConfigSpec":{"clusterConfiguration":{"clusterName":"other"}}}}`), "",
			[]string{"spec.kubeadmConfigSpec.clusterConfiguration.clusterName", "cannot be modified"}},
		{"a version too far ahead, in v1beta2", patch("clusters.v1beta2.cluster.x-k8s.io/"+name, `{"spec":{"topology":{"version":"v1.32.0"}}}`), "",
			[]string{"spec.topology.version", "v1.32.0"}},
		{"a missing class, in v1beta2", patch("clusters.v1beta2.cluster.x-k8s.io/"+name, `{"spec":{"topology":{"classRef":{"name":"none"}}}}`), "",
			[]string{"spec.topology.class", "none"}},
		{"a class in use is deleted", []string{"delete", "clusterclass", "in-memory"}, "", []string{"in-memory", name}},
	}
}

// TestMistakesAreRejected checks that mistakes are rejected with a clear error and exit code, and change nothing.
func TestMistakesAreRejected(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	c := w.Subject(NewCluster("right", w.Class(w.Tools.ProjectTemplate())).Workers(1).Build())
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(1), c.WorkloadMatches)
	before := w.Requested()
	for _, tc := range mistakes(c.Snapshot()) {
		t.Run(tc.reason, func(t *testing.T) {
			r := w.Tools.Kubectl(t.Context(), tc.input, append([]string{"--kubeconfig", w.Kubeconfig, "--namespace", w.Namespace}, tc.args...)...)
			rejected(t, r, tc.words...)
		})
	}
	if diff := cmp.Diff(before, w.Requested()); diff != "" {
		t.Errorf("mistakes changed objects (-before +after):\n%s", diff)
	}
	c.Gone()
}

// rejected checks that a program failed, with a short error that contains these words.
func rejected(t *testing.T, r Result, words ...string) {
	t.Helper()
	if !r.Failed {
		t.Fatalf("the command succeeded: %s", r)
	}
	for _, word := range words {
		if !strings.Contains(r.Err, word) {
			t.Errorf("the error does not contain %q: %s", word, r)
		}
	}
	if strings.Contains(r.Err, "goroutine ") || strings.Count(strings.TrimSpace(r.Err), "\n") > 6 {
		t.Errorf("the error is not short: %s", r)
	}
}

// TestClassComesLater checks that a Cluster whose class does not exist is accepted with a warning, reports what it waits for,
// and is created after the class.
func TestClassComesLater(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	input := manifest("early", topology+"    controlPlane: {replicas: 1}\n")
	r := w.Tools.Kubectl(t.Context(), input, append([]string{"--kubeconfig", w.Kubeconfig, "--namespace", w.Namespace}, strings.Fields(apply)...)...)
	if r.Failed || !strings.Contains(r.Err, "Warning") || !strings.Contains(r.Err, "in-memory") {
		t.Fatalf("want a warning that contains the class: %s", r)
	}
	c := &Subject{World: w, Name: "early"}
	c.Eventually("the Cluster reports what it waits for", topologyFails("in-memory"), c.Explains("MissingObject Cluster", "ClusterClass in-memory"))
	w.Class(w.Tools.ProjectTemplate())
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), c.WorkloadMatches)
	c.Delete()
}

// TestMissingTemplate checks that nothing is created from an incomplete class, and that the missing template is reported.
func TestMissingTemplate(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	objects, err := readObjects(w.Tools.ProjectTemplate().Class)
	if err != nil {
		t.Fatal(err)
	}
	var missing string
	for _, o := range objects {
		if o.GetKind() == "KubeadmConfigTemplate" {
			missing = o.GetName()
			continue
		}
		w.Applied(o)
	}
	c := w.Subject(NewCluster("wrong", "in-memory").Workers(1).Build())
	c.Eventually("the missing template is reported", topologyFails(missing), c.Explains("ClassNotReconciled Cluster", missing))
	p := c.Snapshot()
	if n := len(p.ControlPlanes.Items) + len(p.Deployments.Items) + len(p.Machines.Items); n > 0 || p.Cluster.Spec.InfrastructureRef != nil {
		t.Errorf("objects were created from an incomplete class:\n%s", p)
	}
	w.Class(w.Tools.ProjectTemplate())
	c.Eventually("the Cluster becomes ready with the template", Ready, ControlPlanes(1), Workers(1), c.WorkloadMatches)
	c.Delete()
}

// topologyFails is true when TopologyReconciled is not True, with a message that contains name.
func topologyFails(name string) Condition {
	return func(p *Snapshot) error {
		found := FindCondition(p.Cluster, clusterv1.TopologyReconciledCondition)
		if found == nil || found.Status == "True" || !strings.Contains(found.Message, name) {
			return fmt.Errorf("condition TopologyReconciled does not contain %s: %+v", name, found)
		}
		return nil
	}
}

// TestInvalidCommands checks that commands with invalid arguments report why, without other output.
func TestInvalidCommands(t *testing.T) {
	t.Parallel()
	tools := shared.Management(t).Tools
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	invalid := write("invalid", "clusters: [")
	template := write("template.yaml", manifest("${CLUSTER_NAME}", "    class: in-memory\n    version: ${KUBERNETES_VERSION}\n    variables: [{name: region, value: \"${REGION_OF_CHOICE}\"}]\n"))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		reason string
		run    Result
		words  []string
	}{
		{"an invalid kubeconfig, for init", tools.Clusterctl(t.Context(), "", "init", "--infrastructure", "in-memory", "--kubeconfig", invalid), []string{invalid}},
		{"an invalid kubeconfig, for reading", tools.Clusterctl(t.Context(), "", "get", "kubeconfig", "x", "--kubeconfig", invalid), []string{invalid}},
		{"a kubeconfig that does not exist", tools.Clusterctl(t.Context(), "", "get", "kubeconfig", "x", "--kubeconfig", dir+"/none"), []string{dir + "/none"}},
		{"a variable of a template that is not set", tools.Clusterctl(t.Context(), "", "generate", "cluster", "x", "--from", template, "--kubernetes-version", "v1.30.5", "--target-namespace", "default"),
			[]string{"REGION_OF_CHOICE"}},
		{"an unknown provider", tools.Clusterctl(t.Context(), "", "generate", "cluster", "x", "--infrastructure", "nowhere", "--kubernetes-version", "v1.30.5"), []string{"nowhere"}},
		{"a port in use", run(t.Context(), "", tools.Capi, "serve", "--data-dir", dir+"/data", "--secure-port", port), []string{port, "--secure-port"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			rejected(t, tc.run, tc.words...)
			if tc.run.Out != "" {
				t.Errorf("a failed command has output: %s", tc.run)
			}
		})
	}
}
