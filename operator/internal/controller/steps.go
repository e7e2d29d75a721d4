package controller

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/internal/distribution/manifest"
	"sigs.k8s.io/cluster-api/internal/distribution/repository"
	"sigs.k8s.io/cluster-api/internal/distribution/upgrade"
	"sigs.k8s.io/cluster-api/operator/internal/customize"
	"sigs.k8s.io/cluster-api/operator/internal/declared"
	"sigs.k8s.io/cluster-api/operator/internal/engine"
	"sigs.k8s.io/cluster-api/operator/internal/inspect"
	"sigs.k8s.io/cluster-api/operator/internal/observed"
	"sigs.k8s.io/cluster-api/operator/internal/preflight"
	"sigs.k8s.io/cluster-api/operator/internal/source"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/step"
)

// usedRetry is the interval at which a provider that is being deleted is checked for objects that need it: they are of any kind.
const usedRetry = 15 * time.Second

// failedRetry is how long a change that was refused, or failed and was put back, is not tried again while the spec stays the same.
const failedRetry = 10 * time.Minute

// shown is how many changed objects an event lists.
const shown = 5

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

// release finds the release, unless the components are as the spec demands.
func (c *Controller) release(ctx context.Context, s *scope) (step.Result, error) {
	s.hash = hashOf(s.Object)
	if s.Object.GetAnnotations()[operatorv1.AppliedSpecHashAnnotation] == s.hash {
		due, only, changed := c.verified.due(s.GetUID(), s.state(), c.Clock.Now())
		if !changed {
			return step.Done(), nil
		}
		if left := due.Sub(c.Clock.Now()); left > 0 {
			return step.Again(left), nil
		}
		s.only = only
	}
	if left := c.verified.failedUntil(s.GetUID(), s.hash).Sub(c.Clock.Now()); left > 0 {
		return step.WaitAtMost(left, "a change of the spec, or the next attempt of the change that failed").KeepCondition(), nil
	}
	if left := c.downloads.left(s.Provider, c.Clock.Now()); left > 0 {
		return step.WaitAtMost(left, "a change of the spec, or the next attempt of the download that failed").KeepCondition(), nil
	}
	found, err := c.source.Find(ctx, s.Provider)
	if err != nil {
		return c.notFound(s, err)
	}
	c.downloads.forget(s.GetUID())
	if blocked := contracts(s.Provider, s.all, found.Contract); blocked != "" {
		return waits(operatorv1.PreflightCheckCondition, operatorv1.IncompatibleContractReason, blocked), nil
	}
	s.found = found
	if s.GetSpec().Version == "" {
		s.GetSpec().Version = found.Version
		s.hash = hashOf(s.Object)
	}
	return step.Checkpoint(), nil
}

// notFound reports that a release cannot be read. Downloads are repeated less and less often, other requests as after any error.
func (c *Controller) notFound(s *scope, err error) (step.Result, error) {
	kind, reason := operatorv1.ProviderInstalledCondition, operatorv1.ComponentsFetchErrorReason
	var token *repository.TokenError
	if errors.As(err, &token) {
		kind, reason = operatorv1.PreflightCheckCondition, operatorv1.InvalidGithubTokenReason
	}
	condition.Set(s.Object, condition.False(kind, clusterv1.ConditionSeverityError, reason, "%v", err))
	var download *source.DownloadError
	if !errors.As(err, &download) {
		return step.Done(), err
	}
	pause := c.downloads.failed(s.Provider, c.Clock.Now())
	return step.WaitAtMost(pause, fmt.Sprintf("the next attempt of a download in %s, because %v", pause, err)).KeepCondition(), nil
}

// contracts returns why a release with this contract must not be installed now, or "". All providers have to be paused while their
// contracts change, so that none sees objects of a contract that it does not know.
func contracts(p declared.Provider, all []declared.Provider, contract string) string {
	for _, other := range all {
		installed := contractOf(other)
		if installed == "" || installed == contract {
			continue
		}
		switch same := other.GetUID() == p.GetUID(); {
		case same && allPaused(all):
		case !same && p.GetSpec().Paused && allPaused(all):
		case same:
			return fmt.Sprintf("version %s implements contract %s, the installed one %s: pause all providers (spec.paused) first",
				p.GetSpec().Version, contract, installed)
		default:
			return fmt.Sprintf("version %s implements contract %s, but %s implements %s: pause all providers (spec.paused), change their versions, and resume them when all implement one contract",
				p.GetSpec().Version, contract, other, installed)
		}
	}
	return ""
}

