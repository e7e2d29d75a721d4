package cluster

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Controller reconciles Clusters.
type Controller struct {
	step.Clients
	follow *reference.Follower
	forget func(types.NamespacedName)
	hooks  bool
	// connection returns the state of the connection to the API server of a Cluster. Nil: connections are not reported.
	connection func(ctx context.Context, cluster types.NamespacedName) connection
	// classes is Options.Classes.
	classes client.Reader
	// connectionGrace is Options.ConnectionGrace.
	connectionGrace time.Duration
}

// scope is the state of one reconcile, shared by its steps.
type scope struct {
	*clusterv1.Cluster
	// before is the phase at the start of the reconcile.
	before clusterv1.ClusterPhase
	// controlPlane is the object that the Cluster refers to; nil if it does not exist.
	controlPlane *contract.ControlPlane

	// What follows is for conditions and counters.

	// infrastructure and plane are the objects that the Cluster refers to.
	infrastructure, plane reference.Found
	// family is nil if it was not read.
	family *family
	// connection is nil if none is expected.
	connection *connection
	// connectionGrace is how long a connection may be down before that is reported.
	connectionGrace time.Duration
	// isHeld is set while extensions have not allowed the deletion.
	isHeld bool
	// now is the time of the conditions.
	now time.Time
}

// adopt returns the object of a reference, and whether it exists. It makes the Cluster the object's controller, and copies a
// terminal failure to the Cluster.
func (c *Controller) adopt(
	ctx context.Context, cluster *clusterv1.Cluster, ref *clusterv1.ContractVersionedObjectReference,
) (obj contract.Object, exists bool, err error) {
	if obj, exists, err = c.follow.Adopt(ctx, ref, cluster, cluster.Name); err != nil || !exists {
		return obj, false, err
	}
	return obj, true, copyFailure(cluster, obj)
}

// copyFailure copies a terminal failure, which only v1beta1 shows.
func copyFailure(cluster *clusterv1.Cluster, obj contract.Object) error {
	older := cluster.GetV1Beta1Status()
	err := reference.CopyFailure(obj, &older.FailureReason, &older.FailureMessage)
	if err == nil && failed(older) {
		cluster.SetV1Beta1Status(older)
	}
	return err
}

func failed(older clusterv1.ClusterV1Beta1DeprecatedStatus) bool {
	return older.FailureReason != nil || older.FailureMessage != nil
}

// waitForObject waits for an object that does not exist. A condition that was set while the object existed is kept.
func waitForObject(
	cluster *clusterv1.Cluster, ref *clusterv1.ContractVersionedObjectReference, t clusterv1.ConditionType, reason string,
) step.Result {
	wait := step.Wait(referenceName(ref) + " to exist")
	if before := condition.Get(cluster, t); before != nil && before.Reason != reason {
		return wait
	}
	return wait.Because(reason)
}

// recordReadiness emits an event for a condition that changed.
func recordReadiness(ctx context.Context, cluster *clusterv1.Cluster, what clusterv1.ConditionType, ready bool) {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	step.Transition(ctx, string(what), "Cluster %s %s is now %s", cluster.Name, what, status)
}

func isControlPlane(m *clusterv1.Machine) bool {
	_, ok := m.Labels[clusterv1.MachineControlPlaneLabel]
	return ok
}

func referenceName(ref *clusterv1.ContractVersionedObjectReference) string {
	return ref.Kind + " " + ref.Name
}
