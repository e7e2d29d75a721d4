package controller

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/packages/components"
)

// isPaused reports whether a Deployment has no replicas because its provider is paused.
func isPaused(d appsv1.Deployment) bool {
	return d.Annotations[operatorv1.PausedReplicasAnnotation] != "" && ptr.Deref(d.Spec.Replicas, 1) == 0
}

// pause scales Deployments to zero, and records how many replicas they have otherwise: without a number in the components, those that they
// had last.
func pause(c *components.Components, live []appsv1.Deployment) {
	eachDeployment(c, live, func(o *unstructured.Unstructured, spec map[string]any, last int64) {
		replicas, ok := spec["replicas"]
		if !ok {
			replicas = last
		}
		annotate(o, operatorv1.PausedReplicasAnnotation, fmt.Sprint(replicas))
		spec["replicas"] = int64(0)
	})
}

// resume gives Deployments the replicas that they had before the pause, if the components have no number.
func resume(c *components.Components, live []appsv1.Deployment) {
	paused := slices.DeleteFunc(slices.Clone(live), func(d appsv1.Deployment) bool { return !isPaused(d) })
	eachDeployment(c, paused, func(o *unstructured.Unstructured, spec map[string]any, last int64) {
		isPaused := slices.ContainsFunc(paused, func(d appsv1.Deployment) bool { return d.Name == o.GetName() })
		if _, ok := spec["replicas"]; !ok && isPaused {
			spec["replicas"] = last
		}
	})
}

// eachDeployment calls do for each Deployment of the components, with its spec and the replicas that it had when it was last not paused.
func eachDeployment(
	c *components.Components, live []appsv1.Deployment, do func(o *unstructured.Unstructured, spec map[string]any, last int64),
) {
	for i := range c.Objects {
		o := &c.Objects[i]
		spec, ok := o.Object["spec"].(map[string]any)
		if o.GetKind() != "Deployment" || !ok {
			continue
		}
		last := int64(1)
		if i := slices.IndexFunc(live, func(d appsv1.Deployment) bool { return d.Name == o.GetName() }); i >= 0 {
			last = lastReplicas(live[i])
		}
		do(o, spec, last)
	}
}

func lastReplicas(d appsv1.Deployment) int64 {
	if !isPaused(d) {
		return int64(ptr.Deref(d.Spec.Replicas, 1))
	}
	n, err := strconv.ParseInt(d.Annotations[operatorv1.PausedReplicasAnnotation], 10, 32)
	if err != nil {
		return 1 // A user changed it.
	}
	return n
}

func resuming(d *appsv1.Deployment) string {
	return fmt.Sprintf("Waiting for Deployment %s to be resumed", d.Name)
}

// isStopped reports whether a Deployment has no Pods, and will not get any.
func isStopped(d *appsv1.Deployment) bool {
	return ptr.Deref(d.Spec.Replicas, 1) == 0 && d.Status.Replicas == 0 && d.Status.ObservedGeneration >= d.Generation
}

// unmark removes the number of replicas from Deployments that are no longer paused: upgrades keep annotations.
func (c *Controller) unmark(ctx context.Context, deployments []appsv1.Deployment, isPaused bool) error {
	for i := range deployments {
		d := &deployments[i]
		if _, marked := d.Annotations[operatorv1.PausedReplicasAnnotation]; !marked || isPaused {
			continue
		}
		if err := c.Patch(ctx, d, func() { delete(d.Annotations, operatorv1.PausedReplicasAnnotation) }); err != nil {
			return fmt.Errorf("removing the number of replicas before the pause from Deployment %s: %w", client.ObjectKeyFromObject(d), err)
		}
	}
	return nil
}
