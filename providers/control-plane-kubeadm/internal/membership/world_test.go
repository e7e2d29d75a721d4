package membership

import (
	"testing"

	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/health"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
)

// bench is a World with an observed workload cluster.
type bench struct {
	*kcptest.World
	workload Workload
	observed *health.Observation
	lost     bool
}

func (b *bench) state() State {
	return State{ControlPlane: b.ControlPlane, Workload: b.workload, Observed: b.observed, Lost: b.lost}
}

func (b *bench) remover() *Remover {
	return &Remover{Clients: b.Clients}
}

func three(t *testing.T) (*bench, *kcptest.Workload) {
	t.Helper()
	w, f := kcptest.Three(t)
	b := &bench{World: w}
	reload(t, b, f)
	return b, f
}

// reload reads everything again, as the next reconcile does.
func reload(t *testing.T, b *bench, f *kcptest.Workload) {
	t.Helper()
	b.Reload(t)
	b.workload = f
	observed, err := health.Observe(t.Context(), b.ControlPlane, f)
	if err != nil {
		t.Fatal(err)
	}
	b.observed = observed
}
