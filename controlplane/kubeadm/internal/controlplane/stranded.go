package controlplane

import (
	"context"
	"fmt"
	"time"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/step"
)

const (
	// strandedTimeout is how long an API server may take to answer before it counts as gone with its Machines.
	strandedTimeout = 5 * time.Second
	// strandedRetry is how soon it is asked again although there is a connection; that it is given up is an event.
	strandedRetry = 30 * time.Second
)

// stranded looks after a cluster whose control plane Machines are all gone. Bringing it up anew would make another
// cluster of the same name, without anything that was in the first one; so a Machine is made only if somebody else
// serves the API, for it to join. A connection may take minutes to notice that nobody does: a request proves it.
func (c *Controller) stranded(ctx context.Context, s *scope) (step.Result, error) {
	if len(s.machines) > 0 || s.desired() == 0 || !s.begun() {
		return step.Done(), nil
	}
	result := step.Done()
	if s.workload != nil {
		asking, cancel := context.WithTimeout(ctx, strandedTimeout)
		_, err := s.workload.KubeadmConfigExists(asking)
		cancel()
		if err == nil {
			return step.Done(), nil
		}
		s.workload, s.waiting, s.lost = nil, "the API server does not answer: "+brief(err.Error()), true
		result = step.Again(strandedRetry)
	}
	if s.lost {
		s.giveUp(ctx)
	}
	return result, nil
}

// giveUp says what happened and what is left to do.
func (s *scope) giveUp(ctx context.Context) {
	lost := "What was in its etcd is lost unless there is a backup"
	if !s.stacked() {
		lost = "What is in its external etcd is not touched"
	}
	why := fmt.Sprintf("All Machines of the control plane are gone and nothing answers at %s, so a new Machine has nothing to join. %s. "+
		"Serve the API at that address again, from a backup, or delete Cluster %s and create it anew",
		s.cluster.Spec.ControlPlaneEndpoint.String(), lost, s.key())
	stated := condition.False(controlplanev1.MachinesCreatedCondition, clusterv1.ConditionSeverityError,
		controlplanev1.MachineGenerationFailedReason, "%s", why)
	if before := condition.Get(s.kcp, stated.Type); before == nil || !condition.SameState(*before, stated) {
		step.Warning(ctx, "FailedScaleUp", "%s", why)
	}
	condition.Set(s.kcp, stated)
}
