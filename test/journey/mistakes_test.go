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
	"sigs.k8s.io/cluster-api/provider/condition"
)

// mistake is something wrong that a user hands to kubectl, and words that the answer has to have: what is wrong, where,
// and what would be right.
type mistake struct {
	reason string
	args   []string
	input  string
	words  []string
}

// manifest is a Cluster as a user writes it, with what follows spec.topology.
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

func mistakes(p *Picture) []mistake {
	const name = "right"
	patch := func(resource, patch string) []string {
		return []string{"patch", resource, "--type", "merge", "--patch", patch}
	}
	cluster, deployment := "cluster/"+name, "machinedeployment/"+p.Deployments.Items[0].Name
	kcp, machine := "kubeadmcontrolplane/"+p.ControlPlanes.Items[0].Name, "machine/"+p.Machines.Items[0].Name
	file := strings.Fields(apply)
	return []mistake{
		{"an unknown field", file, manifest("wrong", topology+"    klass: in-memory\n"), []string{`unknown field "spec.topology.klass"`}},
		{"a wrong type", file, manifest("wrong", topology+"    controlPlane: {replicas: three}\n"), []string{"spec.topology.controlPlane.replicas", "string", "int32"}},
		{"no version", file, manifest("wrong", "    class: in-memory\n"), []string{"spec.topology.version", "Required"}},
		{"something that is no version", file, manifest("wrong", "    class: in-memory\n    version: latest\n"), []string{"spec.topology.version", "latest"}},
		{"a variable that fails its schema", file, manifest("wrong", topology+"    variables: [{name: startupDuration, value: soon}]\n"),
			[]string{"spec.topology.variables", "startupDuration", "^[0-9]+(ms|s|m)$"}},
		{"a variable of the wrong type", file, manifest("wrong", topology+"    variables: [{name: startupDuration, value: 5}]\n"),
			[]string{"spec.topology.variables", "startupDuration", "string"}},
		{"a variable that nobody defines", file, manifest("wrong", topology+"    variables: [{name: color, value: red}]\n"),
			[]string{"spec.topology.variables", "color", "startupDuration"}},
		{"workers of a class that there is not", file, manifest("wrong", topology+"    workers: {machineDeployments: [{class: gpu, name: md-0}]}\n"),
			[]string{"spec.topology.workers.machineDeployments[0].class", "gpu"}},
		{"an even number of control plane Machines", patch(kcp, `{"spec":{"replicas":2}}`), "", []string{"spec.replicas", "even"}},
		{"a version that is lower", patch(cluster, `{"spec":{"topology":{"version":"v1.29.4"}}}`), "", []string{"spec.topology.version", "v1.29.4"}},
		{"a version too far ahead", patch(cluster, `{"spec":{"topology":{"version":"v1.32.0"}}}`), "", []string{"spec.topology.version", "v1.32.0"}},
		{"an existing Cluster moved to a missing class", patch(cluster, `{"spec":{"topology":{"class":"none"}}}`), "", []string{"spec.topology.class", "none"}},
		{"a Cluster without the topology it had", []string{"patch", cluster, "--type", "json", "--patch", `[{"op":"remove","path":"/spec/topology"}]`}, "", []string{"spec.topology"}},
		{"another cluster of a MachineDeployment", patch(deployment, `{"spec":{"clusterName":"other"}}`), "", []string{"spec.clusterName", "cannot be changed"}},
		{"another cluster of a Machine", patch(machine, `{"spec":{"clusterName":"other"}}`), "", []string{"spec.clusterName", "cannot be changed"}},
		{"another cluster name for kubeadm", patch(kcp, `{"spec":{"kubeadmConfigSpec":{"clusterConfiguration":{"clusterName":"other"}}}}`), "",
			[]string{"spec.kubeadmConfigSpec.clusterConfiguration.clusterName", "cannot be modified"}},
		{"a class in use deleted", []string{"delete", "clusterclass", "in-memory"}, "", []string{"in-memory", name}},
	}
}

// Mistakes are refused with a clear answer and a failing exit code, and nothing of them is done.
func TestMistakesAreRefused(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	c := w.Subject(NewCluster("right", w.Class(w.Tools.ProjectTemplate())).Workers(1).Build())
	c.Eventually("it comes up", Ready, ControlPlanes(1), Workers(1), c.Agrees)
	before := w.Versions()
	for _, tc := range mistakes(c.Picture()) {
		t.Run(tc.reason, func(t *testing.T) {
			r := w.Tools.Kubectl(t.Context(), tc.input, append([]string{"--kubeconfig", w.Kubeconfig, "--namespace", w.Namespace}, tc.args...)...)
			refused(t, r, tc.words...)
		})
	}
	if diff := cmp.Diff(before, w.Versions()); diff != "" {
		t.Errorf("mistakes left traces (-before +after):\n%s", diff)
	}
	c.Gone()
}

