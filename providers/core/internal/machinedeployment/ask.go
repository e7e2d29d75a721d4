package machinedeployment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/lru"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/core/internal/machinedeployment/rollout"
	"sigs.k8s.io/cluster-api/providers/internal/extension"
	"sigs.k8s.io/cluster-api/providers/internal/inplace"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// ask asks the extension which old MachineSets have Machines that can be updated in place, instead of being replaced. Without an extension,
// or without such MachineSets, it does nothing.
func (c *Controller) ask(ctx context.Context, s *scope) (step.Result, error) {
	s.movable = nil
	md := s.deployment
	if c.updater == nil || ptr.Deref(md.Spec.Paused, false) || strategyOf(md) != clusterv1.RollingUpdateMachineDeploymentStrategyType {
		return step.Done(), nil
	}
	old := slices.DeleteFunc(s.old(), func(set *clusterv1.MachineSet) bool {
		return ptr.Deref(set.Spec.Replicas, 0) <= 0 && s.tally(set).Replicas == 0
	})
	if len(old) == 0 {
		return step.Done(), nil
	}
	handlers, err := c.updater.Handlers(ctx, runtimehooksv1.CanUpdateMachineSet, md)
	if err != nil || len(handlers) == 0 {
		return step.Done(), err
	}
	s.movable = map[string]bool{}
	for _, set := range old {
		can, err := c.canUpdate(ctx, s, set, handlers)
		if busy, ok := errors.AsType[*extension.BusyError](err); ok {
			return step.WaitAtMost(busy.RetryAfter(), "the extension of hook CanUpdateMachineSet"), nil
		}
		if err != nil {
			return step.Done(), fmt.Errorf("finding out whether Machines of MachineSet %s can be updated in place: %w", set.Name, err)
		}
		if can {
			s.movable[set.Name] = true
		}
	}
	return step.Done(), nil
}

// canUpdate reports whether the Machines of an old MachineSet can be updated in place. It only asks if it does not have the answer for
// these two templates.
func (c *Controller) canUpdate(ctx context.Context, s *scope, set *clusterv1.MachineSet, handlers []string) (bool, error) {
	md := s.deployment
	question := fmt.Sprint(md.UID, hashOf(&set.Spec.Template, md.Namespace), hashOf(&md.Spec.Template, md.Namespace), handlers)
	now := c.Clock.Now()
	if can, ok := c.answers.get(question, now); ok {
		return can, nil
	}
	desired := s.current
	if desired == nil {
		desired = s.desired(nil, rollout.Target{})
	}
	current, err := c.withTemplates(ctx, set)
	if err == nil {
		var wanted inplace.SetObjects
		if wanted, err = c.withTemplates(ctx, desired); err == nil {
			var obstacles []string
			obstacles, err = inplace.CanUpdateSet(ctx, c.updater, current, wanted)
			if err == nil && len(obstacles) > 0 {
				ctrl.LoggerFrom(ctx).Info("Machines cannot be updated in place and are replaced", "MachineSet", set.Name, "obstacles",
					strings.Join(obstacles, ", "))
			}
			if err == nil {
				c.answers.put(question, len(obstacles) == 0, now)
				return len(obstacles) == 0, nil
			}
		}
	}
	if apierrors.IsNotFound(err) || errors.Is(err, extension.ErrNoHandler) {
		return false, nil // The rollout reports a template that does not exist.
	}
	return false, err
}

// withTemplates returns a MachineSet with its templates.
func (c *Controller) withTemplates(ctx context.Context, set *clusterv1.MachineSet) (inplace.SetObjects, error) {
	spec := &set.Spec.Template.Spec
	out := inplace.SetObjects{Set: set}
	var err error
	if out.Infrastructure, err = c.external.Get(ctx, &spec.InfrastructureRef, set.Namespace); err != nil {
		return out, err
	}
	if spec.Bootstrap.ConfigRef.IsDefined() {
		out.Bootstrap, err = c.external.Get(ctx, &spec.Bootstrap.ConfigRef, set.Namespace)
	}
	return out, err
}

const (
	// maxAnswers is how many answers are kept, and answerFor how long: extensions may learn.
	maxAnswers = 4096
	answerFor  = 10 * time.Minute
)

// answers are answers of extensions by question. They are in memory only: losing one costs a call.
type answers struct {
	mu sync.Mutex
	of *lru.Cache // of answer
}

type answer struct {
	can   bool
	until time.Time
}

func newAnswers() *answers { return &answers{of: lru.New(maxAnswers)} }

func (a *answers) get(question string, now time.Time) (can, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	found, ok := a.of.Get(question)
	if !ok || !now.Before(found.(answer).until) {
		return false, false
	}
	return found.(answer).can, true
}

func (a *answers) put(question string, can bool, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.of.Add(question, answer{can: can, until: now.Add(answerFor)})
}
