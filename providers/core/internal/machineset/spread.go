package machineset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// spreads reports whether the Machines of a set are spread over failure domains.
func spreads(set *clusterv1.MachineSet) bool {
	_, ok := set.Annotations[clusterv1.MachineSetSpreadAnnotation]
	return ok && set.Spec.Template.Spec.FailureDomain == ""
}

// nextDomain returns the failure domain of the next Machine: the one with the fewest Machines that stay, the first of several by name. It
// is that of the template if the set does not spread them, or if the Cluster has no failure domains. It is an error if the annotation
// names one that the Cluster does not have.
func nextDomain(set *clusterv1.MachineSet, cluster *clusterv1.Cluster, machines []*clusterv1.Machine) (string, error) {
	if !spreads(set) || cluster == nil || len(cluster.Status.FailureDomains) == 0 {
		return set.Spec.Template.Spec.FailureDomain, nil
	}
	var domains []string
	for _, d := range cluster.Status.FailureDomains {
		domains = append(domains, d.Name)
	}
	if value := strings.TrimSpace(set.Annotations[clusterv1.MachineSetSpreadAnnotation]); value != "" {
		chosen := strings.Split(value, ",")
		for i, name := range chosen {
			chosen[i] = strings.TrimSpace(name)
			if !slices.Contains(domains, chosen[i]) {
				return "", step.Terminal(fmt.Errorf("annotation %s of MachineSet %s: Cluster %s has no failure domain %q; it has %s",
					clusterv1.MachineSetSpreadAnnotation, set.Name, cluster.Name, chosen[i], strings.Join(domains, ", ")))
			}
		}
		domains = chosen
	}
	have := perDomain(machines)
	return slices.MinFunc(domains, func(a, b string) int { return cmp.Or(cmp.Compare(have[a], have[b]), strings.Compare(a, b)) }), nil
}

// perDomain counts the Machines of each failure domain that are not being deleted.
func perDomain(machines []*clusterv1.Machine) map[string]int {
	counts := map[string]int{}
	for _, m := range machines {
		if m.DeletionTimestamp.IsZero() {
			counts[m.Spec.FailureDomain]++
		}
	}
	return counts
}

// spreadOut orders Machines for deletion, those of the same priority so that the remaining ones stay spread: the next is always one of
// the failure domain with the most. machines are in the order of toDelete; equal reports whether two have the same priority.
func spreadOut(machines []*clusterv1.Machine, equal func(a, b *clusterv1.Machine) bool) []*clusterv1.Machine {
	have := perDomain(machines)
	left := slices.Clone(machines)
	var ordered []*clusterv1.Machine
	for len(left) > 0 {
		next := 0
		for i := 1; i < len(left) && equal(left[0], left[i]); i++ {
			if have[left[i].Spec.FailureDomain] > have[left[next].Spec.FailureDomain] {
				next = i
			}
		}
		m := left[next]
		if m.DeletionTimestamp.IsZero() {
			have[m.Spec.FailureDomain]--
		}
		ordered, left = append(ordered, m), slices.Delete(left, next, next+1)
	}
	return ordered
}
