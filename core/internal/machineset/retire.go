package machineset

import (
	"context"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/internal/naming"
	"sigs.k8s.io/cluster-api/internal/step"
)

// generationAnnotation counts on a MachineSet how often its Machines became fewer. It is part of the names of Machines
// that are made from then on.
const generationAnnotation = "machineset.cluster.x-k8s.io/names-generation"

// retire lets the names of Machines that leave, or have left, not come back: a Node, a disk or a DNS record of that name
// may outlive them. That Machines became fewer is seen by the status, which is written after the annotation.
func (c *Controller) retire(ctx context.Context, s *scope) (step.Result, error) {
	before := int(s.set.Status.Replicas)
	if staying(s.machines) >= before {
		return step.Done(), nil
	}
	// A cache that does not show all Machines yet must not make us go on to names under which they would be made again.
	live := &clusterv1.MachineList{}
	err := c.Live.List(ctx, live, client.InNamespace(s.set.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: s.set.Spec.ClusterName})
	if err != nil {
		return step.Done(), fmt.Errorf("counting the Machines of MachineSet %s: %w", s.set.Name, err)
	}
	var mine []*clusterv1.Machine
	for i := range live.Items {
		if metav1.IsControlledBy(&live.Items[i], s.set) {
			mine = append(mine, &live.Items[i])
		}
	}
	if staying(mine) >= before {
		return step.Done(), nil
	}
	generation, _ := strconv.Atoi(s.set.Annotations[generationAnnotation]) // what is no number starts over
	metav1.SetMetaDataAnnotation(&s.set.ObjectMeta, generationAnnotation, strconv.Itoa(generation+1))
	return step.Checkpoint(), nil
}

func staying(machines []*clusterv1.Machine) int {
	n := 0
	for _, m := range machines {
		if m.DeletionTimestamp.IsZero() {
			n++
		}
	}
	return n
}

// nameOf is the name of the Machine with an ordinal.
func nameOf(set *clusterv1.MachineSet, ordinal int) string {
	return naming.WithSuffix(set.Name, naming.Suffix(string(set.UID), set.Annotations[generationAnnotation], strconv.Itoa(ordinal)))
}
