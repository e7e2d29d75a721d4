package controller

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/providers/operator/internal/declared"
	"sigs.k8s.io/cluster-api/providers/operator/internal/engine"
	"sigs.k8s.io/cluster-api/providers/operator/internal/observed"
	"sigs.k8s.io/cluster-api/providers/operator/internal/source"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Options configure the controllers.
type Options struct {
	// Concurrency is how many objects of a kind are reconciled at the same time.
	Concurrency int
	// Filter selects the objects that this manager reconciles.
	Filter watch.Filter
	Engine *engine.Engine
	Source *source.Reader
}

// Controller reconciles the objects of a kind.
type Controller struct {
	step.Outside
	kind declared.Kind
	// cached has the metadata of all observed kinds: Client reads Secrets and ConfigMaps from the API server.
	cached    client.Reader
	engine    *engine.Engine
	source    *source.Reader
	verified  *verified
	downloads downloads
}

// Setup adds a controller for every kind to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	for _, k := range declared.Kinds() {
		name := strings.ToLower(string(k.Type))
		c := &Controller{
			Outside: step.OutsideOf(mgr, name+"-controller", o.Filter), kind: k, engine: o.Engine, source: o.Source, verified: newVerified(),
			cached: mgr.GetCache(),
		}
		controller := c.declared()
		controller.Concurrency = o.Concurrency
		for _, other := range declared.Kinds() {
			if other.Type != k.Type {
				controller.Watches = append(controller.Watches, step.Mapped(other.New(), c.ofOther, affectsOthers()))
			}
		}
		if err := step.Add(ctx, mgr, c.Outside, controller); err != nil {
			return err
		}
	}
	return nil
}

// declared returns the declaration of the controller, without the watches of the other kinds.
func (c *Controller) declared() step.Controller[declared.Object, *scope] {
	return step.Controller[declared.Object, *scope]{
		Name:    strings.ToLower(string(c.kind.Type)),
		New:     c.kind.New,
		Watches: c.watches(),
		Scope:   c.scope,
		Steps: []step.Step[*scope]{
			step.Do("adopt", adopt),
			step.Do("preflight", c.preflight).Sets(operatorv1.PreflightCheckCondition),
			step.Do("release", c.release),
			step.Do("install", c.install).Sets(operatorv1.ProviderInstalledCondition),
		},
		Deletion: []step.Step[*scope]{
			step.Do("unused", c.unused).Sets(operatorv1.ReadyCondition),
			step.Do("remove", c.remove),
		},
		Report:   []step.Step[*scope]{step.When((*scope).isInstalled, step.Do("available", available).Sets(operatorv1.ReadyCondition))},
		Observed: func(o declared.Object, generation int64) { o.GetStatus().ObservedGeneration = generation },
	}
}

// watches returns the watches of what providers consist of.
func (c *Controller) watches() []step.Watch {
	list := []step.Watch{step.Mapped(&appsv1.Deployment{}, c.ofComponent)}
	for _, kind := range observed.Kinds() {
		list = append(list, step.Mapped(observed.Metadata(kind), c.ofComponent))
	}
	return list
}

// scope is the state of one reconcile, shared by its steps.
type scope struct {
	declared.Provider
	// all are all provider objects.
	all []declared.Provider
	// deployments are those of the provider, sorted by name.
	deployments []appsv1.Deployment
	// others identifies the provider's objects of other kinds, of which only has those to compare; nil: everything is to be compared.
	others observed.State
	only   []schema.GroupVersionKind
	// hash is that of the spec, as far as it determines the components.
	hash string
	// found is the release; nil if the components are as the spec demands.
	found *source.Release
}

func (c *Controller) scope(ctx context.Context, o declared.Object) (*scope, error) {
	s := &scope{Provider: declared.Provider{Type: c.kind.Type, Object: o}}
	var err error
	if s.all, err = declared.List(ctx, c.Client); err != nil {
		return nil, err
	}
	if s.deployments, err = deploymentsOf(ctx, c.Client, s.Provider); err != nil {
		return nil, err
	}
	s.others, err = observed.StateOf(ctx, c.cached, s.Identity().ManifestLabel())
	return s, err
}

// state returns what identifies the spec and what is in the management cluster.
func (s *scope) state() state { return state{s.hash, specsOf(s.deployments), s.others} }

// deploymentsOf returns the Deployments of a provider.
func deploymentsOf(ctx context.Context, from client.Reader, p declared.Provider) ([]appsv1.Deployment, error) {
	list := &appsv1.DeploymentList{}
	err := from.List(ctx, list, client.InNamespace(p.GetNamespace()), client.MatchingLabels{clusterv1.ProviderNameLabel: p.Identity().ManifestLabel()})
	if err != nil {
		return nil, fmt.Errorf("listing the Deployments of %s: %w", p, err)
	}
	return list.Items, nil
}

// ofComponent returns the provider object of an object with a provider label.
func (c *Controller) ofComponent(ctx context.Context, component client.Object) []reconcile.Request {
	label := component.GetLabels()[clusterv1.ProviderNameLabel]
	return c.requests(ctx, func(p declared.Provider) bool { return p.Identity().ManifestLabel() == label })
}

// ofOther returns all objects of this kind when an object of another kind changes such that they may be affected.
func (c *Controller) ofOther(ctx context.Context, _ client.Object) []reconcile.Request {
	return c.requests(ctx, func(declared.Provider) bool { return true })
}

// requests returns the objects of this kind that are selected.
func (c *Controller) requests(ctx context.Context, selected func(declared.Provider) bool) []reconcile.Request {
	all, err := declared.List(ctx, c.Client)
	if err != nil {
		return nil // The cache has all kinds when controllers start.
	}
	var requests []reconcile.Request
	for _, p := range all {
		if p.Type == c.kind.Type && selected(p) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p)})
		}
	}
	return requests
}

// affectsOthers selects the events after which others may be installed, changed or deleted.
func affectsOthers() predicate.Predicate {
	return predicate.Or(watch.Created(), watch.Deleted(), watch.Updated(func(before, after declared.Object) bool {
		return before.GetSpec().Paused != after.GetSpec().Paused || contractOf(before) != contractOf(after) || isReady(before) != isReady(after)
	}))
}

func isReady(o declared.Object) bool { return condition.IsTrue(o, operatorv1.ReadyCondition) }

// contractOf returns the contract of the installed version, "" if none is installed.
func contractOf(o declared.Object) string { return ptr.Deref(o.GetStatus().Contract, "") }
