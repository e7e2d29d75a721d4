package controlplane

import (
	"context"
	"errors"
	"fmt"

	"github.com/blang/semver/v4"

	"sigs.k8s.io/cluster-api/provider/step"
)

// adopt makes control plane Machines of the Cluster that nobody controls the control plane's own, if it could have made
// them: a Machine more than one minor version away is left alone, and so are all others then.
func (c *Controller) adopt(ctx context.Context, s *scope) (step.Result, error) {
	if len(s.orphans) == 0 {
		return step.Done(), nil
	}
	for _, m := range s.orphans {
		if m.DeletionTimestamp != nil {
			return step.Wait("Machine " + m.Name + ", which belongs to nobody, to go"), nil
		}
		if m.Spec.Version == nil {
			continue
		}
		if err := adoptable(s.kcp.Spec.Version, *m.Spec.Version); err != nil {
			step.Warning(ctx, "AdoptionFailed", "Cannot adopt Machine %s: %s", m.Name, err)
			return step.Stop(), step.Terminal(fmt.Errorf("adopting Machine %s: %w", m.Name, err))
		}
	}
	var errs []error
	for _, m := range s.orphans {
		adopted := func() { m.OwnerReferences = append(m.OwnerReferences, *s.owner()) }
		if err := c.Patch(ctx, m, true, adopted); err != nil {
			if !step.IsStale(err) {
				step.Warning(ctx, "AdoptionFailed", "Cannot adopt Machine %s: %s", m.Name, err)
			}
			errs = append(errs, fmt.Errorf("adopting Machine %s: %w", m.Name, err))
		}
	}
	return step.Wait("the adopted Machines to show up"), errors.Join(errs...)
}

func adoptable(controlPlane, machine string) error {
	ours, err := semver.ParseTolerant(controlPlane)
	if err != nil {
		return fmt.Errorf("parsing the control plane's version %q: %w", controlPlane, err)
	}
	its, err := semver.ParseTolerant(machine)
	if err != nil {
		return fmt.Errorf("parsing its version %q: %w", machine, err)
	}
	if its.Major != ours.Major || its.Minor+1 < ours.Minor || its.Minor > ours.Minor+1 {
		return fmt.Errorf("its version %s is more than one minor version away from %s", machine, controlPlane)
	}
	return nil
}
