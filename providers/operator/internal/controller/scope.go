package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/packages/live"
	"sigs.k8s.io/cluster-api/providers/operator/internal/engine"
	"sigs.k8s.io/cluster-api/providers/operator/internal/providerobject"
	"sigs.k8s.io/cluster-api/providers/operator/internal/source"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Controller reconciles the objects of a kind.
type Controller struct {
	step.Clients
	kind providerobject.Kind
	// cached has the metadata of CachedKinds: Client reads Secrets and ConfigMaps from the API server.
	cached client.Reader
	engine *engine.Engine
	source *source.Reader
	inputs *inputs
	drift  *drift
}

// scope is the state of one reconcile, shared by its steps.
type scope struct {
	providerobject.Provider
	// all are all provider objects.
	all []providerobject.Provider
	// deployments are those of the provider, sorted by name.
	deployments []appsv1.Deployment
	// others identifies the provider's objects of CachedKinds.
	others componentState
	// inputs identifies the contents of the Secrets and ConfigMaps that the spec refers to.
	inputs string
	// only are the kinds to compare with the components; nil: all.
	only []schema.GroupVersionKind
	// hash is that of the spec, as far as it determines the components.
	hash string
	// components identifies the components as the spec demands them, whether the provider is paused or not.
	components string
	// shared are CustomResourceDefinitions of the components that another provider has, whose label they have.
	shared []unstructured.Unstructured
	// found is the release; nil if the components are as the spec demands.
	found *source.Release
}

func (c *Controller) scope(ctx context.Context, o providerobject.Object) (*scope, error) {
	s := &scope{Provider: providerobject.Provider{Type: c.kind.Type, Object: o}}
	var err error
	if s.all, err = providerobject.List(ctx, c.Client); err != nil {
		return nil, err
	}
	if s.deployments, err = deploymentsOf(ctx, c.Client, s.Provider); err != nil {
		return nil, err
	}
	if s.others, err = componentStateOf(ctx, c.cached, s.Identity().ManifestLabel()); err != nil {
		return nil, err
	}
	if o.GetDeletionTimestamp().IsZero() {
		s.inputs, err = c.inputs.versions(ctx, s.Provider)
	}
	return s, err
}

// state returns what identifies the spec, with what it refers to, and what is in the management cluster.
func (s *scope) state() state {
	return state{s.demand() + "\n" + s.related(), specsOf(s.deployments), s.others}
}

// related identifies the providers that may share definitions with this one: what one of them has is taken over when it is deleted.
func (s *scope) related() string {
	var labels []string
	for _, p := range s.all {
		if label := p.Identity().ManifestLabel(); live.Related(s.Identity().ManifestLabel(), label) {
			labels = append(labels, label)
		}
	}
	slices.Sort(labels)
	return strings.Join(labels, " ")
}

// demand identifies the spec and the contents of what it refers to.
func (s *scope) demand() string { return s.hash + "\n" + s.inputs }

// deploymentsOf returns the Deployments of a provider.
func deploymentsOf(ctx context.Context, from client.Reader, p providerobject.Provider) ([]appsv1.Deployment, error) {
	list := &appsv1.DeploymentList{}
	err := from.List(ctx, list, client.InNamespace(p.GetNamespace()),
		client.MatchingLabels{clusterv1.ProviderNameLabel: p.Identity().ManifestLabel()})
	if err != nil {
		return nil, fmt.Errorf("listing the Deployments of %s: %w", p, err)
	}
	return list.Items, nil
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
