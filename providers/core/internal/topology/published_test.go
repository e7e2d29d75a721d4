package topology

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
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
			c.Spec.Topology.ClassRef.Name = tc.class
			c.Spec.Topology.Workers.MachineDeployments[0].Class = "default-worker"
			c.Spec.Topology.Workers.MachinePools = tc.pools
			w.created(c)
			if sent := normalized(w.reconciled(c)); len(sent) != tc.writes {
				t.Errorf("%d writes, want %d:\n%s", len(sent), tc.writes, strings.Join(sent, "\n"))
			}
			if !condition.IsTrue(c, clusterv1.TopologyReconciledV1Beta1Condition) {
				t.Errorf("conditions = %v", c.GetV1Beta1Conditions())
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
	c.Spec.Topology.ClassRef.Name = "quick-start"
	c.Spec.Topology.Workers.MachineDeployments[0].Class = "default-worker"
	c.Spec.Topology.Workers.MachinePools = []clusterv1.MachinePoolTopology{{Class: "default-worker", Name: "mp-0", Replicas: &one}}
	w.created(c)
	if sent := normalized(w.reconciled(c)); len(sent) != 11 {
		t.Errorf("%d writes, want 11:\n%s", len(sent), strings.Join(sent, "\n"))
	}
	if !condition.IsTrue(c, clusterv1.TopologyReconciledV1Beta1Condition) {
		t.Errorf("conditions = %v", c.GetV1Beta1Conditions())
	}
	for version, want := range map[string]string{"v1.24.17": "pod-security.admission.config.k8s.io/v1beta1\n", "v1.25.0": "pod-security.admission.config.k8s.io/v1\n"} {
		c := w.cluster("at-" + strings.ReplaceAll(version, ".", "-"))
		c.Spec.Topology.ClassRef.Name, c.Spec.Topology.Version = "quick-start", version
		c.Spec.Topology.Workers.MachineDeployments[0].Class = "default-worker"
		c.Spec.Topology.Variables = []clusterv1.ClusterVariable{{Name: "podSecurityStandard", Value: raw(`{"enabled": true, "enforce": "baseline", "audit": "restricted", "warn": "restricted"}`)}}
		w.created(c)
		w.reconciled(c)
		files := fieldOf(w.one("KubeadmControlPlane", c.Name, c), "spec.kubeadmConfigSpec.files").([]any)
		if content := files[0].(map[string]any)["content"].(string); !strings.Contains(content, want) {
			t.Errorf("API servers of %s need %s:\n%s", version, want, content)
		}
	}
}
