package check

import (
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/util/validation/field"

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

// Upgrade rejects changes of version that no Cluster can follow, whatever its state: downgrades, and upgrades by more than one
// minor version. Both versions must be valid.
func Upgrade(old, current string, path *field.Path) field.ErrorList {
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
	if is.Major > was.Major || is.Minor > was.Minor+1 {
		return field.ErrorList{field.Invalid(path, current, fmt.Sprintf(
			"a Cluster at %s can be upgraded by one minor version at a time: upgrade to v%d.%d first", old, was.Major, was.Minor+1))}
	}
	return nil
}

// MinorUpgrade reports whether a change of version that Upgrade accepts changes the minor version. It must wait until every
// part of the Cluster has the old version.
func MinorUpgrade(old, current string) bool {
	was, is, err := parseBoth(old, current)
	return err == nil && (is.Major != was.Major || is.Minor != was.Minor)
}

// KubeletHasVersion reports whether a kubelet has a version. Not all distributions include build metadata in the version of kubelets.
func KubeletHasVersion(kubelet, version string) bool {
	kubelet, _, _ = strings.Cut(kubelet, "+")
	version, _, _ = strings.Cut(version, "+")
	order, err := contract.CompareVersions(kubelet, version)
	return err == nil && order == 0
}

func parseBoth(old, current string) (was, is semver.Version, err error) {
	if was, err = parse(old); err != nil {
		return was, is, err
	}
	is, err = parse(current)
	return was, is, err
}
