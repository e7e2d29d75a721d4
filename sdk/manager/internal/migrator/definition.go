package migrator

import (
	"context"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/migration"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// read reads the definition from the API server, because the cache has only its metadata, and decides what is due.
func (c *Controller) read(ctx context.Context, s *scope) (step.Result, error) {
	s.live = &unstructured.Unstructured{}
	s.live.SetGroupVersionKind(NewDefinition().GroupVersionKind())
	err := c.Live.Get(ctx, client.ObjectKeyFromObject(s.definition), s.live)
	switch {
	case apierrors.IsNotFound(err):
		return step.Stop(), nil
	case err != nil:
		return step.Done(), fmt.Errorf("reading CustomResourceDefinition %s: %w", s.definition.Name, err)
	case s.live.GetUID() != s.definition.UID, s.live.GetDeletionTimestamp() != nil, isMarked(s.live):
		return step.Stop(), nil // The cache will have it.
	case !established(s.live):
		return step.Wait("CustomResourceDefinition " + s.live.GetName() + " to be established"), nil
	}
	s.Definition = migration.Of(s.live)
	s.stores = !c.Skip.Skips(StorageVersionMigration) && !s.Migrated()
	s.cleans = !c.Skip.Skips(CleanupManagedFields)
	s.skipped = !s.cleans || !s.stores && !s.Migrated()
	s.progress = c.known(s.definition.UID, s.Kind.Version+" "+strings.Join(s.Served, ",")+" "+strings.Join(s.Stored, ","))
	return step.Done(), nil
}

// established reports whether the API server serves the objects of a definition.
func established(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, item := range conditions {
		if c, ok := item.(map[string]any); ok && c["type"] == string(apiextensionsv1.Established) {
			return c["status"] == string(apiextensionsv1.ConditionTrue)
		}
	}
	return false
}
