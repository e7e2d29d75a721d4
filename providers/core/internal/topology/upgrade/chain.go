package upgrade

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"sigs.k8s.io/cluster-api/sdk/contract"
)

// Ends are the versions between which a Chain leads.
type Ends struct {
	// ControlPlane is the version in the spec of the control plane.
	ControlPlane string
	// Workers is the lowest version of the workers. Empty: there are none.
	Workers string
	// To is the version in the topology.
	To string
}

// Chain are the versions that are still to be reached, in ascending order. The last one is that of the topology. A list is empty if its
// part has that version.
type Chain struct {
	// ControlPlane has the versions of the control plane. It skips no minor version.
	ControlPlane []string
	// Workers has the versions at which the workers stop: versions of ControlPlane, or the one that the control plane has.
	Workers []string
}

// Direct returns the Chain without intermediate versions.
func (e Ends) Direct() Chain {
	var c Chain
	if e.ControlPlane != e.To {
		c.ControlPlane = []string{e.To}
	}
	if e.Workers != "" && e.Workers != e.To {
		c.Workers = []string{e.To}
	}
	return c
}

// IsDowngrade reports whether the control plane has a higher version than the topology, which only an annotation allows. Versions that only
// differ in build metadata are no downgrade.
func (e Ends) IsDowngrade() bool {
	return isLower(e.To, e.ControlPlane) && !sameRelease(e.To, e.ControlPlane)
}

// IsDirect reports whether there are no versions to choose: the control plane does not skip a minor version, or is not upgraded, and
// the workers stay within the skew that Kubernetes supports.
func (e Ends) IsDirect() bool {
	from, err := minors(e.ControlPlane, e.To)
	if err != nil || from > 1 {
		return err != nil
	}
	return !e.skips(e.To)
}

// Listed returns the Chain along the versions that a ClusterClass lists in ascending order: of each minor version between the ends, the
// highest. It is an error if one of these minor versions has none.
func (e Ends) Listed(versions []string) (Chain, error) {
	if e.IsDirect() {
		return e.Direct(), nil
	}
	from, to, err := parsed(e.ControlPlane, e.To)
	if err != nil {
		return Chain{}, err
	}
	var c Chain
	for minor := from.Minor + 1; minor < to.Minor; minor++ {
		best := ""
		for _, v := range versions {
			if listed, err := parseVersion(v); err == nil && listed.Major == to.Major && listed.Minor == minor {
				best = v
			}
		}
		if best == "" {
			return Chain{}, fmt.Errorf("the upgrade from %s to %s needs a version v%d.%d.x, and spec.kubernetesVersions has none: add one",
				e.ControlPlane, e.To, to.Major, minor)
		}
		c.ControlPlane = append(c.ControlPlane, best)
	}
	if e.ControlPlane != e.To {
		c.ControlPlane = append(c.ControlPlane, e.To)
	}
	c.Workers = e.stops(c.ControlPlane)
	return c, nil
}

// Checked returns a Chain that an extension chose, or why it is not valid. Without versions of workers, it gets as few as the skew allows.
func (e Ends) Checked(c Chain) (Chain, error) {
	if err := e.checkControlPlane(c.ControlPlane); err != nil {
		return Chain{}, fmt.Errorf("versions of the control plane: %w", err)
	}
	if len(c.Workers) == 0 || e.Workers == "" {
		c.Workers = e.stops(c.ControlPlane)
		return c, nil
	}
	if err := e.checkWorkers(c); err != nil {
		return Chain{}, fmt.Errorf("versions of workers: %w", err)
	}
	return c, nil
}

func (e Ends) checkControlPlane(steps []string) error {
	if e.ControlPlane == e.To {
		if len(steps) > 0 {
			return fmt.Errorf("there must be none, because it already has %s", e.To)
		}
		return nil
	}
	return ascending(e.ControlPlane, steps, e.To, 1)
}

func (e Ends) checkWorkers(c Chain) error {
	for _, step := range c.Workers {
		if step != e.ControlPlane && !slices.Contains(c.ControlPlane, step) {
			return fmt.Errorf("%s must be a version of the control plane: one of %s", step,
				strings.Join(append([]string{e.ControlPlane}, c.ControlPlane...), ", "))
		}
	}
	if e.Workers == e.To {
		return errors.New("there must be none, because all workers have version " + e.To)
	}
	return ascending(e.Workers, c.Workers, e.To, maxSkew)
}

// ascending returns an error unless versions lead from one version up to another, with at most a number of minor versions per step.
func ascending(from string, steps []string, to string, most uint64) error {
	if len(steps) == 0 || steps[len(steps)-1] != to {
		return fmt.Errorf("%s must end with %s", listed(steps), to)
	}
	for _, step := range steps {
		if _, err := parseVersion(step); err != nil {
			return err
		}
		order, err := contract.CompareVersions(step, from)
		if err != nil {
			return err
		}
		if order <= 0 && !sameRelease(from, step) {
			return fmt.Errorf("%s must be higher than %s", step, from)
		}
		n, err := minors(from, step)
		if err != nil {
			return err
		}
		if n > most {
			return fmt.Errorf("%s is %d minor versions above %s: at most %d are possible", step, n, from, most)
		}
		from = step
	}
	return nil
}

// maxSkew is how many minor versions kubelets may be older than the API server.
const maxSkew = 3

// stops returns the versions at which workers stop on the way of the control plane: as few as the skew allows, and the last.
func (e Ends) stops(controlPlane []string) []string {
	if e.Workers == "" || e.Workers == e.To {
		return nil
	}
	var stops []string
	workers, at := e.Workers, e.ControlPlane
	for _, next := range controlPlane {
		if skew, err := minors(workers, next); err == nil && skew > maxSkew && workers != at {
			stops = append(stops, at)
			workers = at
		}
		at = next
	}
	if workers != e.To {
		stops = append(stops, e.To)
	}
	return stops
}

// skips reports whether workers would be too old for a version of the control plane.
func (e Ends) skips(controlPlane string) bool {
	if e.Workers == "" || e.ControlPlane == e.To {
		return false
	}
	skew, err := minors(e.Workers, controlPlane)
	return err == nil && skew > maxSkew
}

// minors returns how many minor versions a version is above another one; zero if it is lower. Another major version is an error.
func minors(from, to string) (uint64, error) {
	was, is, err := parsed(from, to)
	if err != nil {
		return 0, err
	}
	if was.Major != is.Major {
		return 0, fmt.Errorf("%s has another major version than %s", to, from)
	}
	return max(is.Minor, was.Minor) - was.Minor, nil
}

// sameRelease reports whether two different versions only differ in build metadata.
func sameRelease(a, b string) bool {
	was, is, err := parsed(a, b)
	return err == nil && a != b && was.EQ(is)
}

func parsed(a, b string) (first, second semver.Version, err error) {
	if first, err = parseVersion(a); err != nil {
		return first, second, err
	}
	second, err = parseVersion(b)
	return first, second, err
}

func parseVersion(version string) (semver.Version, error) {
	bare, ok := strings.CutPrefix(version, "v")
	v, err := semver.Parse(bare)
	if !ok || err != nil {
		return v, fmt.Errorf(`%q must be a semantic version with a leading "v", such as v1.30.2`, version)
	}
	return v, nil
}

func listed(steps []string) string {
	if len(steps) == 0 {
		return "an empty list"
	}
	return strings.Join(steps, ", ")
}

// after returns the steps that follow a version; all of them if it is none of them.
func after(steps []string, version string) []string {
	return steps[slices.Index(steps, version)+1:]
}
