package connection

import (
	"context"
	"time"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

const (
	// strandedTimeout is how long an API server without Machines may take to respond before it counts as gone.
	strandedTimeout = 5 * time.Second
	// StrandedRetry is the interval at which it is checked while there is still a connection. The end of the connection is an
	// event.
	StrandedRetry = 30 * time.Second
)

// Stranded detects an initialized cluster without control plane Machines. Initializing it again would create an empty cluster
// with the same name, so a Machine is created only if an API server responds that it can join. That takes a request: a
// connection may take minutes to break.
func Stranded(ctx context.Context, cp *snapshot.ControlPlane, state State) (State, step.Result) {
	result := step.Done().KeepCondition()
	if len(cp.Machines) > 0 || cp.Desired() == 0 || !cp.Initialized() {
		return state, result
	}
	if state.Workload != nil {
		asking, cancel := context.WithTimeout(ctx, strandedTimeout)
		_, err := state.Workload.KubeadmConfigExists(asking)
		cancel()
		if err == nil {
			return state, result
		}
		state = State{Reason: "the API server does not respond: " + condition.Brief(err.Error()), Lost: true}
		result = step.Again(StrandedRetry).KeepCondition()
	}
	if !state.Lost {
		return state, result
	}
	stated := stranded(cp)
	if before := condition.Get(cp.KCP, stated.Type); before == nil || !condition.SameState(*before, stated) {
		step.Warning(ctx, "FailedScaleUp", "%s", stated.Message)
	}
	return state, result.WithConditions(stated)
}

// stranded returns the condition of a cluster that has lost all its Machines.
func stranded(cp *snapshot.ControlPlane) clusterv1.Condition {
	lost := "The data of its etcd is lost unless there is a backup"
	if !cp.StackedEtcd() {
		lost = "The data in its external etcd is not affected"
	}
	return condition.False(controlplanev1.MachinesCreatedCondition, clusterv1.ConditionSeverityError, controlplanev1.MachineGenerationFailedReason,
		"All Machines of the control plane are gone and no API server responds at %s, so a new Machine cannot join. %s. "+
			"Restore an API server at that address, or delete Cluster %s and create it again",
		cp.Cluster.Spec.ControlPlaneEndpoint.String(), lost, cp.Key())
}
