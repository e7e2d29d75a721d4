package rollout

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/providers/fleet/internal/rollout/wave"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// mark records what has become of Clusters. No Cluster is changed before all of it is recorded: a failure that is not recorded would not
// count.
func (c *Controller) mark(ctx context.Context, s *scope) (step.Result, error) {
	var written []client.Object
	var errs []error
	for _, a := range s.decision.Actions {
		if a.Verb != wave.Mark {
			continue
		}
		m := s.member(a.Cluster.Name)
		cluster, err := c.write(ctx, m.cluster, s.entry(m, a), nil)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		written = append(written, cluster)
	}
	c.await(ctx, s, written)
	return step.Done(), errors.Join(errs...)
}
