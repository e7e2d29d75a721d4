package topology

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/plan"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// apply applies the objects that differ from the desired ones, stage by stage. It stops after a stage with an error, because
// later stages depend on it.
func (c *Controller) apply(ctx context.Context, s *scope) (step.Result, error) {
	for _, stage := range s.plan.Stages {
		if err := c.applyStage(ctx, stage, &s.done); err != nil {
			return step.Done(), err
		}
	}
	// If the cache did not have the new objects, the next reconcile would create them again: harmless, but a request each.
	for _, object := range s.done.newObjects {
		step.AwaitVisible(ctx, c.Cache, object)
	}
	return step.Done(), nil
}

// applyStage applies the objects of a stage concurrently, and records those that changed.
func (c *Controller) applyStage(ctx context.Context, stage []plan.Change, done *outcome) error {
	errs := make([]error, len(stage))
	results := make([]*unstructured.Unstructured, len(stage))
	var requests []func()
	for i, change := range stage {
		if !change.Kept {
			requests = append(requests, func() { results[i], errs[i] = c.applyChange(ctx, change) })
		}
	}
	c.concurrently(requests)
	for i, result := range results {
		if result != nil {
			done.applied(stage[i].Live == nil, result)
		}
	}
	return errors.Join(errs...)
}

// concurrently implements Controller.concurrently.
func concurrently(functions []func()) {
	var running sync.WaitGroup
	for _, f := range functions {
		running.Go(f)
	}
	running.Wait()
}

// applyChange applies one object. The result is nil if it did not change.
func (c *Controller) applyChange(ctx context.Context, change plan.Change) (*unstructured.Unstructured, error) {
	asked, answered := c.Recent.Announce(client.ObjectKeyFromObject(change.Desired))
	defer answered()
	result, changed, err := c.Applier.Apply(ctx, change.Live, change.Desired, change.Options...)
	if err != nil || !changed {
		return nil, rejected(change, err)
	}
	c.Recent.Wrote(result, asked)
	return result, nil
}

// rejected adds to the error of an object that its own validation rejects, such as a KubeadmControlPlane with a changed field that cannot
// change, what users can do: they write the Cluster and its class, not the object.
func rejected(change plan.Change, err error) error {
	if err == nil || change.Live == nil || !apierrors.IsInvalid(err) {
		return err
	}
	advice := "The change comes from spec.topology of the Cluster, or from its class: revert it there, or create another Cluster"
	was, _ := contract.ControlPlaneOf(contract.Object{Unstructured: change.Live}).Version()
	is, _ := contract.ControlPlaneOf(contract.Object{Unstructured: change.Desired}).Version()
	if was != nil && is != nil && *was != *is {
		advice += fmt.Sprintf(". spec.topology.version can go back to %s with annotation %s",
			*was, clusterv1.ClusterTopologyUnsafeUpdateVersionAnnotation)
	}
	return fmt.Errorf("%w. %s", err, advice)
}
