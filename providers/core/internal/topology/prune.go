package topology

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/plan"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// prune deletes objects that are no longer part of the topology.
func (c *Controller) prune(ctx context.Context, s *scope) (step.Result, error) {
	deletions, err := c.deletable(ctx, s)
	errs := []error{err}
	for _, object := range deletions {
		uid := object.GetUID()
		err := c.Client.Delete(ctx, object, client.Preconditions{UID: &uid})
		if client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("deleting %s: %w", plan.Describe(object), err))
			continue
		}
		if err == nil {
			s.done.deleted = append(s.done.deleted, kindAndName(object))
		}
	}
	return recheckLeftovers(s), errors.Join(errs...)
}

// deletable returns the planned deletions without templates that are in use. That is checked against the API server, because
// the cache may not have a new MachineSet yet: two reads if there are templates to delete, none otherwise. In case of an
// error, the deletions returned are those that are not templates.
func (c *Controller) deletable(ctx context.Context, s *scope) ([]*unstructured.Unstructured, error) {
	templates, deletable := splitTemplates(s.plan.Deletions)
	if len(templates) == 0 {
		return deletable, nil
	}
	users, err := plan.ReadTemplateUsers(ctx, c.Live, s.cluster)
	if err != nil {
		return deletable, err
	}
	for _, template := range templates {
		if users.Use(template) {
			s.recheck = true
			continue
		}
		deletable = append(deletable, template)
	}
	return deletable, nil
}

func splitTemplates(objects []*unstructured.Unstructured) (templates, others []*unstructured.Unstructured) {
	for _, u := range objects {
		if strings.HasSuffix(u.GetKind(), clusterv1.TemplateSuffix) {
			templates = append(templates, u)
			continue
		}
		others = append(others, u)
	}
	return templates, others
}
