package host

import (
	"fmt"
	"math"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	// phaseNone is for a Deployment scaled to zero, phaseRefused for a component that is not built in.
	phaseNone    phase = "None"
	phaseRefused phase = "Refused"
)

// The reasons of the Deployment controller, which kubectl rollout status and other tools rely on.
const (
	reasonAvailable   = "MinimumReplicasAvailable"
	reasonUnavailable = "MinimumReplicasUnavailable"
	reasonUpdated     = "ReplicaSetUpdated"
	reasonComplete    = "NewReplicaSetAvailable"
	reasonDeadline    = "ProgressDeadlineExceeded"
	reasonCreate      = "FailedCreate"
)

// observation is the observed state of a Deployment's component.
type observation struct {
	// state is that of the instance of the current template, or why there is none.
	state
	// old is whether an instance of an earlier template runs and is not stopping, oldReady whether it is ready.
	old, oldReady bool
}

// statusFor computes a Deployment's status. One instance in this process counts as all replicas: more of them would only
// wait for leader election.
func statusFor(d *appsv1.Deployment, seen observation, now metav1.Time) appsv1.DeploymentStatus {
	replicas := ptr.Deref(d.Spec.Replicas, 1)
	status := appsv1.DeploymentStatus{ObservedGeneration: d.Generation, CollisionCount: d.Status.CollisionCount}
	if seen.phase == phaseStarting || seen.phase == phaseReady || seen.phase == phaseFailed {
		status.UpdatedReplicas = replicas
	}
	status.Replicas = status.UpdatedReplicas
	if seen.phase == phaseReady {
		status.ReadyReplicas = replicas
	} else {
		status.UnavailableReplicas = replicas
	}
	if seen.old {
		status.Replicas += replicas
		if seen.oldReady {
			status.ReadyReplicas += replicas
		} else {
			status.UnavailableReplicas += replicas
		}
	}
	status.AvailableReplicas = status.ReadyReplicas
	wanted := []appsv1.DeploymentCondition{available(seen), progressing(d, seen, now)}
	if seen.phase == phaseRefused {
		wanted = append(wanted, appsv1.DeploymentCondition{
			Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: reasonCreate, Message: seen.message,
		})
	}
	for _, c := range wanted {
		status.Conditions = append(status.Conditions, keepTimes(d, c, now))
	}
	return status
}

// available is the condition Available: whether an instance serves, of the current template or of an earlier one.
func available(seen observation) appsv1.DeploymentCondition {
	c := appsv1.DeploymentCondition{
		Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Reason: reasonUnavailable, Message: seen.message,
	}
	if seen.phase == phaseReady || seen.phase == phaseNone || seen.oldReady {
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, reasonAvailable, "Deployment has minimum availability."
	}
	return c
}

// progressing is the condition Progressing: whether the current template is being rolled out, or has been.
func progressing(d *appsv1.Deployment, seen observation, now metav1.Time) appsv1.DeploymentCondition {
	c := appsv1.DeploymentCondition{
		Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: reasonUpdated, Message: seen.message,
	}
	// What was reported about an earlier generation says nothing about this one.
	previous := appsv1.DeploymentCondition{}
	if d.Status.ObservedGeneration == d.Generation {
		previous, _ = conditionOf(d.Status, appsv1.DeploymentProgressing)
	}
	switch {
	case seen.phase == phaseRefused:
		// It cannot succeed later. With this reason, tools stop waiting immediately.
		c.Status, c.Reason = corev1.ConditionFalse, reasonDeadline
	case seen.phase == phaseNone:
		c.Reason, c.Message = reasonComplete, "The Deployment is scaled to zero."
	case seen.phase == phaseReady && !seen.old:
		c.Reason, c.Message = reasonComplete, "The component has started."
	case previous.Reason == reasonComplete:
		return previous // A component that fails after its rollout does not undo the rollout.
	case previous.Reason == reasonDeadline, previous.Reason == reasonUpdated && left(d.Spec, previous, now.Time) <= 0:
		c.Status, c.Reason = corev1.ConditionFalse, reasonDeadline
		c.Message = fmt.Sprintf("Deployment has not become available for %ds: %s", ptr.Deref(d.Spec.ProgressDeadlineSeconds, 0), seen.message)
	}
	return c
}

// left returns how much of spec.progressDeadlineSeconds is left. Its maximum means that there is no deadline, as in Kubernetes.
func left(spec appsv1.DeploymentSpec, progressing appsv1.DeploymentCondition, now time.Time) time.Duration {
	seconds := ptr.Deref(spec.ProgressDeadlineSeconds, math.MaxInt32)
	if seconds == math.MaxInt32 {
		return math.MaxInt64
	}
	return progressing.LastUpdateTime.Add(time.Duration(seconds) * time.Second).Sub(now)
}

// untilDeadline returns how long to wait until a rollout exceeds its deadline, or 0 if it does not.
func untilDeadline(spec appsv1.DeploymentSpec, status appsv1.DeploymentStatus, now time.Time) time.Duration {
	c, found := conditionOf(status, appsv1.DeploymentProgressing)
	wait := left(spec, c, now)
	if !found || c.Reason != reasonUpdated || wait == math.MaxInt64 {
		return 0
	}
	return max(wait, time.Second)
}

// keepTimes keeps the times of existing conditions that did not change. A rollout whose message changes makes no progress.
func keepTimes(d *appsv1.Deployment, wanted appsv1.DeploymentCondition, now metav1.Time) appsv1.DeploymentCondition {
	wanted.LastUpdateTime, wanted.LastTransitionTime = now, now
	old, found := conditionOf(d.Status, wanted.Type)
	if !found || old.Status != wanted.Status {
		return wanted
	}
	wanted.LastTransitionTime = old.LastTransitionTime
	same := old.Message == wanted.Message
	if wanted.Type == appsv1.DeploymentProgressing {
		same = d.Status.ObservedGeneration == d.Generation
	}
	if same && old.Reason == wanted.Reason {
		wanted.LastUpdateTime = old.LastUpdateTime
	}
	return wanted
}

// conditionOf returns the condition of a type.
func conditionOf(status appsv1.DeploymentStatus, kind appsv1.DeploymentConditionType) (appsv1.DeploymentCondition, bool) {
	at := slices.IndexFunc(status.Conditions, func(c appsv1.DeploymentCondition) bool { return c.Type == kind })
	if at < 0 {
		return appsv1.DeploymentCondition{}, false
	}
	return status.Conditions[at], true
}

// observe returns the state of the instances of a Deployment, to which orphans do not belong.
func observe(instances []*instance, hash string) observation {
	seen := observation{state: state{phase: phaseStopping, message: "an earlier instance of the component is stopping"}}
	for _, i := range instances {
		switch m := i.member(); {
		case m.stopping, i.orphaned:
		case m.hash == hash:
			seen.state = i.observe()
		default:
			seen.old, seen.oldReady = true, m.ready
		}
	}
	return seen
}
