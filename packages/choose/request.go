package choose

import (
	"context"
	"fmt"
	"slices"
	"strings"

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
	if r.Contract != "" && r.Contract != packages.Contract {
		return fmt.Errorf("this clusterctl can only upgrade to contract %s, not to %s: set --contract %s, or use a clusterctl for that contract",
			packages.Contract, r.Contract, packages.Contract)
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

// Wanted returns the providers to upgrade, in install order. It checks that all providers have versions of one contract.
func (r UpgradeRequest) Wanted(ctx context.Context, c *catalog.Catalog, installed inventory.Inventory) ([]Wanted, error) {
	if err := single(installed); err != nil {
		return nil, err
	}
	if r.Contract == "" {
		return r.selected(ctx, c, installed)
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
		return nil, fmt.Errorf("not all providers have a version of contract %s: see `clusterctl upgrade plan`", r.Contract)
	}
	var list []Wanted
	for _, entry := range installed {
		i := slices.IndexFunc(plans[at].Items, func(i ContractItem) bool {
			return i.Installed.Name == entry.Name && i.Installed.Namespace == entry.Namespace
		})
		if next := plans[at].Items[i].Next; next != "" {
			list = append(list, Wanted{entry, next})
		}
	}
	return list, nil
}

func (r UpgradeRequest) selected(ctx context.Context, c *catalog.Catalog, installed inventory.Inventory) ([]Wanted, error) {
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
	return list, checkContracts(ctx, c, others)
}

// checkContracts checks that the providers that are not upgraded have versions of this project's contract.
func checkContracts(ctx context.Context, c *catalog.Catalog, others inventory.Inventory) error {
	releases, err := ReadReleases(ctx, c, others)
	if err != nil {
		return err
	}
	for i := range others {
		p := &others[i]
		list, err := newer(p, Releases{Metadata: releases[p.ManifestLabel()].Metadata})
		if err != nil {
			return err
		}
		if have := list[0].contract; have != packages.Contract {
			return fmt.Errorf("%s %s implements contract %s, and the other providers are upgraded to %s: upgrade %s, too",
				p.Name, p.Version, have, packages.Contract, p.Name)
		}
	}
	return nil
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
