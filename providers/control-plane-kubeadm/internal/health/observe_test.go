package health

import (
	"context"
	"testing"

	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/quorum"
)

// joining is a workload cluster in which a member joins during the first query.
type joining struct {
	*kcptest.Workload
	queried int
	// forever is true if they never agree.
	forever bool
}

func (j *joining) Etcd(ctx context.Context, nodes []string) []quorum.Member {
	responses := j.Workload.Etcd(ctx, nodes)
	if j.queried++; j.queried == 1 || j.forever {
		responses[0].Members = responses[0].Members[1:]
	}
	return responses
}

func TestMembersAreQueriedAgainIfTheyDisagree(t *testing.T) {
	for forever, want := range map[bool]bool{false: true, true: false} {
		w, f := kcptest.Three(t)
		j := &joining{Workload: f, forever: forever}
		o, err := Observe(t.Context(), w.ControlPlane, j)
		if err != nil {
			t.Fatal(err)
		}
		if got := memberCondition(o, "b").Status == "True"; got != want || j.queried != 2 {
			t.Errorf("they never agree: %t, healthy: %t, want %t; queried %d times, want twice", forever, got, want, j.queried)
		}
	}
}
