package scale

import (
	"cmp"
	"maps"
	"slices"
)

// placement returns the failure domain with the fewest Machines that are up to date, and then the fewest Machines. Machines
// that are being deleted do not count.
func placement(in Input) string {
	if len(in.FailureDomains) == 0 {
		return ""
	}
	current, all := map[string]int{}, map[string]int{}
	for _, m := range in.Machines {
		if m.Deleting {
			continue
		}
		all[m.FailureDomain]++
		if !m.Outdated {
			current[m.FailureDomain]++
		}
	}
	return slices.MinFunc(in.FailureDomains, func(a, b string) int {
		return cmp.Or(cmp.Compare(current[a], current[b]), cmp.Compare(all[a], all[b]), cmp.Compare(a, b))
	})
}

// machineToDelete returns the Machine to delete: the oldest one of the first group that is not empty, in the failure domain with the
// most Machines. It is empty if all Machines are being deleted.
func machineToDelete(in Input) string {
	staying := slices.DeleteFunc(slices.Clone(in.Machines), func(m Machine) bool { return m.Deleting })
	group := firstGroup(staying)
	if len(group) == 0 {
		return ""
	}
	domain := fullest(in.FailureDomains, group, staying)
	group = slices.DeleteFunc(group, func(m Machine) bool { return m.FailureDomain != domain })
	return slices.MinFunc(group, oldestFirst).Name
}

// firstGroup returns the Machines that may be deleted first.
func firstGroup(machines []Machine) []Machine {
	groups := []func(Machine) bool{
		func(m Machine) bool { return m.Outdated && m.Unwanted },
		func(m Machine) bool { return m.Unwanted },
		func(m Machine) bool { return m.Outdated && m.Broken },
		func(m Machine) bool { return m.Outdated },
		func(m Machine) bool { return m.Broken },
		func(Machine) bool { return true },
	}
	for _, member := range groups {
		var group []Machine
		for _, m := range machines {
			if member(m) {
				group = append(group, m)
			}
		}
		if len(group) > 0 {
			return group
		}
	}
	return nil
}

// fullest returns the failure domain of the group with the most Machines. A failure domain that is no longer offered comes
// first.
func fullest(offered []string, group, all []Machine) string {
	inGroup, inAll := map[string]int{}, map[string]int{}
	for _, m := range group {
		inGroup[m.FailureDomain]++
	}
	for _, m := range all {
		inAll[m.FailureDomain]++
	}
	gone := func(domain string) int {
		if len(offered) > 0 && !slices.Contains(offered, domain) {
			return 0
		}
		return 1
	}
	return slices.MinFunc(slices.Sorted(maps.Keys(inGroup)), func(a, b string) int {
		return cmp.Or(cmp.Compare(gone(a), gone(b)), -cmp.Compare(inAll[a], inAll[b]), -cmp.Compare(inGroup[a], inGroup[b]), cmp.Compare(a, b))
	})
}
