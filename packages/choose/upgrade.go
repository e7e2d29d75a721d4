package choose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/catalog"
	"sigs.k8s.io/cluster-api/packages/certmanager"
	"sigs.k8s.io/cluster-api/packages/components"
	"sigs.k8s.io/cluster-api/packages/inventory"
	"sigs.k8s.io/cluster-api/packages/live"
	"sigs.k8s.io/cluster-api/packages/replace"
	"sigs.k8s.io/cluster-api/packages/replace/journal"
	"sigs.k8s.io/cluster-api/packages/repository"
)

// UpgradePlanner plans upgrades. It writes nothing.
type UpgradePlanner struct {
	Catalog *catalog.Catalog
	Client  client.Client
	// Resources lists the kinds of the API server.
	Resources discovery.ServerResourcesInterface
}

// UpgradeState is what is installed, and which upgrades have been interrupted.
type UpgradeState struct {
	Installed inventory.Inventory
	// Interrupted are the journals of interrupted upgrades, sorted by provider.
	Interrupted []*journal.Entry
	// Ended are journals of upgrades that were completed, or whose provider has been deleted.
	Ended []*journal.Entry
}

// Upgrade is what to do, in this order.
type Upgrade struct {
	// RollBack are interrupted upgrades that are not continued.
	RollBack []*journal.Entry
	// CertManager is what to do for cert-manager; nil means nothing.
	CertManager *certmanager.Plan
	// Upgrades are in install order.
	Upgrades []UpgradeStep
	// Left are why providers that were requested with all others are not upgraded, Warnings and Notes what else users should know.
	Left            []error
	Warnings, Notes []string
}

// UpgradeStep is the upgrade of one provider.
type UpgradeStep struct {
	replace.Target
	// Pending is the journal if it continues an interrupted upgrade, otherwise nil.
	Pending *journal.Entry
}

// Inspect reads the state of the management cluster.
func (p *UpgradePlanner) Inspect(ctx context.Context) (*UpgradeState, error) {
	have, err := inventory.Read(ctx, p.Client)
	if err != nil {
		return nil, err
	}
	journals, err := journal.List(ctx, p.Client)
	if err != nil {
		return nil, err
	}
	s := &UpgradeState{Installed: have}
	for _, entry := range journals {
		i := slices.IndexFunc(have, func(o clusterctlv1.Provider) bool {
			return client.ObjectKeyFromObject(&o) == client.ObjectKeyFromObject(&entry.Provider)
		})
		// The inventory is written when nothing else is left to do.
		if i < 0 || have[i].Version == entry.Version && entry.Provider.Version != entry.Version {
			s.Ended = append(s.Ended, entry)
		} else {
			s.Interrupted = append(s.Interrupted, entry)
		}
	}
	for _, list := range [][]*journal.Entry{s.Ended, s.Interrupted} {
		slices.SortFunc(list, func(a, b *journal.Entry) int { return strings.Compare(a.Provider.Name, b.Provider.Name) })
	}
	return s, nil
}

// of returns the journal of an interrupted upgrade of a provider, or nil.
func (s *UpgradeState) of(p *clusterctlv1.Provider) *journal.Entry {
	for _, entry := range s.Interrupted {
		if client.ObjectKeyFromObject(&entry.Provider) == client.ObjectKeyFromObject(p) {
			return entry
		}
	}
	return nil
}

// Plan downloads and checks everything. With an error about a version that no longer exists, it returns what to do nevertheless:
// the interrupted upgrades, which can never be completed, are rolled back.
func (p *UpgradePlanner) Plan(ctx context.Context, s *UpgradeState, r UpgradeRequest) (*Upgrade, error) {
	work, err := p.plan(ctx, s, r)
	switch {
	case err == nil:
		return work, nil
	case len(s.Interrupted) == 0:
		return nil, err
	case errors.Is(err, repository.ErrNotFound):
		return &Upgrade{RollBack: s.Interrupted}, err
	}
	return nil, fmt.Errorf("%w; the interrupted upgrade of %s stays as it is until this works, "+
		"or until you roll it back with `clusterctl upgrade apply` and the previous version",
		err, Describe(s.Interrupted...))
}

// Describe lists interrupted upgrades, for messages.
func Describe(entries ...*journal.Entry) string {
	var list []string
	for _, e := range entries {
		list = append(list, fmt.Sprintf("%s from %s to %s", e.Provider.Name, e.Provider.Version, e.Version))
	}
	return strings.Join(list, ", ")
}

