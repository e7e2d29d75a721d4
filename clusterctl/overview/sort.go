package overview

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
)

// comparisons are the orders of rows by their keys.
func comparisons() map[string]func(a, b *Row) int {
	return map[string]func(a, b *Row) int{
		"namespace":     func(a, b *Row) int { return cmp.Compare(a.Namespace, b.Namespace) },
		"name":          func(a, b *Row) int { return cmp.Compare(a.Name, b.Name) },
		"class":         func(a, b *Row) int { return cmp.Compare(a.Class, b.Class) },
		"version":       func(a, b *Row) int { return compareVersions(a.Version, b.Version) },
		"phase":         func(a, b *Row) int { return cmp.Compare(a.Phase, b.Phase) },
		"control-plane": func(a, b *Row) int { return cmp.Compare(a.ControlPlane.desired(), b.ControlPlane.desired()) },
		"workers":       func(a, b *Row) int { return cmp.Compare(a.Workers.Desired, b.Workers.Desired) },
		"ready":         func(a, b *Row) int { return cmp.Compare(rankOfReady(a), rankOfReady(b)) },
		"activity":      func(a, b *Row) int { return cmp.Compare(a.Activity, b.Activity) },
		"created":       func(a, b *Row) int { return a.Created.Compare(b.Created.Time) },
		"age":           func(a, b *Row) int { return b.Created.Compare(a.Created.Time) },
	}
}

// SortKeys returns the keys of Sort.
func SortKeys() []string { return slices.Sorted(maps.Keys(comparisons())) }

// Sort sorts rows by a key; rows that are equal stay in their order. An empty key changes nothing. Paths of fields, as kubectl has them,
// such as {.metadata.creationTimestamp}, are keys, too.
func Sort(rows []Row, key string) error {
	if key == "" {
		return nil
	}
	normal := strings.Trim(key, "{}")
	normal = strings.ToLower(normal[strings.LastIndex(normal, ".")+1:])
	if normal == "creationtimestamp" {
		normal = "created"
	}
	compare, ok := comparisons()[normal]
	if !ok {
		return fmt.Errorf("clusters cannot be sorted by %q: use one of %s", key, strings.Join(SortKeys(), ", "))
	}
	slices.SortStableFunc(rows, func(a, b Row) int { return compare(&a, &b) })
	return nil
}

func (r *Replicas) desired() int64 {
	if r == nil {
		return 0
	}
	return r.Desired
}

// rankOfReady puts Clusters that need attention first.
func rankOfReady(r *Row) int {
	return slices.Index([]string{"False", "Unknown", "", "True"}, r.Ready)
}

// compareVersions compares versions as such, and before them what is none.
func compareVersions(a, b string) int {
	va, errA := semver.ParseTolerant(a)
	vb, errB := semver.ParseTolerant(b)
	switch {
	case errA == nil && errB == nil:
		return va.Compare(vb)
	case errA != nil && errB != nil:
		return cmp.Compare(a, b)
	case errA != nil:
		return -1
	default:
		return 1
	}
}
