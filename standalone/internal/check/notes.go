package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// notes returns what may matter to a user besides writes.
func (r *run) notes(s *selection) []Note {
	f := r.source.facts
	var all []Note
	add := func(about string, items []string, format string, args ...any) {
		if len(items) > 0 {
			slices.Sort(items)
			all = append(all, Note{About: about, Text: fmt.Sprintf(format, args...), Items: items})
		}
	}
	add("providers", f.providers, "%s", strings.Join(sortedCopy(f.providers), ", "))
	for _, contract := range slices.Sorted(maps.Keys(f.contracts)) {
		add("contracts", f.contracts[contract], "%d kinds of providers support contract %s", len(f.contracts[contract]), contract)
	}
	for _, how := range slices.Sorted(maps.Keys(f.storing)) {
		add("versions", f.storing[how], "%d definitions: the API server %s", len(f.storing[how]), how)
	}
	add("versions", f.several, "objects may still be stored in older versions, and are stored again by our managers: %s", some(f.several))
	add("versions", f.notConverted, "objects are read in one version only, because their provider converts them: %s", some(f.notConverted))
	add("flags", r.observer.sorted(r.observer.advice), "%s", strings.Join(r.observer.sorted(r.observer.advice), "; "))
	forbidden := r.observer.sorted(r.observer.forbidden)
	add("permissions", forbidden, "our managers lack permissions, and do without: %s", some(forbidden))
	add("field managers", counted(f.managers), "%s", strings.Join(counted(f.managers), ", "))
	for _, field := range slices.Sorted(maps.Keys(f.unknown)) {
		objects := f.unknown[field]
		add("unknown fields", objects, "our API has no field %s, which %d objects have: %s", field, len(objects), some(objects))
	}
	add("extensions", f.extensions, "runtime extensions are not called: %s", some(f.extensions))
	unread := r.workloads.unread()
	add("workload clusters", unread, "%d workload clusters were not read, so what our managers do there, and because of what they see there, "+
		"remains open: %s", len(unread), some(unread))
	add("not computed", s.unreadSkipped, "%d changes of the status of objects whose workload cluster was not read: %s",
		len(s.unreadSkipped), some(s.unreadSkipped))
	add("not computed", s.etcdSkipped, "%d changes of conditions and counters that depend on the health of etcd, which was not asked: %s",
		len(s.etcdSkipped), some(s.etcdSkipped))
	add("not computed", s.extensionSkipped, "%d changes of the status that depend on runtime extensions: %s",
		len(s.extensionSkipped), some(s.extensionSkipped))
	add("status", s.passing, "the status of %d objects is written, and its fields end as they were, but for times of transitions: %s",
		len(s.passing), some(s.passing))
	errs := counted(r.observer.errors)
	add("errors", errs, "our managers logged errors: %s", some(errs))
	return all
}

// counted returns names with their numbers.
func counted(of map[string]int) []string {
	names := make([]string, 0, len(of))
	for _, name := range slices.Sorted(maps.Keys(of)) {
		names = append(names, fmt.Sprintf("%s: %d", name, of[name]))
	}
	return names
}

func sortedCopy(names []string) []string { return slices.Sorted(slices.Values(names)) }