func (p *UpgradePlanner) plan(ctx context.Context, s *UpgradeState, r UpgradeRequest) (*Upgrade, error) {
	declared, err := inventory.ReadDeclared(ctx, p.Client)
	if err != nil {
		return nil, err
	}
	choice, err := r.Choose(ctx, p.Catalog, s.Installed, declared)
	if err != nil {
		return nil, err
	}
	wanted := slices.DeleteFunc(choice.Upgrade, func(w Wanted) bool {
		// Rolling it back is enough, and does not depend on a repository.
		entry := s.of(&w.Installed)
		return entry != nil && entry.Provider.Version == w.Version && entry.Version != w.Version
	})
	if err := checkOperated(declared, wanted); err != nil {
		return nil, err
	}
	list, err := p.download(ctx, wanted)
	if err != nil {
		return nil, err
	}
	found := live.Objects{}
	if len(list) > 0 {
		if found, err = (&live.Finder{Client: p.Client, Resources: p.Resources}).Find(ctx); err != nil {
			return nil, err
		}
	}
	work := &Upgrade{RollBack: slices.Clone(s.Interrupted), Left: choice.Left, Warnings: choice.Warnings}
	for i, w := range wanted {
		var notes, warnings []string
		list[i], notes, warnings, err = (&gateKeeper{p.Catalog}).keep(ctx, w, list[i], found[w.Installed.ManifestLabel()])
		if err != nil {
			return nil, err
		}
		work.Notes, work.Warnings = append(work.Notes, notes...), append(work.Warnings, warnings...)
		step := UpgradeStep{Target: replace.Target{Installed: w.Installed, Components: list[i], Present: found[w.Installed.ManifestLabel()]}}
		if err := check(step.Target); err != nil {
			return nil, err
		}
		if entry := s.of(&w.Installed); entry != nil && replace.Continues(entry, list[i]) {
			step.Pending = entry
			work.RollBack = slices.DeleteFunc(work.RollBack, func(e *journal.Entry) bool { return e == entry })
		}
		work.Upgrades = append(work.Upgrades, step)
	}
	warnings, err := p.replaced(ctx, s, list)
	if err != nil {
		return nil, err
	}
	work.Warnings = append(work.Warnings, warnings...)
	needed := slices.ContainsFunc(list, (*components.Components).NeedsCertManager)
	work.CertManager, err = certmanager.PrepareUpgrade(ctx, p.Client, p.Catalog.Store, p.Catalog.Config, needed)
	return work, err
}

// replaced rejects new versions that would replace objects of users or other programs. It returns warnings about those of other providers.
func (p *UpgradePlanner) replaced(ctx context.Context, s *UpgradeState, list []*components.Components) ([]string, error) {
	problems, warnings, err := newSurvey(p.Client, s.Installed, nil).replacements(ctx, list)
	return warnings, errors.Join(append(problems, err)...)
}

// checkOperated rejects upgrades of providers that belong to the operator.
func checkOperated(declared inventory.Declarations, wanted []Wanted) error {
	for _, w := range wanted {
		instead := "run `clusterctl operator upgrade apply`, or set spec.version of that object to " + w.Version
		if err := declared.Check(instead, w.Installed.ManifestLabel()); err != nil {
			return err
		}
	}
	return nil
}

func check(t replace.Target) error {
	return cmp.Or((&replace.Replacer{}).Check(t), t.Components.ValidateCRDNames())
}

// download returns the components of the wanted versions, for the namespaces of the installed ones.
func (p *UpgradePlanner) download(ctx context.Context, wanted []Wanted) ([]*components.Components, error) {
	list := make([]*components.Components, len(wanted))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelDownloads)
	for i, w := range wanted {
		group.Go(func() error {
			ref := packages.Ref{Name: w.Installed.ProviderName, Version: w.Version}
			release, err := p.Catalog.Release(ctx, w.Installed.GetProviderType(), ref)
			if err != nil {
				return err
			}
			if list[i], err = p.Catalog.Components(ctx, release, catalog.Options{TargetNamespace: w.Installed.Namespace}); err != nil {
				return err
			}
			return release.Validate(ctx)
		})
	}
	return list, group.Wait()
}

// Refresh reads the objects of a provider again, after its interrupted upgrade has been rolled back.
func (p *UpgradePlanner) Refresh(ctx context.Context, steps []UpgradeStep) error {
	found, err := (&live.Finder{Client: p.Client, Resources: p.Resources}).Find(ctx)
	if err != nil {
		return err
	}
	for i := range steps {
		steps[i].Present = found[steps[i].Installed.ManifestLabel()]
		if err := check(steps[i].Target); err != nil {
			return err
		}
	}
	return nil
}
