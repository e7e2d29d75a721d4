package rolloutplan

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
)

// maxExamples is how many Clusters that cannot be changed or planned are named.
const maxExamples = 10

// Outcome is what a change does to a Cluster of a stage.
type Outcome struct {
	Cluster string
	UID     types.UID
	Stage   string
	Effect
}

// Summary returns the plan of a rollout: what the change does to all its Clusters. class is the ClusterClass of the change; nil if it has
// none.
func Summary(change *fleetv1.RolloutChange, class *fleetv1.PlannedClass, outcomes []Outcome) (*fleetv1.RolloutPlan, error) {
	planned := make([]Planned, 0, len(outcomes))
	counts := map[fleetv1.RolloutEffect]int32{}
	var machines int32
	var examples []fleetv1.RolloutExample
	for _, o := range outcomes {
		planned = append(planned, Planned{UID: o.UID, Stage: o.Stage, Effect: o.Effect.Effect, Machines: o.Machines})
		counts[o.Effect.Effect]++
		machines += o.Machines
		if o.Effect.Effect == fleetv1.RolloutForbidden || o.Effect.Effect == fleetv1.RolloutUnknown {
			examples = append(examples, fleetv1.RolloutExample{Cluster: o.Cluster, Reason: o.Reason})
		}
	}
	hash, err := Hash(change, class, planned)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(examples, func(a, b fleetv1.RolloutExample) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return &fleetv1.RolloutPlan{
		Hash: hash, Class: class, Clusters: ptr.To(int32(len(outcomes))), Machines: &machines,
		Unchanged: ptr.To(counts[fleetv1.RolloutUnchanged]), InPlace: ptr.To(counts[fleetv1.RolloutInPlace]),
		Replacing: ptr.To(counts[fleetv1.RolloutReplacing]), Forbidden: ptr.To(counts[fleetv1.RolloutForbidden]),
		Unknown: ptr.To(counts[fleetv1.RolloutUnknown]), Examples: examples[:min(len(examples), maxExamples)], Irreversible: Irreversible(change),
	}, nil
}
