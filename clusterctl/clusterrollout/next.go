package clusterrollout

import (
	"fmt"
	"slices"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/rolloutplan"
)

// Step is what users can do.
type Step struct {
	What    string `json:"what"`
	Command string `json:"command"`
}

// WaitingStage returns the stage that waits for an approval; empty if none does.
func WaitingStage(r *fleetv1.ClusterRollout) string {
	if r.Status.Phase != fleetv1.RolloutWaitingForApproval {
		return ""
	}
	strategy := r.Status.Strategy
	if strategy == nil {
		strategy = r.Spec.Strategy
	}
	if strategy == nil {
		return ""
	}
	for i := range strategy.Stages {
		stage := &strategy.Stages[i]
		if stage.Gate == fleetv1.RolloutGateApproval && approval(r, stage.Name) == nil {
			return stage.Name
		}
	}
	return ""
}

// approval returns the approval of a stage of the current plan; nil if there is none.
func approval(r *fleetv1.ClusterRollout, stage string) *fleetv1.RolloutApproval {
	i := slices.IndexFunc(r.Spec.Approvals, func(a fleetv1.RolloutApproval) bool {
		return a.Stage == stage && r.Status.Plan != nil && a.PlanHash == r.Status.Plan.Hash
	})
	if i < 0 {
		return nil
	}
	return &r.Spec.Approvals[i]
}

// Next returns what users can do next with a rollout.
func Next(r *fleetv1.ClusterRollout) []Step {
	command := func(verb, args string) string {
		return fmt.Sprintf("clusterctl rollout %s %s -n %s%s", verb, r.Name, r.Namespace, args)
	}
	var steps []Step
	switch r.Status.Phase {
	case fleetv1.RolloutWaitingForApproval:
		if stage := WaitingStage(r); stage != "" {
			hash := ""
			if r.Status.Plan != nil {
				hash = " --plan-hash " + r.Status.Plan.Hash
			}
			steps = append(steps, Step{"Begin stage " + stage, command("approve", " --stage "+stage+hash)})
		}
		steps = append(steps, Step{"See what it does", command("plan", "")})
	case fleetv1.RolloutHalted:
		steps = append(steps, Step{"Continue, and consider Clusters that have failed anew", command("retry", "")},
			Step{"End it", command("abort", "")})
		if rolloutplan.Reversible(&r.Spec.Change) {
			steps = append(steps, Step{"End it, and set back what it has changed" + exceptVersion(r), command("abort", " --rollback")})
		}
	case fleetv1.RolloutPaused:
		steps = append(steps, Step{"Continue", fmt.Sprintf("clusterctl rollout resume clusterrollout/%s -n %s", r.Name, r.Namespace)})
	case fleetv1.RolloutProgressing, fleetv1.RolloutSoaking:
		steps = append(steps,
			Step{"Change no more Clusters for now", fmt.Sprintf("clusterctl rollout pause clusterrollout/%s -n %s", r.Name, r.Namespace)})
	case fleetv1.RolloutPlanning, fleetv1.RolloutRollingBack, fleetv1.RolloutCompleted, fleetv1.RolloutAborted:
	}
	return steps
}

// exceptVersion says that a version does not go back, if the change has one.
func exceptVersion(r *fleetv1.ClusterRollout) string {
	if r.Spec.Change.Version == "" {
		return ""
	}
	return ", except for the version"
}
