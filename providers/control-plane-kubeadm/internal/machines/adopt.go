package machines

import (
	"context"
	"errors"
	"fmt"

	"github.com/blang/semver/v4"

	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Adopt makes the control plane the controller of control plane Machines without one. If the version of one of them is more
// than one minor version away, none of them is adopted.
func (mgr *Manager) Adopt(ctx context.Context, cp *snapshot.ControlPlane) (step.Result, error) {
	if len(cp.Orphans) == 0 {
		return step.Done(), nil
	}
	for _, m := range cp.Orphans {
		if m.DeletionTimestamp != nil {
			return step.Wait("Machine " + m.Name + ", which has no controller, to be deleted"), nil
		}
		if m.Spec.Version == nil {
			continue
		}
		if err := adoptable(cp.KCP.Spec.Version, *m.Spec.Version); err != nil {
			step.Warning(ctx, "AdoptionFailed", "Cannot adopt Machine %s: %s", m.Name, err)
			return step.Stop(), step.Terminal(fmt.Errorf("adopting Machine %s: %w", m.Name, err))
		}
	}
	var errs []error
	for _, m := range cp.Orphans {
		adopted := func() { m.OwnerReferences = append(m.OwnerReferences, *cp.Owner()) }
		if err := mgr.Patch(ctx, m, adopted, step.IfUnchanged); err != nil {
			if !step.IsStale(err) {
				step.Warning(ctx, "AdoptionFailed", "Cannot adopt Machine %s: %s", m.Name, err)
			}
			errs = append(errs, fmt.Errorf("adopting Machine %s: %w", m.Name, err))
		}
	}
	return step.Wait("the cache to show the adopted Machines"), errors.Join(errs...)
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
