package machine

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// deletionStage is what the deletion of a Machine waits for.
type deletionStage struct{ reason, message string }

// deletionStep does a step of the deletion.
type deletionStep = func(context.Context, *scope) (step.Result, error)

// stage wraps a step of the deletion, so that it is known where the deletion is if the step does not complete. message returns what to
// say; by default, it is what the step waits for.
func stage(reason string, message func(*scope) string, do deletionStep) deletionStep {
	return func(ctx context.Context, s *scope) (step.Result, error) {
		result, err := do(ctx, s)
		switch {
		case err != nil:
			s.found.stage = deletionStage{reason, "Please check controller logs for errors"}
		case result.Ends() && message != nil:
			s.found.stage = deletionStage{reason, message(s)}
		case result.Ends():
			s.found.stage = deletionStage{reason, "Waiting for " + result.Waiting()}
		}
		return result, err
	}
}

// deletingReport reports where the deletion is.
func (s *scope) deletingReport() metav1.Condition {
	const t = clusterv1.DeletingCondition
	switch {
	case s.machine.DeletionTimestamp == nil:
		return report.False(t, clusterv1.NotDeletingReason, "")
	case s.found.stage.reason == "":
		return report.True(t, clusterv1.DeletionCompletedReason, "Deletion completed")
	}
	return report.True(t, s.found.stage.reason, "%s", s.found.stage.message)
}

// drainStage says which Pods the drain waits for, or why it fails.
func drainStage(s *scope) string {
	c := condition.Get(s.machine, clusterv1.DrainingSucceededV1Beta1Condition)
	if c == nil || c.Message == "" {
		return "Waiting for a connection to the workload cluster to drain the Node"
	}
	lines := "* " + c.Message
	if s.found.pods != nil {
		lines = s.found.pods.Lines()
	}
	since, _ := began(s.machine, c.Type)
	return "Drain not completed yet (started at " + since.UTC().Format(time.RFC3339) + "):\n" + lines
}

func leavingInfrastructure(s *scope) string { return leaving(s.machine.Spec.InfrastructureRef.Kind) }

func leavingBootstrap(s *scope) string { return leaving(s.machine.Spec.Bootstrap.ConfigRef.Kind) }

func leaving(kind string) string { return "Waiting for " + kind + " to be deleted" }