func allPaused(all []declared.Provider) bool {
	return !slices.ContainsFunc(all, func(o declared.Provider) bool { return !o.GetSpec().Paused && contractOf(o) != "" })
}

// install writes the components.
func (c *Controller) install(ctx context.Context, s *scope) (step.Result, error) {
	if s.found == nil {
		return step.Done(), nil
	}
	list, err := s.found.Components(s.Provider)
	if err != nil {
		return step.Done(), &step.Error{Reason: operatorv1.ComponentsFetchErrorReason, Err: err}
	}
	additional, err := c.source.Additional(ctx, s.Provider)
	if err != nil {
		return step.Done(), &step.Error{Reason: operatorv1.ComponentsFetchErrorReason, Err: err}
	}
	if list.Objects, err = customize.Apply(list.Objects, additional, s.GetSpec()); err != nil {
		return step.Done(), &step.Error{Reason: operatorv1.ComponentsCustomizationErrorReason, Err: err}
	}
	if err := inspect.Check(without(list.Objects, additional), c.allowed(ctx, s)); err != nil {
		c.verified.fail(s.GetUID(), s.hash, c.Clock.Now().Add(failedRetry))
		return step.Done(), &step.Error{Reason: operatorv1.ComponentsRefusedReason, Err: err}
	}
	if s.GetSpec().Paused {
		pause(list, s.deployments)
	} else {
		resume(list, s.deployments)
	}
	if s.only != nil {
		same, err := c.engine.Same(ctx, list, s.only)
		if err != nil {
			return step.Done(), err
		}
		if same {
			c.verified.set(s.GetUID(), s.state(), false)
			return step.Done(), nil
		}
	}
	out, err := c.engine.Apply(ctx, list)
	if err != nil {
		return step.Done(), c.failed(s, err)
	}
	deployments, err := deploymentsOf(ctx, c.Live, s.Provider)
	if err != nil {
		return step.Done(), err
	}
	if err := c.source.Keep(ctx, s.Provider, s.found); err != nil {
		return step.Done(), err
	}
	if err := c.unmark(ctx, deployments, s.GetSpec().Paused); err != nil {
		return step.Done(), err
	}
	c.announce(ctx, s, out)
	annotate(s.Object, operatorv1.AppliedSpecHashAnnotation, s.hash)
	s.GetStatus().InstalledVersion, s.GetStatus().Contract = &s.found.Version, &s.found.Contract
	s.deployments = deployments
	// Of the other objects, what was in the cache before: what this change wrote there is compared once more when it is in the cache.
	c.verified.set(s.GetUID(), s.state(), out.Wrote())
	return step.Done(), nil
}

// allowed returns what the components may contain.
func (c *Controller) allowed(ctx context.Context, s *scope) inspect.Options {
	return inspect.Options{
		Owner: observed.Owners(ctx, c.cached), Label: s.Identity().ManifestLabel(),
		AllPermissions: allPermissions(s.Object),
	}
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
	var back *upgrade.FailedError
	if !errors.As(err, &back) {
		return &step.Error{Reason: operatorv1.InstallFailedReason, Err: err}
	}
	condition.Set(s.Object, condition.False(operatorv1.ProviderUpgradedCondition, clusterv1.ConditionSeverityError,
		operatorv1.ComponentsUpgradeErrorReason, "%v", back))
	c.verified.fail(s.GetUID(), s.hash, c.Clock.Now().Add(failedRetry))
	c.source.Forget(s.Provider) // The release may be published again.
	return &step.Error{Reason: operatorv1.ComponentsUpgradeErrorReason, Err: err}
}

