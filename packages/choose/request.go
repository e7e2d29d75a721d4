package choose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/catalog"
	"sigs.k8s.io/cluster-api/packages/inventory"
)

// UpgradeRequest is what to upgrade: to the latest versions of a contract, or a selection.
type UpgradeRequest struct {
	// Contract is empty if there is a selection.
	Contract  string
	Selection Selection
}

// Wanted is a provider with its version after the upgrade.
type Wanted struct {
	Installed clusterctlv1.Provider
	Version   string
}

// Check returns why a request is invalid, whatever is installed, or nil.
func (r UpgradeRequest) Check() error {
	if r.Contract != "" && !slices.Contains(packages.Contracts(), r.Contract) {
		return fmt.Errorf("this clusterctl can only upgrade to contracts %s, not to %s: set --contract to one of them, "+
			"or use a clusterctl for that contract", packages.JoinContracts(packages.Contracts()), r.Contract)
	}
	_, _, err := r.items()
	return err
}

// items returns the selected providers, and the namespaces that are set for some, by label.
func (r UpgradeRequest) items() ([]Item, map[string]string, error) {
	s, namespaces := r.Selection, map[string]string{}
	s.Core = withoutNamespace(s.Core, clusterctlv1.CoreProviderType, namespaces)
	for t, list := range s.Lists() {
		*list = slices.Clone(*list)
		for i := range *list {
			(*list)[i] = withoutNamespace((*list)[i], t, namespaces)
		}
	}
	items, err := s.Items(false)
	if err != nil {
		return nil, nil, err
	}
	for _, item := range items {
		if item.Ref.Version == "" {
			return nil, nil, fmt.Errorf("--%s: %s has no version: use %s:{version}, for example %s:v1.7.0",
				packages.Word(item.Type), item.Ref.Name, item.Ref.Name, item.Ref.Name)
		}
	}
	return items, namespaces, nil
}

// withoutNamespace removes the namespace of the deprecated form namespace/name:version, and remembers it.
func withoutNamespace(text string, t clusterctlv1.ProviderType, namespaces map[string]string) string {
	namespace, rest, ok := strings.Cut(text, "/")
	if !ok {
		return text
	}
	name, _, _ := strings.Cut(rest, ":")
	namespaces[clusterctlv1.ManifestLabel(name, t)] = namespace
	return rest
}

// Choice is which providers to upgrade.
type Choice struct {
	// Upgrade are in install order.
	Upgrade []Wanted
	// Left are why others, which were requested with all, are not upgraded.
	Left []error
	// Warnings are for users.
	Warnings []string
}

// Choose returns the providers to upgrade. Those that are selected by name do not depend on the repositories of others.
func (r UpgradeRequest) Choose(
	ctx context.Context, c *catalog.Catalog, installed inventory.Inventory, declared inventory.Declarations,
) (*Choice, error) {
	if err := single(installed); err != nil {
		return nil, err
	}
	if r.Contract == "" {
		return r.selected(ctx, c, installed, declared)
	}
	releases, err := ReadReleases(ctx, c, installed)
	if err != nil {
		return nil, err
	}
	plans, err := ContractPlans(installed, releases)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(plans, func(p ContractPlan) bool { return p.Contract == r.Contract })
	if at < 0 {
		var problems []error
		for _, p := range plans[:min(1, len(plans))] {
			problems = p.Problems()
		}
		err := fmt.Errorf("not all providers have a version of contract %s: see `clusterctl upgrade plan`", r.Contract)
		return nil, errors.Join(append(problems, err)...)
	}
	plan := plans[at]
	choice := &Choice{Left: plan.Problems(), Warnings: plan.Skipped()}
	for _, entry := range installed {
		i := slices.IndexFunc(plan.Items, func(i ContractItem) bool {
			return i.Installed.Name == entry.Name && i.Installed.Namespace == entry.Namespace
		})
		if next := plan.Items[i].Next; next != "" {
			choice.Upgrade = append(choice.Upgrade, Wanted{entry, next})
		}
	}
	return choice, nil
}

