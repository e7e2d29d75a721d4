package host

import (
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

// observation is the observed state of a Deployment's component.
type observation struct {
	phase   phase
	message string
}

// statusFor computes a Deployment's status. One component in this process counts as all replicas: more of them would only
// wait for leader election.
func statusFor(d *appsv1.Deployment, seen observation, now metav1.Time) appsv1.DeploymentStatus {
	replicas := ptr.Deref(d.Spec.Replicas, 1)
	status := appsv1.DeploymentStatus{
		ObservedGeneration:  d.Generation,
		UnavailableReplicas: replicas,
		CollisionCount:      d.Status.CollisionCount,
	}
	if seen.phase == phaseStarting || seen.phase == phaseReady || seen.phase == phaseFailed {
		status.Replicas, status.UpdatedReplicas = replicas, replicas
	}
	if seen.phase == phaseReady {
		status.ReadyReplicas, status.AvailableReplicas, status.UnavailableReplicas = replicas, replicas, 0
	}
	for _, wanted := range conditionsFor(seen) {
		status.Conditions = append(status.Conditions, keepTimes(d.Status.Conditions, wanted, now))
	}
	return status
}

// conditionsFor uses the reasons of the Deployment controller, which tools rely on.
func conditionsFor(seen observation) []appsv1.DeploymentCondition {
	available := appsv1.DeploymentCondition{
		Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse,
		Reason: "MinimumReplicasUnavailable", Message: seen.message,
	}
	progressing := appsv1.DeploymentCondition{
		Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue,
		Reason: "ReplicaSetUpdated", Message: seen.message,
	}
	switch seen.phase {
	case phaseReady, phaseNone:
		available.Status, available.Reason = corev1.ConditionTrue, "MinimumReplicasAvailable"
		available.Message = "Deployment has minimum availability."
		progressing.Reason, progressing.Message = "NewReplicaSetAvailable", "The component has started."
		if seen.phase == phaseNone {
			progressing.Message = "The Deployment is scaled to zero."
		}
	case phaseRefused:
		// This reason makes `kubectl rollout status` and other tools stop waiting immediately.
		available.Reason = "ImageNotHosted"
		progressing.Status, progressing.Reason = corev1.ConditionFalse, "ProgressDeadlineExceeded"
	}
	return []appsv1.DeploymentCondition{available, progressing}
}

// keepTimes keeps the times of existing conditions that did not change.
func keepTimes(existing []appsv1.DeploymentCondition, wanted appsv1.DeploymentCondition, now metav1.Time) appsv1.DeploymentCondition {
	wanted.LastUpdateTime, wanted.LastTransitionTime = now, now
	for _, old := range existing {
		if old.Type != wanted.Type {
			continue
		}
		if old.Status == wanted.Status {
			wanted.LastTransitionTime = old.LastTransitionTime
		}
		if old.Status == wanted.Status && old.Reason == wanted.Reason && old.Message == wanted.Message {
			wanted.LastUpdateTime = old.LastUpdateTime
		}
	}
	return wanted
}
