package journey

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMove moves ten Clusters to another management cluster, and back. Both management clusters keep running, so that a source
// that still reconciled would interfere. No object is created or replaced: Machines keep their names, provider IDs and Nodes.
func TestMove(t *testing.T) {
	t.Parallel()
	const clusters = 10
	tools := shared.Management(t).Tools
	var sides [2]*Management
	for i := range sides {
		s := NewStandalone(t, tools)
		if err := tools.install(t.Context(), s.kubeconfig()); err != nil {
			t.Fatal(err)
		}
		sides[i] = s.Management()
	}
	w := sides[0].World(t)
	w.Patient()
	class := w.Class(tools.ProjectTemplate())
	subjects := make([]*Subject, clusters)
	for i := range subjects {
		subjects[i] = w.Subject(NewCluster(fmt.Sprintf("moved-%d", i), class).ControlPlanes(1).Workers(1).Build())
	}
	for _, c := range subjects {
		c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(1))
	}
	before := w.Identity()
	for i, to := range []*Management{sides[1], sides[0]} {
		from := w
		w = from.Move(to)
		for _, c := range subjects {
			moved := c.Moved(w)
			moved.Eventually("the Cluster is ready after the move", Ready, ControlPlanes(1), Workers(1), moved.WorkloadMatches)
		}
		if diff := cmp.Diff(before, w.Identity()); diff != "" {
			t.Errorf("after move %d: -before +after:\n%s", i+1, diff)
		}
		if left := from.Identity(); len(left.Objects) > 0 {
			t.Errorf("objects left in the source: %v", left.Objects)
		}
	}
}
