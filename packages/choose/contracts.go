package choose

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/inventory"
)

// Releases are what a provider's repository has.
type Releases struct {
	// Versions are all published versions, in any order.
	Versions []string
	// Metadata is that of the latest version.
	Metadata *clusterctlv1.Metadata
}

// ContractItem is a provider of a plan.
type ContractItem struct {
	// Installed is the provider's entry in the inventory.
	Installed clusterctlv1.Provider
	// Next is the version to upgrade to, or "" if the provider is up to date.
	Next string
}

// ContractPlan is how all providers get to the latest versions of a contract.
type ContractPlan struct {
	Contract string
	// Core is the core provider's entry in the inventory.
	Core clusterctlv1.Provider
	// Items are all installed providers, sorted by type, name and namespace.
	Items []ContractItem
}

// UpToDate reports whether no provider has a newer version.
func (p ContractPlan) UpToDate() bool {
	return !slices.ContainsFunc(p.Items, func(i ContractItem) bool { return i.Next != "" })
}

// ContractPlans returns a plan for each contract that the core provider implements in its installed or a later release series, in
// the order of these series. A plan for another contract than the present one is left out if a provider has no version for it.
// releases are by manifest label.
func ContractPlans(installed inventory.Inventory, releases map[string]Releases) ([]ContractPlan, error) {
	core, err := coreProvider(installed)
	if err != nil {
		return nil, err
	}
	candidates := make([][]candidate, len(installed))
	for i := range installed {
		if candidates[i], err = newer(&installed[i], releases[installed[i].ManifestLabel()]); err != nil {
			return nil, err
		}
	}
	at := slices.IndexFunc(installed, func(p clusterctlv1.Provider) bool { return p.GetProviderType() == clusterctlv1.CoreProviderType })
	current := candidates[at][0].contract
	var plans []ContractPlan
	for _, contract := range contracts(core, releases[core.ManifestLabel()].Metadata) {
		plan, complete := planFor(contract, core, installed, candidates)
		if complete || contract == current {
			plans = append(plans, plan)
		}
	}
	return plans, nil
}

// coreProvider returns the only core provider.
func coreProvider(installed inventory.Inventory) (*clusterctlv1.Provider, error) {
	cores := installed.OfType(clusterctlv1.CoreProviderType)
	if len(cores) != 1 {
		return nil, fmt.Errorf("a management cluster must have one core provider, but this one has %d: see `kubectl get providers -A`",
			len(cores))
	}
	return &cores[0], nil
}

// candidate is the installed version of a provider, or a newer one, with its contract.
type candidate struct {
	text     string
	version  semver.Version
	contract string
}

// newer returns the installed version, and all newer ones, oldest first.
func newer(p *clusterctlv1.Provider, r Releases) ([]candidate, error) {
	installed, err := packages.ParseVersion(p.Version)
	if err != nil {
		return nil, fmt.Errorf("the inventory of %s in namespace %s: %w", p.ManifestLabel(), p.Namespace, err)
	}
	list := []candidate{{text: p.Version, version: installed}}
	for _, text := range r.Versions {
		if v, err := packages.ParseVersion(text); err == nil && v.GT(installed) {
			list = append(list, candidate{text: text, version: v})
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return a.version.Compare(b.version) })
	for i := range list {
		series := r.Metadata.GetReleaseSeriesForVersion(list[i].version.Major, list[i].version.Minor)
		if series == nil {
			return nil, fmt.Errorf("the metadata of the latest version of %s has no release series %d.%d, which %s needs: "+
				"the provider must add it to releaseSeries in metadata.yaml, or you can put a corrected file into the overrides folder",
				p.ManifestLabel(), list[i].version.Major, list[i].version.Minor, list[i].text)
		}
		list[i].contract = series.Contract
	}
	return list, nil
}

// contracts returns the contracts of the core provider's release series from the installed one on.
func contracts(core *clusterctlv1.Provider, metadata *clusterctlv1.Metadata) []string {
	installed, _ := packages.ParseVersion(core.Version) // newer has parsed it.
	series := slices.Clone(metadata.ReleaseSeries)
	slices.SortFunc(series, func(a, b clusterctlv1.ReleaseSeries) int {
		return cmp.Or(cmp.Compare(a.Major, b.Major), cmp.Compare(a.Minor, b.Minor))
	})
	var list []string
	for _, s := range series {
		older := cmp.Or(cmp.Compare(uint64(s.Major), installed.Major), cmp.Compare(uint64(s.Minor), installed.Minor)) < 0
		if !older && !slices.Contains(list, s.Contract) {
			list = append(list, s.Contract)
		}
	}
	return list
}

// planFor returns the plan for a contract. complete is whether every provider has a newer version for it.
func planFor(
	contract string, core *clusterctlv1.Provider, installed inventory.Inventory, candidates [][]candidate,
) (p ContractPlan, complete bool) {
	p, complete = ContractPlan{Contract: contract, Core: *core}, true
	for i, entry := range installed {
		item := ContractItem{Installed: entry}
		for _, c := range candidates[i][1:] {
			if c.contract == contract && len(c.version.Pre) == 0 {
				item.Next = c.text
			}
		}
		complete = complete && item.Next != ""
		p.Items = append(p.Items, item)
	}
	slices.SortStableFunc(p.Items, func(a, b ContractItem) int {
		x, y := a.Installed, b.Installed
		return cmp.Or(cmp.Compare(x.Type, y.Type), cmp.Compare(x.Name, y.Name), cmp.Compare(x.Namespace, y.Namespace))
	})
	return p, complete
}
