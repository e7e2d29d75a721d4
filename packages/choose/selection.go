// Package choose decides which providers are installed and which versions they get: it reads the repositories and the management
// cluster, and checks everything that can be checked without writing.
//
//	selection.go  the providers that a user selects
//	install.go    plans an installation
//	images.go     lists the images of an installation
//	releases.go   reads the versions in repositories
//	contracts.go  which versions fit together: a pure function
//	request.go    the versions that an upgrade is to reach
//	upgrade.go    plans an upgrade: what is upgraded, continued and rolled back
//
// Plans are executed by package execute.
package choose

import (
	"fmt"
	"slices"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
)

// none, instead of provider names, skips that type of provider, even the default of a first run.
const none = "-"

// Selection is the requested providers, each as name or name:version.
type Selection struct {
	Core             string
	Bootstrap        []string
	ControlPlane     []string
	Infrastructure   []string
	IPAM             []string
	RuntimeExtension []string
	Addon            []string
}

// Item is one provider to install.
type Item struct {
	Type clusterctlv1.ProviderType
	Ref  packages.Ref
}

// Label returns the provider's manifest label.
func (i Item) Label() string {
	return clusterctlv1.ManifestLabel(i.Ref.Name, i.Type)
}

// Items returns the unique providers to install, in install order. On a first run the core provider and the kubeadm
// bootstrap and control plane providers are added unless the selection overrides them.
func (s Selection) Items(firstRun bool) ([]Item, error) {
	var items []Item
	err := s.Each(firstRun, func(t clusterctlv1.ProviderType, text string) error {
		ref, err := packages.ParseRef(text)
		items = append(items, Item{Type: t, Ref: ref})
		return err
	})
	if err != nil {
		return nil, err
	}
	return distinct(items)
}

// Each calls visit for every provider of Items, in the form in which it was requested. Errors are returned with the flag.
func (s Selection) Each(firstRun bool, visit func(t clusterctlv1.ProviderType, text string) error) error {
	if s.Core == none {
		return fmt.Errorf("--core %s: the core provider is required", none)
	}
	core := []string{s.Core}
	if s.Core == "" {
		core = nil
	}
	defaults := func(given []string, name string) []string {
		if firstRun && len(given) == 0 {
			return []string{name}
		}
		return given
	}
	for _, group := range []struct {
		t     clusterctlv1.ProviderType
		names []string
	}{
		{clusterctlv1.CoreProviderType, defaults(core, clusterctlv1.ClusterAPIProviderName)},
		{clusterctlv1.BootstrapProviderType, defaults(s.Bootstrap, packages.Kubeadm)},
		{clusterctlv1.ControlPlaneProviderType, defaults(s.ControlPlane, packages.Kubeadm)},
		{clusterctlv1.InfrastructureProviderType, s.Infrastructure},
		{clusterctlv1.IPAMProviderType, s.IPAM},
		{clusterctlv1.RuntimeExtensionProviderType, s.RuntimeExtension},
		{clusterctlv1.AddonProviderType, s.Addon},
	} {
		for _, name := range group.names {
			if name == none {
				continue
			}
			if err := visit(group.t, name); err != nil {
				return fmt.Errorf("--%s: %w", packages.Word(group.t), err)
			}
		}
	}
	return nil
}

func distinct(items []Item) ([]Item, error) {
	var list []Item
	for _, item := range items {
		if slices.Contains(list, item) {
			continue
		}
		for _, other := range list {
			if other.Label() == item.Label() {
				return nil, fmt.Errorf("--%s specifies %s twice, as %s and %s: a management cluster can have one of each provider",
					packages.Word(item.Type), item.Ref.Name, other.Ref, item.Ref)
			}
		}
		list = append(list, item)
	}
	return list, nil
}

// Lists returns the lists of all types but the core provider's, to read and to change.
func (s *Selection) Lists() map[clusterctlv1.ProviderType]*[]string {
	return map[clusterctlv1.ProviderType]*[]string{
		clusterctlv1.BootstrapProviderType: &s.Bootstrap, clusterctlv1.ControlPlaneProviderType: &s.ControlPlane,
		clusterctlv1.InfrastructureProviderType: &s.Infrastructure, clusterctlv1.IPAMProviderType: &s.IPAM,
		clusterctlv1.RuntimeExtensionProviderType: &s.RuntimeExtension, clusterctlv1.AddonProviderType: &s.Addon,
	}
}

// Empty reports whether no provider is selected.
func (s Selection) Empty() bool {
	return s.Core == "" && len(slices.Concat(s.Bootstrap, s.ControlPlane, s.Infrastructure, s.IPAM, s.RuntimeExtension, s.Addon)) == 0
}
