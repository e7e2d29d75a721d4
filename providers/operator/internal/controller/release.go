package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/repository"
	"sigs.k8s.io/cluster-api/providers/operator/internal/providerobject"
	"sigs.k8s.io/cluster-api/providers/operator/internal/source"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// release finds the release, unless the components are as the spec demands.
func (c *Controller) release(ctx context.Context, s *scope) (step.Result, error) {
	s.hash = hashOf(s.Object)
	c.ignoredSource(ctx, s)
	if s.Object.GetAnnotations()[operatorv1.AppliedSpecHashAnnotation] == s.hash {
		due, only, changed := c.drift.due(s.GetUID(), s.state(), c.Clock.Now())
		if !changed {
			// A change that failed has been withdrawn. If it is demanded again, it is made at once.
			c.drift.withdrawn(s.GetUID())
			clearFailure(s.Object, operatorv1.ProviderUpgradedCondition)
			return step.Done(), nil
		}
		if left := due.Sub(c.Clock.Now()); left > 0 {
			return step.Again(left), nil
		}
		s.only = only
	}
	if left := c.drift.failedUntil(s.GetUID(), s.demand(), s.refusal()).Sub(c.Clock.Now()); left > 0 {
		return step.WaitAtMost(left, "a change of the spec, or the next attempt of the change that failed").KeepCondition(), nil
	}
	if left := c.source.Paused(s.Provider); left > 0 {
		return step.WaitAtMost(left, "a change of the spec, or the next attempt of the download that failed").KeepCondition(), nil
	}
	found, err := c.source.Find(ctx, s.Provider, supported(s.all))
	if err != nil {
		return notFound(s, err)
	}
	blocked := mixed(s.Provider, s.all, found)
	if blocked != "" && s.GetSpec().Paused && allPaused(s.all) {
		if blocked, err = c.running(ctx, s); err != nil {
			return step.Done(), err
		}
	}
	if blocked != "" {
		clearFailure(s.Object, operatorv1.ProviderInstalledCondition)
		return waits(operatorv1.PreflightCheckCondition, operatorv1.IncompatibleContractReason, blocked), nil
	}
	s.found = found
	if s.GetSpec().Version == "" {
		s.GetSpec().Version = found.Version
		s.hash = hashOf(s.Object)
	}
	return step.Checkpoint(), nil
}

// ignoredSource tells once that a new source alone changes nothing.
func (c *Controller) ignoredSource(ctx context.Context, s *scope) {
	annotations := s.Object.GetAnnotations()
	before, known := annotations[operatorv1.AppliedSourceHashAnnotation]
	config := s.GetSpec().FetchConfig
	if !known || before == sourceOf(s.Object) || annotations[operatorv1.AppliedSpecHashAnnotation] != s.hash ||
		s.GetStatus().ObservedGeneration == s.Object.GetGeneration() || config != nil && config.Selector != nil {
		return
	}
	step.Warning(ctx, "SourceNotUsed", "spec.fetchConfig has changed, but not spec.version: what was installed from the source before stays. "+
		"To replace it, delete the ConfigMap with version %s of this provider, and then change another field", s.GetSpec().Version)
}

// notFound reports that a release cannot be read. Downloads are repeated less and less often, other requests as after any error.
func notFound(s *scope, err error) (step.Result, error) {
	kind, reason := operatorv1.ProviderInstalledCondition, operatorv1.ComponentsFetchErrorReason
	if _, ok := errors.AsType[*repository.TokenError](err); ok {
		kind, reason = operatorv1.PreflightCheckCondition, operatorv1.InvalidGithubTokenReason
	}
	condition.Set(s.Object, condition.False(kind, clusterv1.ConditionSeverityError, reason, "%v", err))
	failed, ok := errors.AsType[*source.DownloadError](err)
	if !ok {
		return step.Done(), err
	}
	return step.WaitAtMost(failed.Pause,
		fmt.Sprintf("the next attempt of a download in %s, because %v", failed.Pause, err)).KeepCondition(), nil
}

// mixed returns why a release must not be installed unless all providers are paused, or "": its contract, and those of the installed
// versions, would not be contracts that one core provider works with. All have to be paused then, so that none sees objects of a contract
// that it does not know.
func mixed(p providerobject.Provider, all []providerobject.Provider, found *source.Release) string {
	const remedy = "change the version of %s first, or pause all providers (spec.paused), change their versions, and resume them"
	next := packages.Core{Name: p.GetName(), Version: found.Version, Contract: found.Contract}
	for _, other := range all {
		have := contractOf(other)
		if have == "" || other.GetUID() == p.GetUID() {
			continue
		}
		switch core := coreOf(other); {
		case p.Type == clusterctlv1.CoreProviderType && !next.Supports(have):
			return fmt.Sprintf("version %s works with providers for contract %s, but %s implements %s: "+remedy,
				found.Version, packages.JoinContracts(next.Contracts()), other, have, other)
		case other.Type == clusterctlv1.CoreProviderType && !core.Supports(found.Contract):
			return fmt.Sprintf("version %s implements contract %s, but %s works with providers for %s: "+remedy,
				found.Version, found.Contract, other, packages.JoinContracts(core.Contracts()), other)
		}
	}
	return ""
}

// supported returns the contracts that the installed core provider works with, nil if there is none.
func supported(all []providerobject.Provider) []string {
	i := slices.IndexFunc(all, func(p providerobject.Provider) bool {
		return p.Type == clusterctlv1.CoreProviderType && contractOf(p) != ""
	})
	if i < 0 {
		return nil
	}
	return coreOf(all[i]).Contracts()
}

// coreOf returns what is installed of a provider, as a version of the core provider.
func coreOf(p providerobject.Provider) packages.Core {
	return packages.Core{Name: p.GetName(), Version: ptr.Deref(p.GetStatus().InstalledVersion, ""), Contract: contractOf(p)}
}

// running returns which manager of another provider has not stopped yet, although it is paused; "" if there is none. When it has stopped,
// its
// provider object reports that, which triggers a reconcile of this one.
func (c *Controller) running(ctx context.Context, s *scope) (string, error) {
	for _, other := range s.all {
		if other.GetUID() == s.GetUID() || contractOf(other) == "" {
			continue
		}
		list, err := deploymentsOf(ctx, c.Client, other)
		if err != nil {
			return "", err
		}
		if i := slices.IndexFunc(list, func(d appsv1.Deployment) bool { return !isStopped(&d) }); i >= 0 {
			return fmt.Sprintf("Waiting for Deployment %s of %s to stop: the contract changes", list[i].Name, other), nil
		}
	}
	return "", nil
}

func allPaused(all []providerobject.Provider) bool {
	return !slices.ContainsFunc(all, func(o providerobject.Provider) bool { return !o.GetSpec().Paused && contractOf(o) != "" })
}
