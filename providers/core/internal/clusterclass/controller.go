package clusterclass

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/providers/core/internal/extension"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/variables"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Controller reconciles ClusterClasses.
type Controller struct {
	step.Clients
	// Discover returns the variables of external patches. If it is nil, there are none.
	Discover Discover
	Versions contract.APIVersions
	External external.Reader
	// Watch starts watching templates of a kind, unless they are watched already.
	Watch func(ctx context.Context, kind schema.GroupVersionKind) error
}

// variables sets status.variables.
func (c *Controller) variables(ctx context.Context, class *clusterv1.ClusterClass) (step.Result, error) {
	all, err := c.collect(ctx, class)
	if notReady, ok := errors.AsType[*extension.NotReadyError](err); ok {
		return step.Wait("ExtensionConfig " + notReady.Config + " to be discovered").Because(clusterv1.VariableDiscoveryFailedReason), nil
	}
	if busy, ok := errors.AsType[*extension.BusyError](err); ok {
		return step.WaitAtMost(busy.RetryAfter(), "an earlier call of the server of extension "+busy.Handler+" to end"), nil
	}
	if err != nil {
		return step.Done(), &step.Error{Reason: clusterv1.VariableDiscoveryFailedReason, Err: err}
	}
	class.Status.Variables = all
	return step.Done(), nil
}

func (c *Controller) collect(ctx context.Context, class *clusterv1.ClusterClass) ([]clusterv1.ClusterClassStatusVariable, error) {
	sources := []variables.Source{{From: clusterv1.VariableDefinitionFromInline, Variables: class.Spec.Variables}}
	if c.Discover != nil {
		discovered, err := c.Discover(ctx, class)
		if err != nil {
			return nil, fmt.Errorf("discovering the variables of external patches: %w", err)
		}
		sources = append(sources, discovered...)
	}
	all, err := variables.Merge(sources...)
	if err != nil {
		return nil, fmt.Errorf("merging the variables of the class: %w", err)
	}
	return all, nil
}

// own adds the class to the owners of its templates, and waits for templates and kinds that do not exist.
func (c *Controller) own(ctx context.Context, class *clusterv1.ClusterClass) (step.Result, error) {
	owner := ownership.Reference(class, clusterv1.GroupVersion.WithKind("ClusterClass"), false)
	var errs []error
	var missing []string
	for _, ref := range templateRefs(class) {
		found, err := c.ownTemplate(ctx, class, ref, owner)
		var notInstalled *contract.NotInstalledError
		switch {
		case errors.As(err, &notInstalled):
			missing = append(missing, "CustomResourceDefinition "+notInstalled.Definition)
			continue
		case err == nil && !found:
			missing = append(missing, ref.Kind+" "+class.Namespace+"/"+ref.Name)
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil || len(missing) == 0 {
		return step.Done(), err
	}
	return step.Wait(strings.Join(slices.Compact(missing), ", ") + " to exist"), nil
}

// ownTemplate adds the class to the owners of a template. It watches the kind before it reads the template, so that no creation
// is missed.
func (c *Controller) ownTemplate(
	ctx context.Context, class *clusterv1.ClusterClass, ref *corev1.ObjectReference, owner metav1.OwnerReference,
) (found bool, err error) {
	kind, err := c.Versions.Newest(ctx, ref.GroupVersionKind().GroupKind())
	if err != nil {
		return false, err
	}
	if err := c.Watch(ctx, kind); err != nil {
		return false, err
	}
	return reference.AddOwner(ctx, c.Client, c.External, ref, class.Namespace, owner)
}

// observe marks the class as ready to be used: the topology controller and admission wait for that.
func (c *Controller) observe(_ context.Context, class *clusterv1.ClusterClass) (step.Result, error) {
	class.Status.ObservedGeneration = class.Generation
	return step.Done(), nil
}

// versions reports references with an outdated API version.
func (c *Controller) versions(ctx context.Context, class *clusterv1.ClusterClass) (step.Result, error) {
	var outdated, notInstalled []string
	for _, ref := range templateRefs(class) {
		newest, err := c.Versions.Newest(ctx, ref.GroupVersionKind().GroupKind())
		if missing := (*contract.NotInstalledError)(nil); errors.As(err, &missing) {
			notInstalled = append(notInstalled, missing.Error())
			continue
		}
		if err != nil {
			return step.Done(), err
		}
		if want := newest.GroupVersion().String(); ref.APIVersion != want {
			outdated = append(outdated, fmt.Sprintf("%s %s should use apiVersion %s instead of %s", ref.Kind, ref.Name, want, ref.APIVersion))
		}
	}
	if len(notInstalled) > 0 {
		slices.Sort(notInstalled)
		return step.Done().WithConditions(condition.Unknown(clusterv1.ClusterClassRefVersionsUpToDateCondition,
			clusterv1.ClusterClassProviderNotInstalledReason, "%s", strings.Join(slices.Compact(notInstalled), ", "))), nil
	}
	if len(outdated) > 0 {
		return step.Done().WithConditions(condition.False(clusterv1.ClusterClassRefVersionsUpToDateCondition, clusterv1.ConditionSeverityWarning,
			clusterv1.ClusterClassOutdatedRefVersionsReason, "%s", strings.Join(outdated, ", "))), nil
	}
	return step.Done(), nil
}
