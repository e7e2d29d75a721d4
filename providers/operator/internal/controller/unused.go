package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/providers/operator/internal/providerobject"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// usedRetry is the interval at which a provider that is being deleted is checked for objects that need it: they are of any kind.
const usedRetry = 15 * time.Second

// unused waits until nothing needs the provider.
func (c *Controller) unused(ctx context.Context, s *scope) (step.Result, error) {
	if !controllerutil.ContainsFinalizer(s.Object, operatorv1.ProviderFinalizer) || isDuplicate(s) {
		return step.Done(), nil
	}
	if c.kind.Type == clusterctlv1.CoreProviderType {
		if i := slices.IndexFunc(s.all, func(o providerobject.Provider) bool { return o.Type != clusterctlv1.CoreProviderType }); i >= 0 {
			return waits(operatorv1.ReadyCondition, operatorv1.DeletionBlockedReason, fmt.Sprintf("Waiting for %s to be deleted", s.all[i])), nil
		}
	}
	user, err := c.engine.User(ctx, c.kind.Type, s.GetName())
	if err != nil {
		return step.Done(), err
	}
	if user != "" {
		what := fmt.Sprintf("%s to be deleted, which needs this provider", user)
		return step.WaitAtMost(usedRetry, what).WithConditions(condition.False(operatorv1.ReadyCondition, clusterv1.ConditionSeverityError,
			operatorv1.DeletionBlockedReason, "Waiting for %s", what)), nil
	}
	return step.Done(), nil
}

// isDuplicate reports whether another object declares the provider, so that its components stay.
func isDuplicate(s *scope) bool {
	return s.GetStatus().InstalledVersion == nil && slices.ContainsFunc(s.all, func(o providerobject.Provider) bool {
		return o.Type == s.Type && o.GetUID() != s.GetUID() && (o.GetName() == s.GetName() || s.Type == clusterctlv1.CoreProviderType)
	})
}
