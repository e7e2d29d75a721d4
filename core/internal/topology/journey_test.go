package topology

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestClusterOfAClass(t *testing.T) {
	w := newWorld(t)
	c := w.cluster("c")
	w.created(c)
	t.Log(w.reconciled(c))
	if diff := cmp.Diff([]string(nil), w.reconciled(c)); diff != "" {
		t.Errorf("a Cluster that is as it should be costs nothing, -want +got:\n%s", diff)
	}
	t.Log(c.Status.Conditions, c.Spec.InfrastructureRef, c.Spec.ControlPlaneRef, c.Labels)
}
