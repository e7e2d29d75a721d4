package topology

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/provider/step"
)

// apply applies the objects that differ from what is wanted, those of one stage at the same time. A stage whose
// objects could not all be applied ends it: what comes later builds on them.
func (c *Controller) apply(ctx context.Context, s *scope) (step.Result, error) {
	for _, stage := range s.plan.Stages {
		if err := c.applyStage(ctx, stage, &s.done); err != nil {
			return step.Done(), err
		}
	}
	// What was made has to be seen by the next reconcile, or that makes it again: harmless, but it costs a request.
	for _, made := range s.done.made {
		step.AwaitVisible(ctx, c.Cache, made)
	}
	return step.Done(), nil
}

func (c *Controller) applyStage(ctx context.Context, stage []Change, done *outcome) error {
	errs := make([]error, len(stage))
	results := make([]*unstructured.Unstructured, len(stage))
	var all sync.WaitGroup
	for i, change := range stage {
		if change.Kept {
			continue
		}
		one := func() {
			asked, answered := c.Recent.Asking(client.ObjectKeyFromObject(change.Desired))
			defer answered()
			result, changed, err := c.Applier.Apply(ctx, change.Live, change.Desired, change.Options...)
			if errs[i] = err; err == nil && changed {
				results[i] = result
				c.Recent.Saw(result, asked)
			}
		}
		if c.serial {
			one()
			continue
		}
		all.Go(one)
	}
	all.Wait()
	for i, result := range results {
		if result != nil {
			done.applied(stage[i].Live == nil, result)
		}
	}
	return errors.Join(errs...)
}

// prune deletes what the topology had and has no longer. It is gone for everybody once its finalizers are.
func (c *Controller) prune(ctx context.Context, s *scope) (step.Result, error) {
	deletions, err := c.unused(ctx, s)
	errs := []error{err}
	for _, object := range deletions {
		uid := object.GetUID()
		err := c.Client.Delete(ctx, object, client.Preconditions{UID: &uid})
		if client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("deleting %s: %w", describe(object), err))
			continue
		}
		if err == nil {
			s.done.deleted = append(s.done.deleted, short(object))
		}
	}
	return again(s), errors.Join(errs...)
}

// outcome is what a reconcile changed.
type outcome struct {
	made                      []client.Object
	created, updated, deleted []string
}

func (o *outcome) applied(isNew bool, result *unstructured.Unstructured) {
	if !isNew {
		o.updated = append(o.updated, short(result))
		return
	}
	o.created = append(o.created, short(result))
	made := typedObject(result.GroupVersionKind())
	if made == nil {
		o.made = append(o.made, result)
		return
	}
	made.SetNamespace(result.GetNamespace())
	made.SetName(result.GetName())
	made.SetResourceVersion(result.GetResourceVersion())
	o.made = append(o.made, made)
}

// The reasons of events.
const (
	createEvent = "TopologyCreate"
	updateEvent = "TopologyUpdate"
	deleteEvent = "TopologyDelete"
)

// announce tells of all changes of one reconcile in one event: it is a write.
func (o *outcome) announce(ctx context.Context, cluster metav1.Object) {
	var parts []string
	reason := ""
	for _, part := range []struct {
		reason, verb string
		names        []string
	}{
		{deleteEvent, "deleted", o.deleted},
		{createEvent, "created", o.created},
		{updateEvent, "updated", o.updated},
	} {
		if len(part.names) > 0 {
			reason = part.reason
			slices.Sort(part.names)
			parts = append(parts, part.verb+" "+strings.Join(part.names, ", "))
		}
	}
	if reason == "" {
		return
	}
	step.Event(ctx, reason, "Topology of Cluster %s: %s", cluster.GetName(), strings.Join(parts, "; "))
}

func short(u *unstructured.Unstructured) string { return u.GetKind() + " " + u.GetName() }

func waitingForPredecessor(names []string) string {
	return fmt.Sprintf("MachineDeployment(s) or MachinePool(s) for topologies %s wait for the deletion of those that have their name",
		strings.Join(names, ", "))
}
