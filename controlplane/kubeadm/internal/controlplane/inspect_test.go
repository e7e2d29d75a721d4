package controlplane

import (
	"context"
	"testing"
)

// joining is a workload cluster in which a member joins while the members are asked for the first time.
type joining struct {
	*fakeCluster
	asked int
	// forever: they never agree.
	forever bool
}

func (j *joining) Etcd(ctx context.Context, nodes []string) []EtcdMember {
	answers := j.fakeCluster.Etcd(ctx, nodes)
	if j.asked++; j.asked == 1 || j.forever {
		answers[0].Members = answers[0].Members[1:]
	}
	return answers
}

func TestMembersAreAskedAgainWhileOneJoins(t *testing.T) {
	for forever, want := range map[bool]bool{false: true, true: false} {
		b, f := three(t)
		j := &joining{fakeCluster: f, forever: forever}
		b.workload = j
		o, err := observe(t.Context(), b.scope)
		if err != nil {
			t.Fatal(err)
		}
		if got := memberCondition(o, "b").Status == "True"; got != want || j.asked != 2 {
			t.Errorf("they never agree: %t, healthy: %t, want %t; asked %d times, want twice", forever, got, want, j.asked)
		}
	}
}
