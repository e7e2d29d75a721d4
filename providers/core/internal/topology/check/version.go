package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/contract"
)

// Version validates a Kubernetes version.
func Version(version string, path *field.Path) field.ErrorList {
	if version == "" {
		return field.ErrorList{field.Required(path, "the Kubernetes version is required")}
	}
	if _, err := parse(version); err != nil {
		return field.ErrorList{field.Invalid(path, version, `must be a semantic version with a leading "v", such as v1.30.2`)}
	}
	return nil
}

func parse(version string) (semver.Version, error) {
	bare, ok := strings.CutPrefix(version, "v")
	if !ok {
		return semver.Version{}, fmt.Errorf("version %q has no leading v", version)
	}
	return semver.Parse(bare)
}

// Upgrade rejects changes of version that no Cluster can follow, whatever its state: downgrades, upgrades to another major version, and,
// unless the class has the versions in between or an extension for them, upgrades by more than one minor version. Both versions must be
// valid.
func Upgrade(old, current string, chained bool, path *field.Path) field.ErrorList {
	order, err := contract.CompareVersions(current, old)
	if err != nil {
		return field.ErrorList{field.Invalid(path, current, err.Error())}
	}
	if order < 0 {
		return field.ErrorList{field.Invalid(path, current, fmt.Sprintf("must not be lower than the previous version %s", old))}
	}
	was, is, err := parseBoth(old, current)
	if err != nil {
		return field.ErrorList{field.Invalid(path, current, err.Error())}
	}
	if is.Major > was.Major || !chained && is.Minor > was.Minor+1 {
		return field.ErrorList{field.Invalid(path, current, fmt.Sprintf(
			"a Cluster at %s can be upgraded by one minor version at a time: upgrade to v%d.%d first", old, was.Major, was.Minor+1))}
	}
	return nil
}

// IsChained reports whether Clusters of a class can be upgraded by several minor versions at once.
func IsChained(class *clusterv1.ClusterClass) bool {
	return len(class.Spec.KubernetesVersions) > 0 || class.Spec.Upgrade.External.GenerateUpgradePlanExtension != ""
}

// Listed rejects a version that a class does not list, if it lists any.
func Listed(version string, class *clusterv1.ClusterClass, path *field.Path) field.ErrorList {
	versions := class.Spec.KubernetesVersions
	if len(versions) == 0 || slices.Contains(versions, version) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, version, fmt.Sprintf(
		"must be one of spec.kubernetesVersions of ClusterClass %s: %s", class.Name, strings.Join(versions, ", ")))}
}

// classVersions validates the versions that a class lists: ascending, and without a gap between minor versions, so that Clusters can be
// upgraded from each to each that follows.
func classVersions(versions []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, version := range versions {
		at := path.Index(i)
		if invalid := Version(version, at); len(invalid) > 0 {
			errs = append(errs, invalid...)
			continue
		}
		if i == 0 {
			continue
		}
		before := versions[i-1]
		was, is, err := parseBoth(before, version)
		if err != nil {
			continue // The one before is reported already.
		}
		order, err := contract.CompareVersions(version, before)
		switch {
		case err != nil:
			errs = append(errs, field.Invalid(at, version, err.Error()))
		case order <= 0:
			errs = append(errs, field.Invalid(at, version, fmt.Sprintf("must be higher than %s, which is before it", before)))
		case is.Major != was.Major || is.Minor > was.Minor+1:
			errs = append(errs, field.Invalid(at, version, fmt.Sprintf(
				"must not skip a minor version: add one of v%d.%d after %s", was.Major, was.Minor+1, before)))
		}
	}
	return errs
}

// removesVersions reports whether Clusters may have, or need on the way of an upgrade, a version that a class no longer lists.
func removesVersions(old, current *clusterv1.ClusterClass) bool {
	was, is := old.Spec.KubernetesVersions, current.Spec.KubernetesVersions
	return len(was) == 0 && len(is) > 0 || slices.ContainsFunc(was, func(version string) bool { return !slices.Contains(is, version) })
}

// removedVersions reports versions that Clusters or their pinned workers have and a class no longer lists. Those that were not listed
// before, which an annotation allows, do not count.
func removedVersions(old, current *clusterv1.ClusterClass, clusters []clusterv1.Cluster) field.ErrorList {
	if !removesVersions(old, current) {
		return nil
	}
	was, is := old.Spec.KubernetesVersions, current.Spec.KubernetesVersions
	if stranded := underway(old, current, clusters); len(stranded) > 0 {
		return field.ErrorList{field.Forbidden(field.NewPath("spec", "kubernetesVersions"), fmt.Sprintf(
			"must keep a version of each minor version that Clusters which are being upgraded have yet to pass: %s", listed(stranded)))}
	}
	if len(is) == 0 {
		return nil // All versions are possible.
	}
	missing := func(version string) bool {
		return !slices.Contains(is, version) && (len(was) == 0 || slices.Contains(was, version))
	}
	users := using(clusters, func(t *clusterv1.Topology) bool {
		return missing(t.Version) || slices.ContainsFunc(PinnedWorkers(t, nil), func(p Pinned) bool { return missing(p.Version) })
	})
	if len(users) == 0 {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "kubernetesVersions"), fmt.Sprintf(
		"must have the versions of all Clusters of the class: those of %s are missing", listed(users)))}
}

// underway returns the Clusters that could not continue an upgrade by several minor versions along the versions that a class lists. Minor
// versions that were not listed before, which an annotation allows, do not count.
func underway(old, current *clusterv1.ClusterClass, clusters []clusterv1.Cluster) []string {
	was, is := old.Spec.KubernetesVersions, current.Spec.KubernetesVersions
	if len(was) == 0 || current.Spec.Upgrade.External.GenerateUpgradePlanExtension != "" {
		return nil // Nothing was listed, or the extension chooses the versions.
	}
	has := func(versions []string, next clusterv1.UpgradePlanVersion) bool {
		return slices.ContainsFunc(versions, func(v string) bool { return SameMinor(v, next.Version) })
	}
	return usingIn(clusters, func(c *clusterv1.Cluster) bool {
		if c.Status.ControlPlane == nil {
			return false
		}
		steps := c.Status.ControlPlane.UpgradePlan
		if len(is) == 0 {
			return len(steps) > 1 // One step needs no list.
		}
		return slices.ContainsFunc(steps, func(next clusterv1.UpgradePlanVersion) bool { return has(was, next) && !has(is, next) })
	})
}

// KubeletHasVersion reports whether a kubelet has a version. Not all distributions include build metadata in the version of kubelets.
func KubeletHasVersion(kubelet, version string) bool {
	kubelet, _, _ = strings.Cut(kubelet, "+")
	version, _, _ = strings.Cut(version, "+")
	order, err := contract.CompareVersions(kubelet, version)
	return err == nil && order == 0
}

// SameMinor reports whether two valid versions have the same minor version.
func SameMinor(old, current string) bool {
	was, is, err := parseBoth(old, current)
	return err == nil && was.Major == is.Major && was.Minor == is.Minor
}

func parseBoth(old, current string) (was, is semver.Version, err error) {
	if was, err = parse(old); err != nil {
		return was, is, err
	}
	is, err = parse(current)
	return was, is, err
}
