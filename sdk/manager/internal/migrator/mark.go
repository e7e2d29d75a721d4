package migrator

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/step"
)

// mark records in an annotation that nothing is due. If a phase is skipped, it is only remembered in this process: another one may not skip
// it. Without the permission, as in the Deployment of a version that does not migrate, this process migrates nothing.
func (c *Controller) mark(ctx context.Context, s *scope) (step.Result, error) {
	delete(c.progress, s.definition.UID)
	if s.skipped {
		c.remember(s)
		return step.Done(), nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]string{Mark: strconv.FormatInt(s.live.GetGeneration(), 10)},
	}})
	if err != nil {
		return step.Done(), err
	}
	err = c.Client.Patch(ctx, s.live, client.RawPatch(types.MergePatchType, patch))
	if apierrors.IsForbidden(err) {
		ctrl.LoggerFrom(ctx).Info("Migrating no objects: it cannot be recorded",
			"CustomResourceDefinition", s.live.GetName(), "advice", "allow the manager to patch its definitions, and restart it")
		c.forbid()
		return step.Done(), nil
	}
	if client.IgnoreNotFound(err) != nil {
		return step.Done(), fmt.Errorf("marking CustomResourceDefinition %s as migrated: %w", s.live.GetName(), err)
	}
	return step.Done(), nil
}

// forbid makes this process leave all definitions alone.
func (c *Controller) forbid() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forbidden = true
}

// remember makes this process leave the present generation of a definition alone.
func (c *Controller) remember(s *scope) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.looked == nil {
		c.looked = map[types.UID]int64{}
	}
	c.looked[s.definition.UID] = s.live.GetGeneration()
}
