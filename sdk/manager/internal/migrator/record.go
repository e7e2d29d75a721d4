package migrator

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/step"
)

// record removes all other versions from status.storedVersions, unless the definition has changed since: it may store another version now.
func (c *Controller) record(ctx context.Context, s *scope) (step.Result, error) {
	if !s.stores {
		return step.Done(), nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": s.live.GetResourceVersion()},
		"status":   map[string]any{"storedVersions": []string{s.Kind.Version}},
	})
	if err != nil {
		return step.Done(), err
	}
	err = c.Client.Status().Patch(ctx, s.live, client.RawPatch(types.MergePatchType, patch))
	if err != nil {
		err = fmt.Errorf("writing status.storedVersions of CustomResourceDefinition %s: %w", s.live.GetName(), err)
	}
	if apierrors.IsForbidden(err) {
		return c.later(ctx, s, err), nil
	}
	return step.Done(), err
}
