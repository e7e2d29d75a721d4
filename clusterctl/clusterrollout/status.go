package clusterrollout

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// Status is how far a rollout is. Fields are added, but neither renamed nor removed.
type Status struct {
	Namespace  string                `json:"namespace"`
	Name       string                `json:"name"`
	Change     fleetv1.RolloutChange `json:"change"`
	Phase      fleetv1.RolloutPhase  `json:"phase"`
	Message    string                `json:"message,omitempty"`
	Conditions []metav1.Condition    `json:"conditions"`
	Plan       *fleetv1.RolloutPlan  `json:"plan,omitempty"`
	StartTime  *metav1.Time          `json:"startTime,omitempty"`
	EndTime    *metav1.Time          `json:"completionTime,omitempty"`
	// Stages are in order.
	Stages []StageStatus `json:"stages"`
	// InChange are the Clusters that are being changed or set back, the longest first.
	InChange []ClusterStatus `json:"inChange"`
	// Failed and Skipped are those that have failed or are left as they are, in groups with the same message.
	Failed  []MessageGroup `json:"failed"`
	Skipped []MessageGroup `json:"skipped"`
	// Next is what users can do.
	Next []Step `json:"next"`
}

// StageStatus counts the Clusters of a stage.
type StageStatus struct {
	fleetv1.RolloutStageStatus `json:",inline"`

	// Gate is what the stage waits for, and Waits is set if it waits for that now.
	Gate  fleetv1.RolloutGate `json:"gate,omitempty"`
	Waits bool                `json:"waits,omitempty"`
}

// ClusterStatus is a Cluster in change.
type ClusterStatus struct {
	Name    string               `json:"name"`
	Stage   string               `json:"stage"`
	State   fleetv1.RolloutState `json:"state"`
	Since   metav1.Time          `json:"since"`
	Message string               `json:"message,omitempty"`
}

// MessageGroup is Clusters with the same message.
type MessageGroup struct {
	Message  string   `json:"message"`
	Clusters []string `json:"clusters"`
}

// StatusOf returns the status of a rollout from its object and the entries of its Clusters.
func StatusOf(r *fleetv1.ClusterRollout, entries []Entry) *Status {
	s := &Status{
		Namespace: r.Namespace, Name: r.Name, Change: r.Spec.Change, Phase: cmp.Or(r.Status.Phase, fleetv1.RolloutPlanning),
		Conditions: slices.Clone(r.Status.Conditions), Plan: r.Status.Plan, StartTime: r.Status.StartTime, EndTime: r.Status.CompletionTime,
		Stages: stages(r, entries), InChange: []ClusterStatus{}, Next: Next(r),
	}
	s.Message = message(r)
	for _, e := range entries {
		if e.State == fleetv1.RolloutStateUpdating || e.State == fleetv1.RolloutStateRollingBack {
			s.InChange = append(s.InChange, ClusterStatus{e.Cluster, e.Stage, e.State, e.Since, e.Message})
		}
	}
	slices.SortFunc(s.InChange, func(a, b ClusterStatus) int {
		return cmp.Or(a.Since.Compare(b.Since.Time), cmp.Compare(a.Name, b.Name))
	})
	s.Failed, s.Skipped = messages(entries, fleetv1.RolloutStateFailed), messages(entries, fleetv1.RolloutStateSkipped)
	return s
}

// message returns what a rollout does or waits for.
func message(r *fleetv1.ClusterRollout) string {
	if c := report.Get(r, fleetv1.RolloutHaltedCondition); c != nil && c.Status == metav1.ConditionTrue && c.Message != "" {
		return c.Message
	}
	if c := report.Get(r, fleetv1.RolloutCompletedCondition); c != nil {
		return c.Message
	}
	return ""
}

// stages counts the Clusters of each stage by their entries, which are newer than the status. The status counts if there are fewer entries:
// another rollout may have replaced them.
func stages(r *fleetv1.ClusterRollout, entries []Entry) []StageStatus {
	strategy := r.Status.Strategy
	if strategy == nil {
		strategy = r.Spec.Strategy
	}
	gates := map[string]fleetv1.RolloutGate{}
	out, waiting := []StageStatus{}, WaitingStage(r)
	for i := range r.Status.Stages {
		out = append(out, StageStatus{RolloutStageStatus: r.Status.Stages[i]})
	}
	if strategy != nil {
		for i := range strategy.Stages {
			gates[strategy.Stages[i].Name] = strategy.Stages[i].Gate
			if len(r.Status.Stages) == 0 {
				out = append(out, StageStatus{RolloutStageStatus: fleetv1.RolloutStageStatus{Name: strategy.Stages[i].Name}})
			}
		}
	}
	for i := range out {
		stage := &out[i]
		if counts := count(stage.Name, entries); counts.Total >= stage.Total {
			counts.SoakUntil, counts.ApprovedBy = stage.SoakUntil, stage.ApprovedBy
			stage.RolloutStageStatus = counts
		}
		stage.Gate, stage.Waits = gates[stage.Name], stage.Name == waiting
	}
	return out
}

// count counts the entries of a stage.
func count(stage string, entries []Entry) fleetv1.RolloutStageStatus {
	s := fleetv1.RolloutStageStatus{Name: stage}
	for _, e := range entries {
		if e.Stage == stage {
			s.Count(e.State)
		}
	}
	return s
}

// messages returns the Clusters in a state, in groups with the same message, the largest first.
func messages(entries []Entry, state fleetv1.RolloutState) []MessageGroup {
	out, index := []MessageGroup{}, map[string]int{}
	for _, e := range entries {
		if e.State != state {
			continue
		}
		text := general(cmp.Or(e.Message, e.Reason), e.Cluster)
		if _, known := index[text]; !known {
			index[text] = len(out)
			out = append(out, MessageGroup{Message: text})
		}
		g := &out[index[text]]
		g.Clusters = append(g.Clusters, e.Cluster)
	}
	for i := range out {
		slices.Sort(out[i].Clusters)
	}
	slices.SortStableFunc(out, func(a, b MessageGroup) int {
		return cmp.Or(cmp.Compare(len(b.Clusters), len(a.Clusters)), cmp.Compare(a.Message, b.Message))
	})
	return out
}

// age returns the time since another one, for people.
func age(now time.Time, since metav1.Time) string {
	return duration.ShortHumanDuration(now.Sub(since.Time))
}
