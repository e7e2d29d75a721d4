package controlplane

import (
	"context"
	"errors"
	"fmt"

	"github.com/blang/semver/v4"

	"sigs.k8s.io/cluster-api/sdk/step"
)

// adopt makes the control plane the controller of control plane Machines without one. If the version of one of them is more
// than one minor version away, none of them is adopted. It is the last step that creating Machines depends on.
func (c *Controller) adopt(ctx context.Context, s *scope) (step.Result, error) {
	if len(s.Orphans) == 0 {
		s.canCreate = true
		return step.Done(), nil
	}
	for _, m := range s.Orphans {
		if m.DeletionTimestamp != nil {
			return step.Wait("Machine " + m.Name + ", which has no controller, to be deleted"), nil
		}
		if m.Spec.Version == "" {
			continue
		}
		if err := adoptable(s.KCP.Spec.Version, m.Spec.Version); err != nil {
			step.Warning(ctx, "AdoptionFailed", "Cannot adopt Machine %s: %s", m.Name, err)
			return step.Stop(), step.Terminal(fmt.Errorf("adopting Machine %s: %w", m.Name, err))
		}
	}
	var errs []error
	for _, m := range s.Orphans {
		adopted := func() { m.OwnerReferences = append(m.OwnerReferences, *s.Owner()) }
		if err := c.Patch(ctx, m, adopted, step.IfUnchanged); err != nil {
			if !step.IsStale(err) {
				step.Warning(ctx, "AdoptionFailed", "Cannot adopt Machine %s: %s", m.Name, err)
			}
			errs = append(errs, fmt.Errorf("adopting Machine %s: %w", m.Name, err))
		}
	}
	return step.Wait("the cache to show the adopted Machines"), errors.Join(errs...)
}

func adoptable(controlPlane, machine string) error {
	own, err := semver.ParseTolerant(controlPlane)
	if err != nil {
		return fmt.Errorf("parsing the control plane's version %q: %w", controlPlane, err)
	}
	other, err := semver.ParseTolerant(machine)
	if err != nil {
		return fmt.Errorf("parsing its version %q: %w", machine, err)
	}
	if other.Major != own.Major || other.Minor+1 < own.Minor || other.Minor > own.Minor+1 {
		return fmt.Errorf("its version %s is more than one minor version away from %s", machine, controlPlane)
	}
	return nil
}
