package step

import (
	"context"
	"errors"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step/internal/current"
)

// Step is a named step, or several steps that run together.
type Step[S any] struct {
	name      string
	condition clusterv1.ConditionType
	do        func(ctx context.Context, s S) (Result, error)
	// parts are the steps that this one consists of; none for a named step.
	parts []Step[S]
}

// Do returns a step. Its name appears in logs, metrics and the documentation of the controller.
func Do[S any](name string, f func(context.Context, S) (Result, error)) Step[S] {
	return Step[S]{name: name, do: f}
}

// Sets declares the condition of a step: True once the step is Done, False while it waits (Wait with Because) or after it
// failed with a reason (Error). Results can set other conditions (WithConditions) or none (KeepCondition).
func (s Step[S]) Sets(t clusterv1.ConditionType) Step[S] {
	s.condition = t
	return s
}

// InOrder runs steps one after another until one fails, waits or stops. Deadlines of earlier steps are kept.
func InOrder[S any](steps ...Step[S]) Step[S] {
	return Step[S]{parts: steps, do: func(ctx context.Context, s S) (Result, error) {
		var all Result
		for _, one := range steps {
			r, err := one.run(ctx, s)
			all = r.merge(all)
			if err != nil || all.Ends() {
				return all, err
			}
		}
		return all, nil
	}}
}

// All runs every step, regardless of the results of the others, and returns all errors and the earliest deadline. It stops if
// all of them stop, and waits if one of them waits.
func All[S any](steps ...Step[S]) Step[S] {
	return Step[S]{parts: steps, do: func(ctx context.Context, s S) (Result, error) {
		var (
			all     Result
			errs    []error
			stops   int
			waiting bool
		)
		for _, one := range steps {
			r, err := one.run(ctx, s)
			if err != nil {
				errs = append(errs, err)
			}
			if r.consequence == stopped {
				stops++
			}
			waiting = waiting || r.consequence == awaiting
			r.consequence = done
			all = r.merge(all)
		}
		switch {
		case waiting:
			all.consequence = awaiting
		case len(steps) > 0 && stops == len(steps):
			all.consequence = stopped
		}
		return all, errors.Join(errs...)
	}}
}

// When runs steps in order if holds returns true, and is Done otherwise.
func When[S any](holds func(S) bool, steps ...Step[S]) Step[S] {
	all := InOrder(steps...)
	return Step[S]{parts: steps, do: func(ctx context.Context, s S) (Result, error) {
		if !holds(s) {
			return Done(), nil
		}
		return all.do(ctx, s)
	}}
}

// Run runs steps in order, as InOrder does. It is for steps that consist of others; tests use steptest.Run.
func Run[S any](ctx context.Context, s S, steps ...Step[S]) (Result, error) {
	return InOrder(steps...).run(ctx, s)
}

// run runs a step, writes metadata and spec at a checkpoint, and sets the step's condition.
func (s Step[S]) run(ctx context.Context, scope S) (Result, error) {
	if len(s.parts) > 0 || s.name == "" {
		return s.do(ctx, scope)
	}
	r, ok := current.Of(ctx)
	if !ok {
		result, err := s.do(ctx, scope)
		return result.completed(), err
	}
	begun := r.Now()
	result, err := contained(ctx, "step "+s.name, func() (Result, error) { return s.do(ctx, scope) })
	if err == nil && result.consequence == checkpoint {
		err = r.Checkpoint(ctx)
	}
	r.StepDone(current.Step{Name: s.name, Took: r.Now().Sub(begun), Outcome: string(outcomeOf(result, err)), WaitsFor: result.what})
	result.statement.setConditions(r, s.condition, result, err)
	return result.completed(), err
}

// names returns the names of steps and their parts, in order.
func names[S any](steps []Step[S]) []string {
	var all []string
	for _, one := range steps {
		if one.name != "" {
			all = append(all, one.name)
		}
		all = append(all, names(one.parts)...)
	}
	return all
}

// stepNamed returns the step with a name.
func stepNamed[S any](name string, lists ...[]Step[S]) (Step[S], bool) {
	for _, steps := range lists {
		for _, one := range steps {
			if one.name == name {
				return one, true
			}
			if part, ok := stepNamed(name, one.parts); ok {
				return part, true
			}
		}
	}
	return Step[S]{}, false
}
