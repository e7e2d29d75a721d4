package upgrade

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/catalog"
	"sigs.k8s.io/cluster-api/packages/certmanager"
	"sigs.k8s.io/cluster-api/packages/components"
	"sigs.k8s.io/cluster-api/packages/inventory"
	"sigs.k8s.io/cluster-api/packages/live"
	"sigs.k8s.io/cluster-api/packages/operatorobjects"
	"sigs.k8s.io/cluster-api/packages/replace"
	"sigs.k8s.io/cluster-api/packages/replace/journal"
)

// parallelDownloads is how many providers are downloaded concurrently.
const parallelDownloads = 4

// Planner plans upgrades. It writes nothing.
type Planner struct {
	Catalog *catalog.Catalog
	Cluster *management.Cluster
}

// State is what is installed, and which upgrades have been interrupted.
type State struct {
	Installed inventory.Inventory
	// Interrupted are the journals of interrupted upgrades, sorted by provider.
	Interrupted []*journal.Entry
	// Ended are journals of upgrades that were completed, or whose provider has been deleted.
	Ended []*journal.Entry
}

// Work is what to do, in this order.
type Work struct {
	// PutBack are interrupted upgrades that are not continued.
	PutBack []*journal.Entry
	// CertManager is what to do for cert-manager; nil means nothing.
	CertManager *certmanager.Plan
	// Upgrades are in install order.
	Upgrades []Step
}

// Step is the upgrade of one provider.
type Step struct {
	replace.Target
	// Pending is the journal if it continues an interrupted upgrade, otherwise nil.
	Pending *journal.Entry
}

// Inspect reads the state of the management cluster.
func (p *Planner) Inspect(ctx context.Context) (*State, error) {
	have, err := inventory.Read(ctx, p.Cluster.Client)
	if err != nil {
		return nil, err
	}
	journals, err := journal.List(ctx, p.Cluster.Client)
	if err != nil {
		return nil, err
	}
	s := &State{Installed: have}
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
func (s *State) of(p *clusterctlv1.Provider) *journal.Entry {
	for _, entry := range s.Interrupted {
		if client.ObjectKeyFromObject(&entry.Provider) == client.ObjectKeyFromObject(p) {
			return entry
		}
	}
	return nil
}

// Plan downloads and checks everything.
func (p *Planner) Plan(ctx context.Context, s *State, r Request) (*Work, error) {
	wanted, err := r.Wanted(ctx, p.Catalog, s.Installed)
	if err != nil {
		return nil, err
	}
	wanted = slices.DeleteFunc(wanted, func(w Wanted) bool {
		// Putting it back is enough, and does not depend on a repository.
		entry := s.of(&w.Installed)
		return entry != nil && entry.Provider.Version == w.Version && entry.Version != w.Version
	})
	if err := p.checkOperated(ctx, wanted); err != nil {
		return nil, err
	}
	list, err := p.download(ctx, wanted)
	if err != nil {
		return nil, err
	}
	found := live.Objects{}
	if len(list) > 0 {
		if found, err = (&live.Finder{Client: p.Cluster.Client, Resources: p.Cluster.Resources}).Find(ctx); err != nil {
			return nil, err
		}
	}
	work := &Work{PutBack: slices.Clone(s.Interrupted)}
	for i, w := range wanted {
		step := Step{Target: replace.Target{Installed: w.Installed, Components: list[i], Present: found[w.Installed.ManifestLabel()]}}
		if err := check(step.Target); err != nil {
			return nil, err
		}
		if entry := s.of(&w.Installed); entry != nil && replace.Continues(entry, list[i]) {
			step.Pending = entry
			work.PutBack = slices.DeleteFunc(work.PutBack, func(e *journal.Entry) bool { return e == entry })
		}
		work.Upgrades = append(work.Upgrades, step)
	}
	if slices.ContainsFunc(list, (*components.Components).NeedsCertManager) {
		work.CertManager, err = certmanager.PrepareUpgrade(ctx, p.Cluster.Client, p.Catalog.Store, p.Catalog.Config)
	}
	return work, err
}

// checkOperated rejects upgrades of providers that belong to the operator.
func (p *Planner) checkOperated(ctx context.Context, wanted []Wanted) error {
	objects, err := operatorobjects.Read(ctx, p.Cluster.Client)
	if err != nil {
		return err
	}
	for _, w := range wanted {
		if err := objects.Check("run `clusterctl operator upgrade apply`, or set spec.version of that object to "+w.Version, w.Installed.ManifestLabel()); err != nil {
			return err
		}
	}
	return nil
}

func check(t replace.Target) error {
	return cmp.Or((&replace.Replacer{}).Check(t), t.Components.ValidateCRDNames())
}

// download returns the components of the wanted versions, for the namespaces of the installed ones.
func (p *Planner) download(ctx context.Context, wanted []Wanted) ([]*components.Components, error) {
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

// Refresh reads the objects of a provider again, after its interrupted upgrade has been put back.
func (p *Planner) Refresh(ctx context.Context, steps []Step) error {
	found, err := (&live.Finder{Client: p.Cluster.Client, Resources: p.Cluster.Resources}).Find(ctx)
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
