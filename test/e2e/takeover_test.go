package e2e

import (
	"path/filepath"
	"testing"
	"time"

	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/test/journey"
)

// TestTakeover takes over a management cluster with the components of v1.7 and a Cluster of its class for Docker, upgrades the Cluster, and
// hands it back. Its API server is written to all the time, and no Machine is replaced but by the upgrade.
func TestTakeover(t *testing.T) {
	testenv.Soak(t)
	t.Parallel()
	r, w := journey.NewPublished(t, shared.Management(t).Tools)
	w.Patient()
	dir := filepath.Join(w.Tools.Root, "..", "shared", "facts", "data", "templates-v1.7", "docker")
	template := journey.Template{
		Cluster: filepath.Join(dir, "cluster-template-development.yaml"), Class: filepath.Join(dir, "clusterclass-quick-start.yaml"),
	}
	w.Class(template)
	cluster := w.Generated(template, "taken", older, 1, 1)
	cluster.Spec.Topology.Workers.MachinePools = nil
	networkSet(t, w, cluster)
	var c *journey.Subject
	stage(t, "1 control plane machine and 1 worker of v1.7", func() {
		c = subject(t, w, cluster)
		c.Eventually("the Cluster becomes ready", journey.Ready, journey.ControlPlanes(1), journey.Workers(1), journey.Version(older), c.WorkloadMatches)
	})
	before := c.Snapshot()
	same := []journey.Condition{
		journey.Ready, journey.SameMachines((*journey.Snapshot).Workers, before), journey.SameMachines((*journey.Snapshot).ControlPlane, before),
	}
	api := writes(t, c)
	still := c.Always("no Machine is replaced", same[1:]...)
	stage(t, "taken over", func() {
		r.Release("v2.0.0")
		w.Upgrade()
		c.Eventually("the Cluster stays ready", append(same, c.WorkloadMatches)...)
	})
	still()
	api.end(2 * time.Second)

	api = writes(t, c)
	consistent := c.EtcdIsConsistent(1, 2)
	stage(t, "upgraded", func() {
		c.Change(journey.SetVersion(newer))
		c.Eventually("the upgrade ends", journey.Ready, journey.ControlPlanes(1), journey.Workers(1), journey.Version(newer), c.WorkloadMatches)
	})
	consistent()
	api.end(15 * time.Second)

	api = writes(t, c)
	stage(t, "handed back", c.HandedBack)
	api.end(2 * time.Second)
	stage(t, "deleted", func() { gone(t, c) })
}
