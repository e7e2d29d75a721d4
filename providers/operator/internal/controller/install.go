package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/packages/components"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/packages/replace"
	"sigs.k8s.io/cluster-api/providers/operator/internal/customize"
	"sigs.k8s.io/cluster-api/providers/operator/internal/engine"
	"sigs.k8s.io/cluster-api/providers/operator/internal/inspect"
	"sigs.k8s.io/cluster-api/providers/operator/internal/providerobject"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// failedRetry is how long a change that was rejected, or failed and was rolled back, is not retried while the spec stays the same.
const failedRetry = 10 * time.Minute

// shown is how many changed objects an event lists.
const shown = 5

// install writes the components.
func (c *Controller) install(ctx context.Context, s *scope) (step.Result, error) {
	if s.found == nil {
		return step.Done(), nil
	}
	list, err := c.desired(ctx, s)
	if err != nil {
		return step.Done(), err
	}
	if s.only != nil {
		same, err := c.engine.Same(ctx, list, s.only)
		if err != nil {
			return step.Done(), err
		}
		if same {
			c.drift.compared(s.GetUID(), s.state(), false)
			return step.Done(), nil
		}
	}
	out, err := c.engine.Apply(ctx, list)
	if err != nil {
		return step.Done(), c.failed(s, err)
	}
	if s.deployments, err = deploymentsOf(ctx, c.Live, s.Provider); err != nil {
		return step.Done(), err
	}
	if err := errors.Join(c.source.Keep(ctx, s.Provider, s.found), c.unmark(ctx, s.deployments, s.GetSpec().Paused)); err != nil {
		return step.Done(), err
	}
	c.announce(ctx, s, out)
	annotate(s.Object, operatorv1.AppliedSpecHashAnnotation, s.hash)
	annotate(s.Object, operatorv1.AppliedSourceHashAnnotation, sourceOf(s.Object))
	annotate(s.Object, operatorv1.AppliedComponentsHashAnnotation, s.components)
	clearFailure(s.Object, operatorv1.ProviderUpgradedCondition)
	s.GetStatus().InstalledVersion, s.GetStatus().Contract = &s.found.Version, &s.found.Contract
	// The state of the other objects is from before the change: when the cache has what was written, it is compared once more.
	c.drift.compared(s.GetUID(), s.state(), out.Wrote())
	return step.Done(), nil
}

// desired returns the components as the spec demands them.
func (c *Controller) desired(ctx context.Context, s *scope) (*components.Components, error) {
	list, err := s.found.Components(s.Provider)
	if err != nil {
		return nil, &step.Error{Reason: operatorv1.ComponentsFetchErrorReason, Err: err}
	}
	additional, err := c.source.Additional(ctx, s.Provider)
	if err != nil {
		return nil, &step.Error{Reason: operatorv1.ComponentsFetchErrorReason, Err: err}
	}
	if list.Objects, err = customize.Apply(list.Objects, additional, s.GetSpec()); err != nil {
		return nil, &step.Error{Reason: operatorv1.ComponentsCustomizationErrorReason, Err: err}
	}
	if s.shared, err = c.inspect(ctx, s, without(list.Objects, additional), additional); err != nil {
		return nil, &step.Error{Reason: operatorv1.ComponentsRefusedReason, Err: err}
	}
	list.Objects = without(list.Objects, s.shared)
	s.components = hashed(list.Objects)
	if s.GetSpec().Paused {
		pause(list, s.deployments)
	} else {
		resume(list, s.deployments)
	}
	return list, nil
}

// inspect rejects components that do more than components of a provider may. It returns those that another provider has, and that it
// shares.
func (c *Controller) inspect(
	ctx context.Context, s *scope, list, additional []unstructured.Unstructured,
) ([]unstructured.Unstructured, error) {
	allowed, err := c.allowed(ctx, s, list, additional)
	if err != nil {
		return nil, err
	}
	shared, err := inspect.Shared(list, allowed)
	if err != nil {
		return nil, err
	}
	err = inspect.Check(without(list, shared), allowed)
	if _, refused := errors.AsType[*inspect.RefusedError](err); refused {
		c.drift.fail(s.GetUID(), s.refusal(), c.Clock.Now().Add(failedRetry))
	}
	return shared, err
}

// without returns the objects that are not among others.
func without(objects, others []unstructured.Unstructured) []unstructured.Unstructured {
	isOther := map[manifest.Key]bool{}
	for i := range others {
		isOther[manifest.KeyOf(&others[i])] = true
	}
	return slices.DeleteFunc(slices.Clone(objects), func(o unstructured.Unstructured) bool { return isOther[manifest.KeyOf(&o)] })
}

// failed returns the error of Apply, with the reason for the condition.
func (c *Controller) failed(s *scope, err error) error {
	var back *replace.FailedError
	if !errors.As(err, &back) {
		return &step.Error{Reason: operatorv1.InstallFailedReason, Err: err}
	}
	if installed := s.GetStatus().InstalledVersion; installed != nil && *installed != s.found.Version {
		condition.Set(s.Object, condition.False(operatorv1.ProviderUpgradedCondition, clusterv1.ConditionSeverityError,
			operatorv1.ComponentsUpgradeErrorReason, "%v", back))
	}
	c.drift.fail(s.GetUID(), s.demand(), c.Clock.Now().Add(failedRetry))
	c.source.Forget(s.Provider) // The release may be published again.
	return &step.Error{Reason: operatorv1.ComponentsUpgradeErrorReason, Err: err}
}

// announce sends events for what was done.
func (c *Controller) announce(ctx context.Context, s *scope, out engine.Outcome) {
	if out.Wrote() || out.Before == "" {
		for i := range s.shared {
			o := &s.shared[i]
			step.Warning(ctx, "DefinitionsShared", "%s belongs to provider %s, and stays as it is in the release of that provider",
				manifest.Describe(o), o.GetLabels()[clusterv1.ProviderNameLabel])
		}
	}
	label, version := s.Identity().ManifestLabel(), s.found.Version
	if reported := s.GetStatus().InstalledVersion; reported != nil {
		out.Before = *reported // A process that was killed before it reported an upgrade has written the inventory.
	}
	applied := s.Object.GetAnnotations()[operatorv1.AppliedSpecHashAnnotation]
	same := applied == s.hash && s.Object.GetAnnotations()[operatorv1.AppliedComponentsHashAnnotation] == s.components
	switch {
	case out.Before == "":
		step.Event(ctx, "Installed", "Installed %s %s", label, version)
	case out.Before != version:
		step.Event(ctx, "Upgraded", "Upgraded %s from %s to %s", label, out.Before, version)
		condition.Set(s.Object, condition.True(operatorv1.ProviderUpgradedCondition))
	case len(out.Changed) > 0 && same: // Otherwise, the configuration of the operator or what the spec refers to has changed.
		step.Warning(ctx, "DriftCorrected", "Restored %s after changes by other clients", list(out.Changed))
	case len(out.Changed) > 0:
		step.Event(ctx, "Changed", "Changed %s", list(out.Changed))
	case applied == "":
		step.Event(ctx, "Adopted", "Adopted %s %s, which was installed already", label, version)
	}
}

// clearFailure removes a condition that is False because of a spec that is no longer demanded.
func clearFailure(o providerobject.Object, kind clusterv1.ConditionType) {
	if condition.IsFalse(o, kind) {
		condition.Delete(o, kind)
	}
}

func list(names []string) string {
	text := strings.Join(names[:min(shown, len(names))], ", ")
	if len(names) > shown {
		text += fmt.Sprintf(" and %d more", len(names)-shown)
	}
	return text
}
