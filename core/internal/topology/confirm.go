package topology

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/core/internal/topology/desired"
	"sigs.k8s.io/cluster-api/provider/step"
)

// catchUp is when to look again at a Cluster of which the cache shows an old version. The event of the new one comes
// before, unless its watch is stuck.
const catchUp = 10 * time.Second

// confirm is the step that makes sure that the plan is not one for a Cluster or a ClusterClass of the past, before it
// changes or deletes what exists: the cache may be a minute old, and another leader may have acted on newer ones. Going
// back to an old version would replace Machines, and workers that were added since would be deleted. What is created
// needs no confirmation: its name derives from what it is for, and the Cluster owns it.
//
// It costs two reads for each reconcile that changes something that exists, and nothing otherwise.
func (c *Controller) confirm(ctx context.Context, s *scope) (step.Result, error) {
	needed, err := c.needsConfirmation(ctx, s)
	if !needed || err != nil {
		return step.Done(), err
	}
	return c.confirmed(ctx, s)
}

// confirmed waits if the plan is outdated.
func (c *Controller) confirmed(ctx context.Context, s *scope) (step.Result, error) {
	old, err := c.outdated(ctx, s)
	if old == "" || err != nil {
		return step.Done(), err
	}
	s.stale = true
	return step.WaitAtMost(catchUp, "the cache to show the newest "+old), nil
}

func (c *Controller) needsConfirmation(ctx context.Context, s *scope) (bool, error) {
	spec := &s.cluster.Spec
	if controllerutil.ContainsFinalizer(s.cluster, clusterv1.ClusterFinalizer) && (spec.InfrastructureRef == nil || spec.ControlPlaneRef == nil) {
		return true, nil // somebody may have set them; together with the finalizer the write is tied to a version
	}
	if len(s.plan.Deletions) > 0 {
		return true, nil
	}
	for _, stage := range s.plan.Stages {
		for _, change := range stage {
			if change.Live == nil || change.Kept {
				continue
			}
			if pending, err := c.Applier.Pending(ctx, change.Live, change.Desired, change.Options...); pending || err != nil {
				return pending, err
			}
		}
	}
	return false, nil
}

// outdated is what the plan was made of and has changed since, empty if it is all as it was.
func (c *Controller) outdated(ctx context.Context, s *scope) (string, error) {
	live := &clusterv1.Cluster{}
	err := c.Live.Get(ctx, client.ObjectKeyFromObject(s.cluster), live)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading the Cluster again: %w", err)
	}
	was, is := &s.cluster.Spec, &live.Spec
	if apierrors.IsNotFound(err) || live.UID != s.cluster.UID || !live.DeletionTimestamp.IsZero() || is.Paused ||
		!equality.Semantic.DeepEqual(was.Topology, is.Topology) || !equality.Semantic.DeepEqual(was.ClusterNetwork, is.ClusterNetwork) ||
		!equality.Semantic.DeepEqual(was.InfrastructureRef, is.InfrastructureRef) || !equality.Semantic.DeepEqual(was.ControlPlaneRef, is.ControlPlaneRef) {
		return "Cluster", nil
	}
	class := &clusterv1.ClusterClass{}
	err = c.Live.Get(ctx, client.ObjectKeyFromObject(s.plan.Class), class)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading the ClusterClass again: %w", err)
	}
	if err != nil || class.UID != s.plan.Class.UID || class.Generation != s.plan.Class.Generation {
		return "ClusterClass", nil
	}
	return "", nil
}

// unused leaves those of the deletions that may be carried out: a template only if nothing refers to it, which the API
// server is asked for, as the cache may not show a MachineSet that was just made. It costs two reads when there are
// templates to be deleted.
func (c *Controller) unused(ctx context.Context, s *scope) ([]*unstructured.Unstructured, error) {
	var templates, rest []*unstructured.Unstructured
	for _, u := range s.plan.Deletions {
		if strings.HasSuffix(u.GetKind(), clusterv1.TemplateSuffix) {
			templates = append(templates, u)
			continue
		}
		rest = append(rest, u)
	}
	if len(templates) == 0 {
		return rest, nil
	}
	users, err := readUsers(ctx, c.Live, s.cluster, Labelled(s.cluster))
	if err != nil {
		return rest, err
	}
	for _, u := range templates {
		key := keyOf(desired.RefTo(u))
		if users.sets[key] || users.going[key] || users.deployments[key] {
			s.unclean = true
			continue
		}
		rest = append(rest, u)
	}
	return rest, nil
}
