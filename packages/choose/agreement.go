package choose

import (
	"context"
	"fmt"
	"slices"
	"sync"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/catalog"
	"sigs.k8s.io/cluster-api/packages/components"
	"sigs.k8s.io/cluster-api/packages/inventory"
)

// implements is a version of a provider with the contract that it implements.
type implements struct{ label, name, version, contract string }

// asCore returns a version of the core provider.
func (i implements) asCore() packages.Core {
	return packages.Core{Name: i.name, Version: i.version, Contract: i.contract}
}

// disagreement returns why a provider does not work with the core provider, or nil.
func (i implements) disagreement(core implements) error {
	if core.asCore().Supports(i.contract) {
		return nil
	}
	remedy := fmt.Sprintf("choose another version with %s:{version}, or upgrade the core provider first", i.name)
	if !slices.Contains(packages.Contracts(), core.contract) {
		remedy = fmt.Sprintf("install a version for contract %s with a clusterctl that supports it", core.contract)
	}
	return fmt.Errorf("%s %s implements contract %s, but the core provider %s %s works with providers for %s: %s",
		i.label, i.version, i.contract, core.label, core.version, packages.JoinContracts(core.asCore().Contracts()), remedy)
}

// coreOf returns the core provider of an inventory, nil if there is none.
func coreOf(installed inventory.Inventory) *clusterctlv1.Provider {
	if cores := installed.OfType(clusterctlv1.CoreProviderType); len(cores) > 0 {
		return &cores[0]
	}
	return nil
}

// contractOfCore returns what the installed core provider implements: the operator has recorded it if the provider is declared, otherwise
// it is in the metadata of its release, which is not needed if it is of this project. An error is only a warning, because an installed
// version need not be published any longer.
func contractOfCore(
	ctx context.Context, c *catalog.Catalog, core *clusterctlv1.Provider, declared inventory.Declarations,
) (implements, error) {
	have := implements{label: core.ManifestLabel(), name: core.ProviderName, version: core.Version}
	if have.contract = declared[have.label].Contract(core.Version); have.contract != "" || have.asCore().IsOurs() {
		return have, nil
	}
	limited, cancel := context.WithTimeout(ctx, othersTimeout)
	defer cancel()
	release, err := c.Release(limited, clusterctlv1.CoreProviderType, packages.Ref{Name: core.ProviderName, Version: core.Version})
	if err == nil {
		have.contract, err = release.Contract(limited, core.Version)
	}
	if err != nil {
		err = fmt.Errorf("cannot find out which contract the core provider %s %s implements: %w", have.label, have.version, err)
	}
	return have, err
}

// checkAgainstCore checks that the versions that providers are upgraded to work with the core provider, which stays. It returns a warning
// if its contract is unknown.
func checkAgainstCore(
	ctx context.Context, c *catalog.Catalog, list []Wanted, core *clusterctlv1.Provider, declared inventory.Declarations,
) (warnings []string, err error) {
	have, unknown := contractOfCore(ctx, c, core, declared)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case unknown != nil:
		return []string{unknown.Error()}, nil
	case have.asCore().IsOurs():
		return nil, nil // Versions of other contracts are rejected when they are downloaded.
	}
	for _, w := range list {
		ref := packages.Ref{Name: w.Installed.ProviderName, Version: w.Version}
		release, err := c.Release(ctx, w.Installed.GetProviderType(), ref)
		if err != nil {
			return nil, err
		}
		next := implements{label: w.Installed.ManifestLabel(), name: ref.Name, version: ref.Version}
		if next.contract, err = release.Contract(ctx, ref.Version); err != nil {
			return nil, err
		}
		if err := next.disagreement(have); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// coreReader starts to read what the installed core provider implements, and returns a function that waits for it; nil without one.
func (p *InstallPlanner) coreReader(
	ctx context.Context, installed inventory.Inventory, declared inventory.Declarations,
) func() (implements, error) {
	core := coreOf(installed)
	if core == nil {
		return nil
	}
	read := sync.OnceValues(func() (implements, error) { return contractOfCore(ctx, p.Catalog, core, declared) })
	go func() { _, _ = read() }() // Who calls read waits for the same result.
	return read
}

// working returns a planner whose default versions work with the core provider: the one among the items, or the installed one,
// which read returns. If its contracts are unknown, they are the newest.
func (p *InstallPlanner) working(ctx context.Context, items []Item, read func() (implements, error)) *InstallPlanner {
	out, all := *p, *p.Catalog
	out.Catalog = &all
	at := slices.IndexFunc(items, func(i Item) bool { return i.Type == clusterctlv1.CoreProviderType })
	switch {
	case at >= 0:
		core := packages.Core{Name: items[at].Ref.Name, Version: items[at].Ref.Version}
		if core.IsOurs() {
			break
		}
		release, err := p.Catalog.Release(ctx, clusterctlv1.CoreProviderType, items[at].Ref)
		if err == nil {
			core.Version = release.Version
			core.Contract, _ = release.Contract(ctx, release.Version)
		}
		all.Contracts = core.Contracts()
	case read != nil:
		if have, err := read(); err == nil {
			all.Contracts = have.asCore().Contracts()
		}
	}
	return &out
}

// disagreements returns the providers that do not work with the core provider: the one among them, or the installed
// one, which read returns. unknown is why the contract of that is unknown, or nil.
func (p *InstallPlanner) disagreements(
	ctx context.Context, added []*components.Components, read func() (implements, error),
) (problems []error, unknown error) {
	list := make([]implements, 0, len(added))
	var core *implements
	for _, c := range added {
		next := implements{label: c.Provider.ManifestLabel(), name: c.Provider.Name, version: c.Version}
		release, err := p.Catalog.Release(ctx, c.Provider.Type, packages.Ref{Name: c.Provider.Name, Version: c.Version})
		if err == nil {
			next.contract, err = release.Contract(ctx, c.Version)
		}
		if err != nil {
			continue // Its metadata cannot be read, which is a problem already.
		}
		list = append(list, next)
		if c.Provider.Type == clusterctlv1.CoreProviderType {
			core = &next
		}
	}
	if core == nil && read != nil {
		have, err := read()
		if err != nil {
			return nil, err
		}
		core = &have
	}
	for _, next := range list {
		if core == nil || !slices.Contains(packages.Contracts(), next.contract) {
			continue // There is no core provider, or this clusterctl does not support the contract: these are problems already.
		}
		if err := next.disagreement(*core); err != nil {
			problems = append(problems, err)
		}
	}
	return problems, nil
}
