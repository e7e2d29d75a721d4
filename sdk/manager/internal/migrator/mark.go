package migrator

import (
	"context"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/sdk/step"
)

// mark records in an annotation that nothing is due. If a phase is skipped, it is only remembered in this process: another one may not
// skip it.
func (c *Controller) mark(_ context.Context, s *scope) (step.Result, error) {
	delete(c.progress, s.definition.UID)
	if s.skipped {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.looked == nil {
			c.looked = map[types.UID]int64{}
		}
		c.looked[s.definition.UID] = s.live.GetGeneration()
		return step.Done(), nil
	}
	if s.definition.Annotations == nil {
		s.definition.Annotations = map[string]string{}
	}
	s.definition.Annotations[Mark] = strconv.FormatInt(s.live.GetGeneration(), 10)
	return step.Done(), nil
}