func (r UpgradeRequest) selected(
	ctx context.Context, c *catalog.Catalog, installed inventory.Inventory, declared inventory.Declarations,
) (*Choice, error) {
	items, namespaces, err := r.items()
	if err != nil {
		return nil, err
	}
	var list []Wanted
	var others inventory.Inventory
	for _, entry := range installed {
		label := entry.ManifestLabel()
		i := slices.IndexFunc(items, func(i Item) bool { return i.Label() == label })
		if i < 0 {
			others = append(others, entry)
			continue
		}
		if ns := namespaces[label]; ns != "" && ns != entry.Namespace {
			return nil, fmt.Errorf("--%s: %s is installed in namespace %s, not %s: omit the namespace",
				packages.Word(items[i].Type), label, entry.Namespace, ns)
		}
		list = append(list, Wanted{entry, items[i].Ref.Version})
	}
	for _, item := range items {
		if len(installed.Of(item.Type, item.Ref.Name)) == 0 {
			return nil, fmt.Errorf("--%s: %s is not installed: see `kubectl get providers -A`, or install it with `clusterctl init`",
				packages.Word(item.Type), item.Label())
		}
	}
	choice := &Choice{Upgrade: list}
	at := slices.IndexFunc(list, func(w Wanted) bool { return w.Installed.GetProviderType() == clusterctlv1.CoreProviderType })
	if at >= 0 {
		choice.Warnings, err = checkContracts(ctx, c, list[at], others)
	} else {
		choice.Warnings, err = checkAgainstCore(ctx, c, list, coreOf(installed), declared)
	}
	return choice, err
}

// othersTimeout bounds how long repositories of providers that are not upgraded are asked.
const othersTimeout = 15 * time.Second

// checkContracts checks that the providers that are not upgraded with the core provider have versions that work with its next one. It
// returns warnings for those of which that is unknown.
func checkContracts(ctx context.Context, c *catalog.Catalog, core Wanted, others inventory.Inventory) ([]string, error) {
	if len(others) == 0 {
		return nil, nil
	}
	next := implements{label: core.Installed.ManifestLabel(), name: core.Installed.ProviderName, version: core.Version}
	release, err := c.Release(ctx, clusterctlv1.CoreProviderType, packages.Ref{Name: next.name, Version: next.version})
	if err != nil {
		return nil, err
	}
	if next.contract, err = release.Contract(ctx, next.version); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, othersTimeout)
	defer cancel()
	var warnings []string
	releases, err := ReadReleases(limited, c, others)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for i := range others {
		p := &others[i]
		r := Releases{Metadata: releases[p.ManifestLabel()].Metadata, Err: cmp.Or(err, releases[p.ManifestLabel()].Err)}
		r.MetadataVersion, r.Override = releases[p.ManifestLabel()].MetadataVersion, releases[p.ManifestLabel()].Override
		list, _, err := newer(p, r)
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("cannot find out whether %s %s works with the core provider %s: %v",
				p.Name, p.Version, next.version, err))
			continue
		}
		if have := list[0].contract; !next.asCore().Supports(have) {
			return nil, fmt.Errorf("%s %s implements contract %s, and the core provider %s works with providers for %s: upgrade %s, too",
				p.Name, p.Version, have, next.version, packages.JoinContracts(next.asCore().Contracts()), p.Name)
		}
	}
	return warnings, nil
}

// single checks that there is one core provider, and one of each other provider.
func single(installed inventory.Inventory) error {
	if _, err := coreProvider(installed); err != nil {
		return err
	}
	for _, p := range installed {
		if list := installed.Of(p.GetProviderType(), p.ProviderName); len(list) > 1 {
			return fmt.Errorf("%s is installed in %d namespaces, among them %s and %s, and a management cluster can have one: "+
				"delete one of them with kubectl, with its Provider object",
				p.ManifestLabel(), len(list), list[0].Namespace, list[1].Namespace)
		}
	}
	return nil
}
