package rolloutplan

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
)

// Selection selects Clusters.
type Selection struct {
	selector labels.Selector
	classes  []string
}

// NewSelection returns the selection of a rollout. Errors name the field.
func NewSelection(spec *fleetv1.ClusterRolloutSpec) (Selection, error) {
	selector, err := metav1.LabelSelectorAsSelector(&spec.ClusterSelector)
	if err != nil {
		return Selection{}, fmt.Errorf("spec.clusterSelector: %w", err)
	}
	return Selection{selector: selector, classes: spec.ClassNames}, nil
}

// Selects reports whether a Cluster is selected: it has a topology, and is not being deleted.
func (s Selection) Selects(c *clusterv1.Cluster) bool {
	return c.DeletionTimestamp.IsZero() && c.Spec.Topology.IsDefined() && s.selector.Matches(labels.Set(c.Labels)) &&
		(len(s.classes) == 0 || slices.Contains(s.classes, c.Spec.Topology.ClassRef.Name))
}

// Order compares Clusters by their turn in a stage. It follows from their UIDs, so that it is the same in every process, and Clusters with
// similar names are not changed at the same time.
func Order(a, b types.UID) int {
	return cmp.Or(cmp.Compare(turn(a), turn(b)), cmp.Compare(a, b))
}

func turn(uid types.UID) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(uid))
	return h.Sum64()
}

// Assign returns the stage of each Cluster, by UID: the first one that selects it. Clusters that no stage selects are missing. Errors
// name the field.
func Assign(strategy *fleetv1.RolloutStrategy, clusters []*clusterv1.Cluster) (map[types.UID]string, error) {
	left := slices.Clone(clusters)
	slices.SortFunc(left, func(a, b *clusterv1.Cluster) int { return Order(a.UID, b.UID) })
	out := make(map[types.UID]string, len(clusters))
	for i := range strategy.Stages {
		stage := &strategy.Stages[i]
		takes, err := takes(stage, len(clusters))
		if err != nil {
			return nil, fmt.Errorf("stages[%d] %s: %w", i, stage.Name, err)
		}
		left = slices.DeleteFunc(left, func(c *clusterv1.Cluster) bool {
			if !takes(c) {
				return false
			}
			out[c.UID] = stage.Name
			return true
		})
	}
	return out, nil
}

// takes returns whether a stage takes a Cluster that no stage before has taken. It is asked about Clusters in their order.
func takes(stage *fleetv1.RolloutStage, total int) (func(*clusterv1.Cluster) bool, error) {
	switch {
	case stage.Selector != nil:
		selector, err := metav1.LabelSelectorAsSelector(stage.Selector)
		if err != nil {
			return nil, fmt.Errorf("selector: %w", err)
		}
		return func(c *clusterv1.Cluster) bool { return selector.Matches(labels.Set(c.Labels)) }, nil
	case stage.Percent != nil:
		n := (total*int(*stage.Percent) + 99) / 100
		return func(*clusterv1.Cluster) bool { n--; return n >= 0 }, nil
	}
	return func(*clusterv1.Cluster) bool { return true }, nil
}
