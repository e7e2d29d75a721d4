package choose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/inventory"
)

// Releases are what a provider's repository has.
type Releases struct {
	// Versions are all published versions, in any order.
	Versions []string
	// Metadata is that of the latest version that has one, MetadataVersion.
	Metadata        *clusterctlv1.Metadata
	MetadataVersion string
	// Override is where users can put corrected metadata, if that is possible.
	Override string
	// Err is why the repository could not be read; nothing else is set then.
	Err error
}

// ContractItem is a provider of a plan.
type ContractItem struct {
	// Installed is the provider's entry in the inventory.
	Installed clusterctlv1.Provider
	// Next is the version to upgrade to, or "" if the provider is up to date.
	Next string
	// Problem is why the versions of the provider are unknown. It says nothing about others.
	Problem error
	// Skipped are newer versions whose contract is unknown, because the metadata does not have their series.
	Skipped []string
}

// ContractPlan is how all providers get to the latest versions for a contract: of the core provider, the latest that implements it; of the
// others, the latest that works with that core provider, and implements this contract or an older one.
type ContractPlan struct {
	Contract string
	// Current is set if the core provider implements the contract already.
	Current bool
	// Core is the core provider's entry in the inventory.
	Core clusterctlv1.Provider
	// Items are all installed providers, sorted by type, name and namespace.
	Items []ContractItem
}

// SameVersions reports whether two plans have the same versions.
func (p ContractPlan) SameVersions(q ContractPlan) bool {
	return slices.EqualFunc(p.Items, q.Items, func(a, b ContractItem) bool { return a.Next == b.Next })
}

// UpToDate reports whether no provider has a newer version.
func (p ContractPlan) UpToDate() bool {
	return !slices.ContainsFunc(p.Items, func(i ContractItem) bool { return i.Next != "" || i.Problem != nil })
}

// Problems returns those of the providers.
func (p ContractPlan) Problems() []error {
	var list []error
	for _, i := range p.Items {
		if i.Problem != nil {
			list = append(list, fmt.Errorf("%s stays at %s: %w", i.Installed.Name, i.Installed.Version, i.Problem))
		}
	}
	return list
}

// Skipped returns a warning for each provider with skipped versions.
func (p ContractPlan) Skipped() []string {
	var list []string
	for _, i := range p.Items {
		if len(i.Skipped) > 0 {
			list = append(list, fmt.Sprintf("not considering %s of %s: its metadata.yaml has no release series for it",
				strings.Join(i.Skipped, ", "), i.Installed.Name))
		}
	}
	return list
}

// ContractPlans returns a plan for each contract that the core provider implements in its installed or a later release series, in the
// order of these series. A plan for another contract than the present one is left out if the core provider has no version for it,
// installed or newer, or another provider none that works with that. releases are by manifest label. What is unknown of one provider does
// not change the plans of others.
func ContractPlans(installed inventory.Inventory, releases map[string]Releases) ([]ContractPlan, error) {
	core, err := coreProvider(installed)
	if err != nil {
		return nil, err
	}
	known := make([]knowledge, len(installed))
	for i := range installed {
		k := &known[i]
		k.candidates, k.skipped, k.problem = newer(&installed[i], releases[installed[i].ManifestLabel()])
	}
	at := slices.IndexFunc(installed, func(p clusterctlv1.Provider) bool { return p.GetProviderType() == clusterctlv1.CoreProviderType })
	// The present contract is the only one that is worth a plan if nothing is known of the core provider.
	current, wanted := packages.Contract, []string{packages.Contract}
	if known[at].problem == nil {
		current, wanted = known[at].candidates[0].contract, contracts(core, releases[core.ManifestLabel()].Metadata)
	}
	var plans []ContractPlan
	for _, contract := range wanted {
		plan, complete := planFor(contract, at, installed, known)
		if complete || contract == current {
			plan.Current = contract == current
			plans = append(plans, plan)
		}
	}
	return plans, nil
}

// knowledge is what is known of a provider's versions.
type knowledge struct {
	candidates []candidate
	skipped    []string
	problem    error
}

// newest returns the newest candidate that is wanted, which is no pre-release, and true; or else the installed version.
func (k knowledge) newest(wanted func(candidate) bool) (c candidate, changes bool) {
	for i, c := range slices.Backward(k.candidates) {
		if i > 0 && wanted(c) && len(c.version.Pre) == 0 {
			return c, true
		}
	}
	if len(k.candidates) > 0 {
		c = k.candidates[0]
	}
	return c, false
}

