package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/packages/apply"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// isInstalled reports whether there are Deployments to report about.
func (s *scope) isInstalled() bool {
	return s.GetStatus().InstalledVersion != nil && s.Object.GetDeletionTimestamp().IsZero()
}

// available reports the condition Available of the Deployments. Their changes trigger a reconcile.
func available(_ context.Context, s *scope) (step.Result, error) {
	if s.GetSpec().Paused {
		if i := slices.IndexFunc(s.deployments, func(d appsv1.Deployment) bool { return !isStopped(&d) }); i >= 0 {
			return waits(operatorv1.ReadyCondition, operatorv1.PausingReason,
				fmt.Sprintf("Waiting for Deployment %s to stop", s.deployments[i].Name)), nil
		}
		return waits(operatorv1.ReadyCondition, operatorv1.PausedReason, "Waiting for spec.paused to be false"), nil
	}
	if i := slices.IndexFunc(s.deployments, isPaused); i >= 0 { // Resuming it was rejected, or has failed.
		return waits(operatorv1.ReadyCondition, operatorv1.PausedReason, resuming(&s.deployments[i])), nil
	}
	if len(s.deployments) == 0 {
		return waits(operatorv1.ReadyCondition, operatorv1.NoDeploymentAvailableReason, "Waiting for the provider to have a Deployment"), nil
	}
	for i := range s.deployments {
		if reason, message := unavailable(&s.deployments[i]); message != "" {
			return waits(operatorv1.ReadyCondition, reason, message), nil
		}
	}
	return step.Done(), nil
}

// unavailable returns why a Deployment is not available, "" if it is.
func unavailable(d *appsv1.Deployment) (reason, message string) {
	waiting := fmt.Sprintf("Waiting for Deployment %s to be available", d.Name)
	for _, c := range d.Status.Conditions {
		if c.Type != appsv1.DeploymentAvailable {
			continue
		}
		if c.Status == corev1.ConditionTrue && d.Status.ObservedGeneration >= d.Generation {
			return "", ""
		}
		return cmp.Or(c.Reason, operatorv1.NoDeploymentAvailableReason), apply.Explanation(waiting, c.Message)
	}
	return operatorv1.NoDeploymentAvailableReason, waiting
}
