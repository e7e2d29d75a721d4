package controller

import (
	"context"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/providers/operator/internal/preflight"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// adopt adds the finalizer before anything is installed.
func adopt(_ context.Context, s *scope) (step.Result, error) {
	controllerutil.AddFinalizer(s.Object, operatorv1.ProviderFinalizer)
	return step.Checkpoint(), nil
}

// preflight checks the spec. What fails is checked again when this object or another provider changes.
func (c *Controller) preflight(ctx context.Context, s *scope) (step.Result, error) {
	cfg, err := c.source.Config(ctx)
	if err != nil {
		return step.Done(), err
	}
	if failed := preflight.Check(s.Provider, s.all, cfg.Providers); failed != nil {
		return waits(operatorv1.PreflightCheckCondition, failed.Reason, failed.Message), nil
	}
	return step.Done(), nil
}

// waits returns a result that waits for an event, with a condition that is False.
func waits(kind clusterv1.ConditionType, reason, message string) step.Result {
	what := strings.TrimPrefix(message, "Waiting for ")
	if what == message {
		what = "a change, because " + message
	}
	return step.Wait(what).WithConditions(condition.False(kind, clusterv1.ConditionSeverityError, reason, "%s", message))
}

// annotate sets an annotation.
func annotate(o metav1.Object, key, value string) {
	annotations := maps.Clone(o.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	o.SetAnnotations(annotations)
}
