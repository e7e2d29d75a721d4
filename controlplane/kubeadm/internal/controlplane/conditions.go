package controlplane

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
)

// conditionAttempts bounds how often a write of conditions starts over from the live Machine.
const conditionAttempts = 5

// saveConditions writes the conditions of a Machine if they differ from before. The Machine's own controller and
// health checks write conditions of the same list, so the write is tied to the version that it was computed from, and
// on a conflict only what changed here is carried over to the live Machine.
func (c *Controller) saveConditions(ctx context.Context, m *clusterv1.Machine, before clusterv1.Conditions) error {
	if sameConditions(before, m.Status.Conditions) {
		return nil
	}
	condition.Stamp(m, before, c.Clock.Now())
	after := m.Status.Conditions
	version, conditions := m.ResourceVersion, after
	for attempt := 0; ; attempt++ {
		written, err := c.patchConditions(ctx, m, version, conditions)
		if err == nil {
			if attempt == 0 {
				m.ResourceVersion = written
			} // else m is older than what was written to, and a deletion of m has to find that out
			return nil
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		if !apierrors.IsConflict(err) || attempt == conditionAttempts {
			return fmt.Errorf("writing the health of Machine %s: %w", client.ObjectKeyFromObject(m), err)
		}
		live := &clusterv1.Machine{}
		if err := c.Live.Get(ctx, client.ObjectKeyFromObject(m), live); err != nil {
			return client.IgnoreNotFound(err)
		}
		version, conditions = live.ResourceVersion, condition.Merge(before, after, live.Status.Conditions)
		if sameConditions(conditions, live.Status.Conditions) {
			return nil
		}
	}
}

func (c *Controller) patchConditions(ctx context.Context, m *clusterv1.Machine, version string, conditions clusterv1.Conditions) (string, error) {
	raw, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": version},
		"status":   map[string]any{"conditions": conditions},
	})
	if err != nil {
		return "", err
	}
	answer := &clusterv1.Machine{}
	answer.Namespace, answer.Name = m.Namespace, m.Name
	err = c.Client.Status().Patch(ctx, answer, client.RawPatch(types.MergePatchType, raw), client.FieldOwner(FieldManager))
	return answer.ResourceVersion, err
}

func sameConditions(a, b clusterv1.Conditions) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !condition.SameState(a[i], b[i]) {
			return false
		}
	}
	return true
}