// announce sends events for what was done.
func (c *Controller) announce(ctx context.Context, s *scope, out engine.Outcome) {
	label, version := s.Identity().ManifestLabel(), s.found.Version
	if reported := s.GetStatus().InstalledVersion; reported != nil {
		out.Before = *reported // A process that was killed before it reported an upgrade has written the inventory.
	}
	applied := s.Object.GetAnnotations()[operatorv1.AppliedSpecHashAnnotation]
	switch {
	case out.Before == "":
		step.Event(ctx, "Installed", "Installed %s %s", label, version)
	case out.Before != version:
		step.Event(ctx, "Upgraded", "Upgraded %s from %s to %s", label, out.Before, version)
		condition.Set(s.Object, condition.True(operatorv1.ProviderUpgradedCondition))
	case len(out.Changed) > 0 && applied == s.hash:
		step.Warning(ctx, "DriftCorrected", "Put back %s, which others had changed or deleted", list(out.Changed))
	case len(out.Changed) > 0:
		step.Event(ctx, "Changed", "Changed %s", list(out.Changed))
	case applied == "":
		step.Event(ctx, "Adopted", "Adopted %s %s, which was installed already", label, version)
	}
}

func list(names []string) string {
	text := strings.Join(names[:min(shown, len(names))], ", ")
	if len(names) > shown {
		text += fmt.Sprintf(" and %d more", len(names)-shown)
	}
	return text
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

// isInstalled reports whether there are Deployments to report about.
func (s *scope) isInstalled() bool {
	return s.GetStatus().InstalledVersion != nil && s.Object.GetDeletionTimestamp().IsZero()
}

// available reports the condition Available of the Deployments. Their changes trigger a reconcile.
func available(_ context.Context, s *scope) (step.Result, error) {
	if s.GetSpec().Paused {
		return waits(operatorv1.ReadyCondition, operatorv1.PausedReason, "Waiting for spec.paused to be false"), nil
	}
	if i := slices.IndexFunc(s.deployments, isPaused); i >= 0 { // Resuming it is refused, or has failed.
		return waits(operatorv1.ReadyCondition, operatorv1.PausedReason, fmt.Sprintf("Waiting for Deployment %s to be resumed", s.deployments[i].Name)), nil
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
		return cmp.Or(c.Reason, operatorv1.NoDeploymentAvailableReason), waiting + ": " + c.Message
	}
	return operatorv1.NoDeploymentAvailableReason, waiting
}

// unused waits until nothing needs the provider.
func (c *Controller) unused(ctx context.Context, s *scope) (step.Result, error) {
	if !controllerutil.ContainsFinalizer(s.Object, operatorv1.ProviderFinalizer) || isDuplicate(s) {
		return step.Done(), nil
	}
	if c.kind.Type == clusterctlv1.CoreProviderType {
		if i := slices.IndexFunc(s.all, func(o declared.Provider) bool { return o.Type != clusterctlv1.CoreProviderType }); i >= 0 {
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
	return s.GetStatus().InstalledVersion == nil && slices.ContainsFunc(s.all, func(o declared.Provider) bool {
		return o.Type == s.Type && o.GetUID() != s.GetUID() && (o.GetName() == s.GetName() || s.Type == clusterctlv1.CoreProviderType)
	})
}

// remove deletes the components.
func (c *Controller) remove(ctx context.Context, s *scope) (step.Result, error) {
	if controllerutil.ContainsFinalizer(s.Object, operatorv1.ProviderFinalizer) && !isDuplicate(s) {
		if err := c.engine.Remove(ctx, c.kind.Type, s.GetName()); err != nil {
			return step.Done(), &step.Error{Reason: operatorv1.OldComponentsDeletionErrorReason, Err: err}
		}
	}
	c.verified.forget(s.GetUID())
	c.downloads.forget(s.GetUID())
	c.source.Forget(s.Provider)
	controllerutil.RemoveFinalizer(s.Object, operatorv1.ProviderFinalizer)
	return step.Stop(), nil
}

func allPermissions(o declared.Object) bool {
	return o.GetAnnotations()[operatorv1.AllowAllPermissionsAnnotation] == "true"
}

// hashOf returns the hash of what determines the components. The location of releases does not: it is used when something else
// changes.
func hashOf(o declared.Object) string {
	relevant := o.GetSpec().DeepCopy()
	relevant.FetchConfig = nil
	raw, err := json.Marshal(relevant)
	if err != nil {
		return "" // Cannot happen: it was decoded from JSON.
	}
	if allPermissions(o) {
		raw = append(raw, operatorv1.AllowAllPermissionsAnnotation...)
	}
	return fmt.Sprintf("%x", sha256.Sum256(raw))
}
