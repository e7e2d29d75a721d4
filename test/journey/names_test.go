package journey

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// TestNamesOfMachines: templates give Machines their names, and those of their Nodes, and Machines copy annotations for Nodes to them.
func TestNamesOfMachines(t *testing.T) {
	t.Parallel()
	const note = "node.cluster.x-k8s.io/rack"
	manifest := Plain{ControlPlanes: 1, Workers: 2}.String()
	for _, r := range []struct{ before, after string }{
		{"  replicas: 1\n", "  replicas: 1\n  machineNamingStrategy: {template: '{{ .cluster.name }}-plane-{{ .random }}'}\n"},
		{"  replicas: 2\n", "  replicas: 2\n  machineNamingStrategy: {template: '{{ .cluster.name }}-worker-{{ .random }}'}\n"},
		{"  selector: {matchLabels: {}}\n  template:\n", "  selector: {matchLabels: {}}\n  template:\n    metadata: {annotations: {" + note + ": r1}}\n"},
	} {
		if strings.Count(manifest, r.before) != 1 {
			t.Fatalf("the manifest does not have %q once", r.before)
		}
		manifest = strings.Replace(manifest, r.before, r.after, 1)
	}
	c := shared.World(t).Plain(manifest)
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(2), c.WorkloadMatches)
	p := c.Snapshot()
	for what, machines := range map[string][]clusterv1.Machine{"plane": p.ControlPlane(), "worker": p.Workers()} {
		for _, m := range machines {
			if !regexp.MustCompile("^c-" + what + "-[a-z0-9]{5}$").MatchString(m.Name) {
				t.Errorf("a Machine is called %s", m.Name)
			}
			if m.Spec.InfrastructureRef.Name != m.Name || m.Spec.Bootstrap.ConfigRef.Name != m.Name {
				t.Errorf("objects of Machine %s are called %s and %s", m.Name, m.Spec.InfrastructureRef.Name, m.Spec.Bootstrap.ConfigRef.Name)
			}
		}
	}
	c.Eventually("Nodes of workers have the annotation", func(p *Snapshot) error {
		nodes, err := c.Workload().Nodes(t.Context())
		if err != nil {
			return err
		}
		for i := range nodes {
			if got, worker := nodes[i].Annotations[note] == "r1", strings.HasPrefix(nodes[i].Name, "c-worker-"); got != worker {
				return fmt.Errorf("Node %s has annotations %v", nodes[i].Name, nodes[i].Annotations)
			}
		}
		return nil
	})
	c.Gone()
}
