package health

import (
	"context"
	"testing"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/quorum"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// joining is a workload cluster in which a member joins during the first query.
type joining struct {
	*kcptest.Workload
	queried int
	// forever is true if they never agree.
	forever bool
}

func (j *joining) Etcd(ctx context.Context, nodes []string) []quorum.Member {
	answers := j.Workload.Etcd(ctx, nodes)
	if j.queried++; j.queried == 1 || j.forever {
		answers[0].Members = answers[0].Members[1:]
	}
	return answers
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

// A component that has never been healthy has not regressed.
func TestRegression(t *testing.T) {
	for healthy, want := range map[bool]bool{true: true, false: false} {
		w, f := kcptest.Three(t)
		delete(f.PodObjects, "kube-scheduler-b")
		if !healthy {
			condition.Delete(w.Named("b"), controlplanev1.MachineSchedulerPodHealthyCondition)
		}
		found, _, err := Inspector{Outside: w.Outside}.Inspect(t.Context(), w.ControlPlane, f, false)
		if err != nil {
			t.Fatal(err)
		}
		if found.Regressed != want || condition.IsTrue(w.Named("b"), controlplanev1.MachineSchedulerPodHealthyCondition) {
			t.Errorf("healthy before: %t, regressed: %t, want %t", healthy, found.Regressed, want)
		}
	}
}