// isOlder reports whether a contract is before another one that this project supports.
func isOlder(contract, other string) bool {
	i, j := slices.Index(packages.Contracts(), contract), slices.Index(packages.Contracts(), other)
	return 0 <= i && i < j
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

// core returns the candidate as one of the core provider.
func (c candidate) core(name string) packages.Core {
	return packages.Core{Name: name, Version: c.text, Contract: c.contract}
}

// newer returns the installed version, and all newer ones, oldest first; skipped are those whose series is not in the metadata.
func newer(p *clusterctlv1.Provider, r Releases) (list []candidate, skipped []string, err error) {
	if r.Err != nil {
		return nil, nil, r.Err
	}
	installed, err := packages.ParseVersion(p.Version)
	if err != nil {
		return nil, nil, fmt.Errorf("the inventory of %s in namespace %s: %w", p.ManifestLabel(), p.Namespace, err)
	}
	versions := []candidate{{text: p.Version, version: installed}}
	for _, text := range r.Versions {
		if v, err := packages.ParseVersion(text); err == nil && v.GT(installed) {
			versions = append(versions, candidate{text: text, version: v})
		}
	}
	slices.SortStableFunc(versions, func(a, b candidate) int { return a.version.Compare(b.version) })
	for i, v := range versions {
		series := r.Metadata.GetReleaseSeriesForVersion(v.version.Major, v.version.Minor)
		switch {
		case series != nil:
			v.contract = series.Contract
			list = append(list, v)
		case i == 0:
			return nil, nil, withoutSeries(p, v, r)
		default:
			skipped = append(skipped, v.text)
		}
	}
	return list, skipped, nil
}

func withoutSeries(p *clusterctlv1.Provider, v candidate, r Releases) error {
	place := "the overrides folder"
	if r.Override != "" {
		place = r.Override
	}
	return fmt.Errorf("metadata.yaml of %s %s, the latest version that has one, has no release series %d.%d, "+
		"which the installed version %s needs: the provider must add it to releaseSeries, or you can put a corrected file at %s",
		p.ManifestLabel(), r.MetadataVersion, v.version.Major, v.version.Minor, v.text, place)
}

// contracts returns the contracts that the core provider's release series implement, from the installed one on.
func contracts(core *clusterctlv1.Provider, metadata *clusterctlv1.Metadata) []string {
	installed, _ := packages.ParseVersion(core.Version) // newer has parsed it.
	series := slices.Clone(metadata.ReleaseSeries)
	slices.SortFunc(series, func(a, b clusterctlv1.ReleaseSeries) int {
		return cmp.Or(cmp.Compare(a.Major, b.Major), cmp.Compare(a.Minor, b.Minor))
	})
	var list []string
	for _, s := range series {
		older := cmp.Or(cmp.Compare(uint64(s.Major), installed.Major), cmp.Compare(uint64(s.Minor), installed.Minor)) < 0
		of := packages.Core{Name: core.ProviderName, Version: fmt.Sprintf("v%d.%d.0", s.Major, s.Minor), Contract: s.Contract}
		for _, contract := range append([]string{s.Contract}, packages.Contracts()...) {
			if !older && of.Implements(contract) && !slices.Contains(list, contract) {
				list = append(list, contract)
			}
		}
	}
	return list
}

// planFor returns the plan for a contract; at is the index of the core provider. complete is whether the core provider has a version for
// it, and every other one a version that works with that; possibly the installed ones.
func planFor(contract string, at int, installed inventory.Inventory, known []knowledge) (p ContractPlan, complete bool) {
	p, complete = ContractPlan{Contract: contract, Core: installed[at]}, true
	implementing := func(c candidate) bool { return c.core(p.Core.ProviderName).Implements(contract) }
	core, _ := known[at].newest(implementing)
	works := func(c candidate) bool {
		return c.contract == contract || isOlder(c.contract, contract) && core.core(p.Core.ProviderName).Supports(c.contract)
	}
	for i, entry := range installed {
		item := ContractItem{Installed: entry, Problem: known[i].problem, Skipped: known[i].skipped}
		wanted := works
		if i == at {
			wanted = implementing
		}
		next, changes := known[i].newest(wanted)
		if changes {
			item.Next = next.text
		}
		complete = complete && item.Problem == nil && (changes || wanted(next))
		p.Items = append(p.Items, item)
	}
	slices.SortStableFunc(p.Items, func(a, b ContractItem) int {
		x, y := a.Installed, b.Installed
		return cmp.Or(cmp.Compare(x.Type, y.Type), cmp.Compare(x.Name, y.Name), cmp.Compare(x.Namespace, y.Namespace))
	})
	return p, complete
}
