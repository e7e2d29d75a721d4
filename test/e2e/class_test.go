package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/test/journey"
)

// TestClass takes a Cluster of v1.7's ClusterClass for Docker, unmodified, with a MachineDeployment and a MachinePool, through its
// life: 1 to 3 control plane machines, an upgrade to the next minor, the deletion of a worker with a PodDisruptionBudget, 3 to 1
// control plane machines, deletion.
// An application and the API server are asked all the time.
func TestClass(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	w.Patient()
	dir := filepath.Join(w.Tools.Root, "..", "shared", "facts", "data", "templates-v1.7", "docker")
	template := journey.Template{
		Cluster: filepath.Join(dir, "cluster-template-development.yaml"), Class: filepath.Join(dir, "clusterclass-quick-start.yaml"),
	}
	w.Class(template)
	cluster := w.Generated(template, "class", older, 1, 2)
	cluster.Spec.Topology.Workers.MachinePools[0].Replicas = ptr.To[int32](1) // as many machines as fit on one host
	networkSet(t, w, cluster)

	var c *journey.Subject
	stage(t, "1 control plane machine, 2 workers and a pool of 1", func() {
		c = subject(t, w, cluster)
		c.Eventually("the Cluster becomes ready", journey.Ready, journey.ControlPlanes(1), journey.Workers(2), journey.Pools(1), journey.Version(older), c.WorkloadMatches)
	})
	kubectl(t, c, "--namespace", "kube-system", "rollout", "status", "deployment/coredns", "--timeout", "120s")
	kubectl(t, c, "apply", "--filename", filepath.Join("testdata", "application.yaml"))
	kubectl(t, c, "rollout", "status", "deployment/web", "--timeout", "120s")

	api, app, members := writes(t, c), application(t, c), quorum(t, c)
	consistent := c.EtcdIsConsistent(1, 3)
	stage(t, "scaled the control plane from 1 to 3", func() {
		c.Change(journey.SetControlPlanes(3))
		c.Eventually("the control plane is scaled up", journey.Ready, journey.ControlPlanes(3), journey.Workers(2), c.WorkloadMatches)
	})
	consistent()
	api.end(10 * time.Second)
	app.end(10 * time.Second)

	api, app = writes(t, c), application(t, c)
	consistent = c.EtcdIsConsistent(3, 4)
	still := c.Always("an upgrade keeps the Cluster available", journey.AvailableControlPlane(2), journey.AvailableWorkers(1), journey.ControlPlaneFirst(newer))
	before := c.Snapshot()
	stage(t, "upgraded 3 control plane machines, 2 workers and the pool", func() {
		c.Change(journey.SetVersion(newer))
		c.Eventually("the upgrade ends", journey.Ready, journey.ControlPlanes(3), journey.Workers(2), journey.Pools(1), journey.Version(newer),
			journey.NewMachines(func(p *journey.Snapshot) []clusterv1.Machine { return p.Machines.Items }, before), c.WorkloadMatches)
	})
	still()
	consistent()
	api.end(10 * time.Second)
	app.end(10 * time.Second)

	api, app = writes(t, c), application(t, c)
	stage(t, "replaced a worker that was deleted", func() { replaceWorker(t, c) })
	app.end(10 * time.Second)

	stage(t, "scaled the control plane from 3 to 1", func() {
		c.Change(journey.SetControlPlanes(1))
		c.Eventually("the control plane is scaled down", journey.Ready, journey.ControlPlanes(1), journey.Workers(2), c.WorkloadMatches)
	})
	api.end(10 * time.Second)
	members.end(10 * time.Second)
	stage(t, "deleted", func() { gone(t, c) })
}

// replaceWorker deletes the Machine of a worker, and waits until another has replaced it.
func replaceWorker(t *testing.T, c *journey.Subject) {
	t.Helper()
	victim := c.Snapshot().Deployed()[0]
	if err := c.Client.Delete(t.Context(), &victim); err != nil {
		t.Fatal(err)
	}
	c.Eventually("the worker is replaced", func(p *journey.Snapshot) error {
		if slices.ContainsFunc(p.Machines.Items, func(m clusterv1.Machine) bool {
			return client.ObjectKeyFromObject(&m) == client.ObjectKeyFromObject(&victim)
		}) {
			return fmt.Errorf("Machine %s still exists", victim.Name)
		}
		return nil
	}, journey.Ready, journey.Workers(2), c.WorkloadMatches)
}
