package contract

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/blang/semver/v4"
)

// CompareVersions compares two Kubernetes versions: the result is negative if a is lower than b, zero if they are equal, and positive if a
// is higher. A leading v is optional. Unlike semantic versioning, it considers build metadata, because distributions have releases that
// only differ in it (v1.27.3+vendor.2 is above v1.27.3+vendor.1): numbers are compared as numbers and are below words, words are
// compared as bytes, and if one is a prefix of the other, the longer one is higher.
func CompareVersions(a, b string) (int, error) {
	left, err := semver.ParseTolerant(a)
	if err != nil {
		return 0, fmt.Errorf("%q is not a semantic version: %w", a, err)
	}
	right, err := semver.ParseTolerant(b)
	if err != nil {
		return 0, fmt.Errorf("%q is not a semantic version: %w", b, err)
	}
	if order := left.Compare(right); order != 0 {
		return order, nil
	}
	return compareBuild(left.Build, right.Build), nil
}

func compareBuild(a, b []string) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		if order := compareIdentifier(a[i], b[i]); order != 0 {
			return order
		}
	}
	return cmp.Compare(len(a), len(b))
}

func compareIdentifier(a, b string) int {
	left, leftErr := strconv.ParseUint(a, 10, 64)
	right, rightErr := strconv.ParseUint(b, 10, 64)
	switch {
	case leftErr == nil && rightErr == nil:
		return cmp.Compare(left, right)
	case leftErr == nil:
		return -1
	case rightErr == nil:
		return 1
	default:
		return strings.Compare(a, b)
	}
}
