package check

import (
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"sigs.k8s.io/cluster-api/provider/contract"
)

// Version reports a Kubernetes version that is none.
func Version(version string, path *field.Path) field.ErrorList {
	if version == "" {
		return field.ErrorList{field.Required(path, "the Kubernetes version is required")}
	}
	if _, err := semantic(version); err != nil {
		return field.ErrorList{field.Invalid(path, version, `must be a semantic version with a leading "v", such as v1.30.2`)}
	}
	return nil
}

func semantic(version string) (semver.Version, error) {
	bare, ok := strings.CutPrefix(version, "v")
	if !ok {
		return semver.Version{}, fmt.Errorf("%q has no leading v", version)
	}
	return semver.Parse(bare)
}

// Upgrade reports why a topology cannot go from one Kubernetes version to another, whatever state its
// Cluster is in: down, or up by more than one minor version. Both are valid.
func Upgrade(old, current string, path *field.Path) field.ErrorList {
	order, err := contract.CompareVersions(current, old)
	if err != nil {
		return field.ErrorList{field.Invalid(path, current, err.Error())}
	}
	if order < 0 {
		return field.ErrorList{field.Invalid(path, current, fmt.Sprintf("the version cannot be lower than before, %s", old))}
	}
	was, is, err := both(old, current)
	if err != nil {
		return field.ErrorList{field.Invalid(path, current, err.Error())}
	}
	if is.Major > was.Major || is.Minor > was.Minor+1 {
		return field.ErrorList{field.Invalid(path, current, fmt.Sprintf(
			"a Cluster at %s can go up by one minor version at a time: upgrade to v%d.%d first", old, was.Major, was.Minor+1))}
	}
	return nil
}

// MinorUpgrade reports whether a change of version, valid by Upgrade, is one of the minor version. Such a
// change has to wait until nothing of the Cluster is still on the way to the old version.
func MinorUpgrade(old, current string) bool {
	was, is, err := both(old, current)
	return err == nil && (is.Major != was.Major || is.Minor != was.Minor)
}

func both(old, current string) (was, is semver.Version, err error) {
	if was, err = semantic(old); err != nil {
		return was, is, err
	}
	is, err = semantic(current)
	return was, is, err
}
