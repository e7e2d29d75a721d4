package scenario

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sigs.k8s.io/cluster-api/test/fault/history"
)

// failureDomains returns scenarios of Clusters whose infrastructure has failure domains.
func failureDomains() []Scenario {
	s := deployed(3, 1)
	all := []Scenario{
		creation("failure-domains-create", s),
		rollout("failure-domains-upgrade", s, Upgrade, 3, 1, Upgraded),
	}
	for i := range all {
		all[i].Prepare, all[i].Done = UseFailureDomains, append(all[i].Done, spread)
	}
	return all
}

// zones are the failure domains for control planes.
func zones() []string { return []string{"a", "b", "c"} }

// UseFailureDomains changes the class: the infrastructure of its Clusters has zones, and another one that is not for control planes.
func UseFailureDomains(ctx context.Context, t Target) error {
	domains := map[string]any{"workers-only": map[string]any{}}
	for _, name := range zones() {
		domains[name] = map[string]any{"controlPlane": true}
	}
	return useInfrastructure(ctx, t, "zones", map[string]any{"spec": map[string]any{"failureDomains": domains}})
}

// spread is true when the control plane has one Machine in each zone.
func spread(now history.State) error {
	var in []string
	machines, _ := Machines(now)
	for _, m := range machines {
		domain, _, _ := unstructured.NestedString(m.Object, "spec", "failureDomain")
		in = append(in, domain)
	}
	slices.Sort(in)
	if !slices.Equal(in, zones()) {
		return fmt.Errorf("the control plane Machines are in failure domains %q, want one in each of %q", in, zones())
	}
	return nil
}
