package topology

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// TestPublishedClasses creates Clusters of the published quick-start classes.
func TestPublishedClasses(t *testing.T) {
	w := newWorld(t)
	e := server.Start(t, "providers/infrastructure-docker/config/crd")
	data := filepath.Join(e.Root, "..", "shared", "facts", "data", "templates-v1.7")
	if _, err := os.Stat(data); err != nil {
		t.Skipf("the reference data does not exist: %v", err)
	}
	one := int32(1)
	for _, tc := range []struct {
		file, class string
		pools       []clusterv1.MachinePoolTopology
		writes      int
	}{
		{"inmemory/clusterclass-in-memory-quick-start.yaml", "in-memory-quick-start", nil, 10},
		{"docker/clusterclass-quick-start.yaml", "quick-start", []clusterv1.MachinePoolTopology{{Class: "default-worker", Name: "mp-0", Replicas: &one}}, 11},
	} {
		t.Run(tc.class, func(t *testing.T) {
			w := *w
			w.t = t
			w.applyFile(filepath.Join(data, tc.file))
			w.reconciledClass(tc.class)
			c := w.cluster(tc.class)
			c.Spec.Topology.Class = tc.class
			c.Spec.Topology.Workers.MachineDeployments[0].Class = "default-worker"
			c.Spec.Topology.Workers.MachinePools = tc.pools
			w.created(c)
			if sent := normalized(w.reconciled(c)); len(sent) != tc.writes {
				t.Errorf("%d writes, want %d:\n%s", len(sent), tc.writes, strings.Join(sent, "\n"))
			}
			if !condition.IsTrue(c, clusterv1.TopologyReconciledCondition) {
				t.Errorf("conditions = %v", c.Status.Conditions)
			}
			w.expectSteady(c, "creation")
		})
	}
}

// TestReleasedDockerClass creates a Cluster of the class that the Docker provider is released with.
func TestReleasedDockerClass(t *testing.T) {
	w := newWorld(t)
	e := server.Start(t, "providers/infrastructure-docker/config/crd")
	one := int32(1)
	w.applyFile(filepath.Join(e.Root, "providers", "infrastructure-docker", "config", "templates", "clusterclass-quick-start.yaml"))
	w.reconciledClass("quick-start")
	c := w.cluster("quick-start")
	c.Spec.Topology.Class = "quick-start"
	c.Spec.Topology.Workers.MachineDeployments[0].Class = "default-worker"
	c.Spec.Topology.Workers.MachinePools = []clusterv1.MachinePoolTopology{{Class: "default-worker", Name: "mp-0", Replicas: &one}}
	w.created(c)
	if sent := normalized(w.reconciled(c)); len(sent) != 11 {
		t.Errorf("%d writes, want 11:\n%s", len(sent), strings.Join(sent, "\n"))
	}
	if !condition.IsTrue(c, clusterv1.TopologyReconciledCondition) {
		t.Errorf("conditions = %v", c.Status.Conditions)
	}
}
