package host

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

func TestPlanRollout(t *testing.T) {
	t.Parallel()
	var (
		oldReady    = member{hash: "old", ready: true}
		oldFailing  = member{hash: "old"}
		oldStopping = member{hash: "old", stopping: true}
		needed      = member{hash: "old", ready: true, needed: true}
		midReady    = member{hash: "mid", ready: true}
		midFailing  = member{hash: "mid"}
		newStarting = member{hash: "new"}
		newReady    = member{hash: "new", ready: true}
		newStopping = member{hash: "new", stopping: true}
	)
	tests := []struct {
		reason   string
		members  []member
		recreate bool
		unknown  bool
		want     changes
	}{
		{reason: "the first instance starts", want: changes{start: true}},
		{reason: "a template that cannot run is not started", unknown: true},
		{reason: "the new instance starts beside the old one", members: []member{oldReady}, want: changes{start: true}},
		{reason: "it also starts beside an old one that fails", members: []member{oldFailing}, want: changes{start: true}},
		{reason: "the old one serves until the new one is ready", members: []member{oldReady, newStarting}},
		{reason: "then the old one stops", members: []member{oldReady, newReady}, want: changes{stop: []int{0}}},
		{reason: "and is stopped once", members: []member{oldStopping, newReady}},
		{reason: "nothing stops for a template that cannot run", members: []member{oldReady}, unknown: true},
		{reason: "not even a failing instance", members: []member{oldFailing}, unknown: true},
		{reason: "an instance between the old and the new template makes room", members: []member{oldReady, midFailing}, want: changes{stop: []int{1}}},
		{reason: "also for a template that cannot run", members: []member{oldReady, midFailing}, unknown: true, want: changes{stop: []int{1}}},
		{reason: "of two that serve, the newer one stays", members: []member{oldReady, midReady}, want: changes{stop: []int{0}}},
		{reason: "the new one starts when there is room again", members: []member{oldStopping, midReady}},
		{reason: "a rollback keeps the instance that never stopped serving", members: []member{newReady, midFailing}, want: changes{stop: []int{1}}},
		{reason: "a rollback to an instance that is stopping waits for its end", members: []member{newStopping, midReady}},
		{reason: "even if nothing else runs", members: []member{newStopping}},
		{reason: "a stopping instance of another template delays nothing", members: []member{oldStopping}, want: changes{start: true}},
		{reason: "an orphan that a Service needs goes on beside the new one", members: []member{needed, newReady}},
		{reason: "also when the new one starts", members: []member{needed}, want: changes{start: true}},
		{reason: "Recreate stops it, or the new one would never start", members: []member{needed}, recreate: true, want: changes{stop: []int{0}}},
		{reason: "Recreate stops the old one first", members: []member{oldReady}, recreate: true, want: changes{stop: []int{0}}},
		{reason: "Recreate waits until it has ended", members: []member{oldStopping}, recreate: true},
		{reason: "Recreate stops the old one even for a template that cannot run, like Kubernetes", members: []member{oldReady}, recreate: true, unknown: true, want: changes{stop: []int{0}}},
		{reason: "Recreate keeps what it has started", members: []member{newStarting}, recreate: true},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			got := planRollout(test.members, "new", !test.unknown, !test.recreate)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(changes{})); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSurges(t *testing.T) {
	t.Parallel()
	tests := []struct {
		reason   string
		strategy appsv1.DeploymentStrategy
		want     bool
	}{
		{reason: "the default is a rolling update", want: true},
		{reason: "Recreate has one instance at a time", strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}},
		{reason: "percentages are rounded up", strategy: rolling(intstr.FromString("1%")), want: true},
		{reason: "without a surge, there is one instance at a time", strategy: rolling(intstr.FromInt32(0))},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Strategy: test.strategy}}
			if got := surges(d); got != test.want {
				t.Errorf("surges returned %t", got)
			}
		})
	}
}

func rolling(surge intstr.IntOrString) appsv1.DeploymentStrategy {
	return appsv1.DeploymentStrategy{
		Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: ptr.To(surge)},
	}
}
