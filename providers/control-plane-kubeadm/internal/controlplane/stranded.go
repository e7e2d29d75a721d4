package controlplane

import (
	"context"
	"time"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/connection"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

const (
	// strandedTimeout is how long an API server without Machines may take to respond before it counts as gone.
	strandedTimeout = 5 * time.Second
	// strandedRetry is the interval at which it is checked while there is still a connection. The end of the connection is an
	// event.
	strandedRetry = 30 * time.Second
)

// stranded detects an initialized cluster without control plane Machines. Initializing it again would create an empty cluster
// with the same name, so a Machine is created only if an API server responds that it can join. That takes a request: a
// connection may take minutes to break.
func stranded(ctx context.Context, s *scope) (step.Result, error) {
	result := step.Done().KeepCondition()
	if len(s.Machines) > 0 || s.Desired() == 0 || !s.Initialized() {
		return result, nil
	}
	if s.connection.Workload != nil {
		bounded, cancel := context.WithTimeout(ctx, strandedTimeout)
		_, err := s.connection.Workload.KubeadmConfigExists(bounded)
		cancel()
		if err == nil {
			return result, nil
		}
		s.connection = connection.State{Reason: "the API server does not respond: " + condition.Brief(err.Error()), Lost: true, Down: true}
		result = step.Again(strandedRetry).KeepCondition()
	}
	if !s.connection.Lost {
		return result, nil
	}
	gone := allMachinesGone(s.ControlPlane)
	if before := condition.Get(s.KCP, gone.Type); before == nil || !condition.SameState(*before, gone) {
		step.Warning(ctx, "FailedScaleUp", "%s", gone.Message)
	}
	return result.WithConditions(gone), nil
}

// allMachinesGone returns the condition of a cluster that has lost all its Machines.
func allMachinesGone(cp *snapshot.ControlPlane) clusterv1.Condition {
	lost := "The data of its etcd is lost unless there is a backup"
	if !cp.StackedEtcd() {
		lost = "The data in its external etcd is not affected"
	}
	return condition.False(controlplanev1.MachinesCreatedV1Beta1Condition, clusterv1.ConditionSeverityError,
		controlplanev1.MachineGenerationFailedV1Beta1Reason,
		"All Machines of the control plane are gone and no API server responds at %s, so a new Machine cannot join. %s. "+
			"Restore an API server at that address, or delete Cluster %s and create it again",
		cp.Cluster.Spec.ControlPlaneEndpoint.String(), lost, cp.Key())
}
