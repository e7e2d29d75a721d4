package controller

import (
	"context"
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"

	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/providers/operator/internal/engine"
	"sigs.k8s.io/cluster-api/providers/operator/internal/providerobject"
	"sigs.k8s.io/cluster-api/providers/operator/internal/source"
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

// Setup adds a controller for every kind to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	for _, k := range providerobject.Kinds() {
		name := strings.ToLower(string(k.Type))
		c := &Controller{
			Clients: step.ClientsOf(mgr, name+"-controller", o.Filter), kind: k, engine: o.Engine, source: o.Source, drift: newDrift(),
			cached: mgr.GetCache(), inputs: newInputs(watchInput(mgr)),
		}
		controller := c.declared()
		controller.Concurrency = o.Concurrency
		controller.Watches = append(controller.Watches, step.From(ctrlsource.Func(c.inputs.start)))
		for _, other := range providerobject.Kinds() {
			controller.Watches = append(controller.Watches, step.Mapped(other.New(), c.ofOther, affectsOthers()))
		}
		if err := step.Add(ctx, mgr, c.Clients, controller); err != nil {
			return err
		}
	}
	return nil
}

// declared returns the declaration of the controller, without the watches of other provider objects.
func (c *Controller) declared() step.Controller[providerobject.Object, *scope] {
	return step.Controller[providerobject.Object, *scope]{
		Name:    strings.ToLower(string(c.kind.Type)),
		New:     c.kind.New,
		Watches: c.watches(),
		Scope:   c.scope,
		Steps: []step.Step[*scope]{
			step.Do("adopt", adopt),
			step.Do("stop", c.stop),
			step.Do("preflight", c.preflight).Sets(operatorv1.PreflightCheckCondition),
			step.Do("release", c.release),
			step.Do("install", c.install).Sets(operatorv1.ProviderInstalledCondition),
		},
		Deletion: []step.Step[*scope]{
			step.Do("unused", c.unused).Sets(operatorv1.ReadyCondition),
			step.Do("remove", c.remove),
		},
		Report: []step.Step[*scope]{
			step.When((*scope).isInstalled, step.Do("available", available).Sets(operatorv1.ReadyCondition)),
			step.Do("observe", observe),
		},
		Observed: func(o providerobject.Object, generation int64) { o.GetStatus().ObservedGeneration = generation },
	}
}
