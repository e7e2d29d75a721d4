package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/test/journey"
)

// pivot moves the objects of the cluster out of the management cluster that has created it, into itself. There it scales itself up, and there
// is called. Then its objects move back. No machine is replaced, and the API server responds throughout.
func (m *management) pivot(clients *journey.World, there func()) {
	t, c := m.t, m.subject
	t.Helper()
	api := writes(t, c)
	inside := clients.Tools.Connect(t, m.kubeconfig)
	w := moved(t, "moved into itself", c, inside, 1)
	machines := containers(t, c.Name)
	own := c.Moved(w)
	stage(t, "scaled from 1 to 2 workers, by itself", func() {
		own.Change(journey.SetWorkers(2))
		own.Eventually("the Cluster is scaled up", journey.Ready, journey.ControlPlanes(1), journey.Workers(2), own.WorkloadMatches)
	})
	for _, id := range machines {
		if !slices.Contains(containers(t, c.Name), id) {
			t.Errorf("container %s was removed", id)
		}
	}
	there()
	m.subject = own.Moved(moved(t, "moved back", own, clients.Management, 2))
	api.end(10 * time.Second)
}

// moved moves a Cluster with one control plane machine to another management cluster, and checks that this changes neither its
// objects nor its containers.
func moved(t *testing.T, what string, c *journey.Subject, to *journey.Management, workers int) *journey.World {
	t.Helper()
	before, machines := c.Identity(), containers(t, c.Name)
	var w *journey.World
	stage(t, what, func() { w = c.Move(to) })
	stage(t, "ready again", func() {
		there := c.Moved(w)
		there.Eventually("the Cluster is ready after the move", journey.Ready, journey.ControlPlanes(1), journey.Workers(workers), there.WorkloadMatches)
	})
	if diff := cmp.Diff(before, w.Identity()); diff != "" {
		t.Errorf("%s: -before +after:\n%s", what, diff)
	}
	if diff := cmp.Diff(machines, containers(t, c.Name)); diff != "" {
		t.Errorf("%s: containers: -before +after:\n%s", what, diff)
	}
	if left := c.Identity(); len(left.Objects) > 0 {
		t.Errorf("%s: left in the source: %v", what, left.Objects)
	}
	return w
}