// refused checks that a program failed, with these words and without a stack trace.
func refused(t *testing.T, r Result, words ...string) {
	t.Helper()
	if !r.Failed {
		t.Fatalf("it was accepted: %s", r)
	}
	for _, word := range words {
		if !strings.Contains(r.Err, word) {
			t.Errorf("the answer does not say %q: %s", word, r)
		}
	}
	if strings.Contains(r.Err, "goroutine ") || strings.Count(strings.TrimSpace(r.Err), "\n") > 6 {
		t.Errorf("the answer is not a short sentence: %s", r)
	}
}

// A Cluster of a class that is not there yet is accepted with a warning, says what it waits for, and comes up when the
// class is there.
func TestClassComesLater(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	input := manifest("early", topology+"    controlPlane: {replicas: 1}\n")
	r := w.Tools.Kubectl(t.Context(), input, append([]string{"--kubeconfig", w.Kubeconfig, "--namespace", w.Namespace}, strings.Fields(apply)...)...)
	if r.Failed || !strings.Contains(r.Err, "Warning") || !strings.Contains(r.Err, "in-memory") {
		t.Fatalf("the answer is no warning that names the class: %s", r)
	}
	c := &Subject{World: w, Name: "early"}
	c.Eventually("it says what it waits for", topologyFails("in-memory"))
	w.Class(w.Tools.ProjectTemplate())
	c.Eventually("it comes up", Ready, ControlPlanes(1), c.Agrees)
	c.Delete()
}

// A class whose template is missing makes nothing, and says which.
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
	c.Eventually("it says which template is missing", topologyFails(missing))
	p := c.Picture()
	if n := len(p.ControlPlanes.Items) + len(p.Deployments.Items) + len(p.Machines.Items); n > 0 || p.Cluster.Spec.InfrastructureRef != nil {
		t.Errorf("something was made of a class that is incomplete:\n%s", p)
	}
	w.Class(w.Tools.ProjectTemplate())
	c.Eventually("it comes up when the template is there", Ready, ControlPlanes(1), Workers(1), c.Agrees)
	c.Delete()
}

// topologyFails is true when the Cluster says that its topology cannot be made, naming something.
func topologyFails(name string) Condition {
	return func(p *Picture) error {
		found := condition.Get(p.Cluster, clusterv1.TopologyReconciledCondition)
		if found == nil || found.Status == "True" || !strings.Contains(found.Message, name) {
			return fmt.Errorf("condition TopologyReconciled does not name %s: %+v", name, found)
		}
		return nil
	}
}

// Commands that cannot work say why, and leave nothing behind.
func TestCommandsThatCannotWork(t *testing.T) {
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
	broken := write("broken", "clusters: [")
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
		{"a kubeconfig that is none, for init", tools.Clusterctl(t.Context(), "", "init", "--infrastructure", "in-memory", "--kubeconfig", broken), []string{broken}},
		{"a kubeconfig that is none, for reading", tools.Clusterctl(t.Context(), "", "get", "kubeconfig", "x", "--kubeconfig", broken), []string{broken}},
		{"a kubeconfig that is not there", tools.Clusterctl(t.Context(), "", "get", "kubeconfig", "x", "--kubeconfig", dir+"/none"), []string{dir + "/none"}},
		{"a variable of a template that is not set", tools.Clusterctl(t.Context(), "", "generate", "cluster", "x", "--from", template, "--kubernetes-version", "v1.30.5", "--target-namespace", "default"),
			[]string{"REGION_OF_CHOICE"}},
		{"a provider that nobody knows", tools.Clusterctl(t.Context(), "", "generate", "cluster", "x", "--infrastructure", "nowhere", "--kubernetes-version", "v1.30.5"), []string{"nowhere"}},
		{"a port that is taken", run(t.Context(), "", tools.Capi, "serve", "--data-dir", dir+"/data", "--secure-port", port), []string{port, "--secure-port"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			refused(t, tc.run, tc.words...)
			if tc.run.Out != "" {
				t.Errorf("a command that fails has no output: %s", tc.run)
			}
		})
	}
}
