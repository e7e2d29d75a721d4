package choose

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/catalog"
	"sigs.k8s.io/cluster-api/packages/certmanager"
	"sigs.k8s.io/cluster-api/packages/components"
	"sigs.k8s.io/cluster-api/packages/inventory"
)

// parallelDownloads is how many providers are downloaded concurrently.
const parallelDownloads = 4

// InstallOptions are what to install and how.
type InstallOptions struct {
	Selection Selection
	// TargetNamespace is the namespace of all providers of this run; empty means each provider's default.
	TargetNamespace string
	// Lenient turns validation errors into warnings.
	Lenient bool
}

// InstallPlanner plans an installation. It writes nothing.
type InstallPlanner struct {
	Catalog *catalog.Catalog
	// Client reads the management cluster; nil for Images of an empty one.
	Client client.Client
	// Warn is called with the problems that InstallOptions.Lenient ignores, and with what else users should know.
	Warn func(problem error)
}

// Installation is one that has passed all checks.
type Installation struct {
	// FirstRun is set if the cluster had no core provider.
	FirstRun bool
	// Install are the providers to install, in install order.
	Install []*components.Components
	// Installed are the requested providers that are already installed; all installed ones if there is nothing to
	// install.
	Installed inventory.Inventory
	// CertManager is what to do for cert-manager first; nil means nothing.
	CertManager *certmanager.Plan
}

// Plan reads everything that the installation needs and checks it.
func (p *InstallPlanner) Plan(ctx context.Context, o InstallOptions) (*Installation, error) {
	installed, err := inventory.Read(ctx, p.Client)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	warnGates := p.lookUpGates(ctx, installed)
	plan, err := p.plan(ctx, o, installed)
	if err == nil {
		warnGates()
	}
	return plan, err
}

func (p *InstallPlanner) plan(ctx context.Context, o InstallOptions, installed inventory.Inventory) (*Installation, error) {
	plan := &Installation{FirstRun: FirstRun(installed)}
	items, err := o.Selection.Items(plan.FirstRun)
	if err != nil {
		return nil, err
	}
	var missing []Item
	for _, item := range items {
		if entry := alreadyInstalled(installed, item, o.TargetNamespace); entry != nil {
			plan.Installed = append(plan.Installed, *entry)
			continue
		}
		missing = append(missing, item)
	}
	if len(missing) == 0 {
		// The same command again, for example after an interruption: everything is installed.
		plan.Installed = installed
		return plan, nil
	}
	objects, err := inventory.ReadDeclared(ctx, p.Client)
	if err != nil {
		return nil, err
	}
	const instead = "wait until its condition Ready is True (see `clusterctl operator init`), or delete that object first"
	for _, item := range missing {
		if err := objects.Check(instead, item.Label()); err != nil {
			return nil, err
		}
	}
	core := p.coreReader(ctx, installed, objects)
	var problems []error
	if plan.Install, problems, err = p.working(ctx, missing, core).download(ctx, missing, o.TargetNamespace); err != nil {
		return nil, err
	}
	problems = append(problems, Validate(plan.Install, installed)...)
	disagreements, unknown := p.disagreements(ctx, plan.Install, core)
	if unknown != nil {
		p.Warn(unknown)
	}
	problems = append(problems, disagreements...)
	conflicts, err := p.conflicts(ctx, plan.Install, newSurvey(p.Client, installed, objects))
	if err != nil {
		return nil, err
	}
	if err := p.judge(append(problems, conflicts...), o.Lenient); err != nil {
		return nil, err
	}
	if another := origin(plan.Install, missing); another != nil {
		p.Warn(another)
	}
	needy := slices.ContainsFunc(plan.Install, (*components.Components).NeedsCertManager)
	if needy {
		plan.CertManager, err = certmanager.Prepare(ctx, p.Client, p.Catalog.Store, p.Catalog.Config)
	}
	return plan, err
}

// conflicts returns the objects of others that would be replaced, and warns about those that may be shared.
func (p *InstallPlanner) conflicts(ctx context.Context, added []*components.Components, s *survey) ([]error, error) {
	problems, warnings, err := s.newConflicts(ctx, added)
	for _, warning := range warnings {
		p.Warn(warning)
	}
	return problems, err
}

// FirstRun reports whether init has never completed: there is no core provider, which is recorded last.
func FirstRun(installed inventory.Inventory) bool {
	return len(installed.OfType(clusterctlv1.CoreProviderType)) == 0
}

// alreadyInstalled returns the entry that matches the item, or nil. Version and namespace are only compared if they are
// set.
func alreadyInstalled(installed inventory.Inventory, item Item, namespace string) *clusterctlv1.Provider {
	for _, entry := range installed.Of(item.Type, item.Ref.Name) {
		if cmp.Or(item.Ref.Version, entry.Version) == entry.Version && cmp.Or(namespace, entry.Namespace) == entry.Namespace {
			return &entry
		}
	}
	return nil
}

// download returns the items' components in order, and the problems of their metadata.
func (p *InstallPlanner) download(ctx context.Context, items []Item, namespace string) ([]*components.Components, []error, error) {
	list := make([]*components.Components, len(items))
	problems := make([]error, len(items))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelDownloads)
	for i, item := range items {
		group.Go(func() error {
			release, err := p.Catalog.Release(ctx, item.Type, item.Ref)
			if err != nil {
				return err
			}
			if list[i], err = p.Catalog.Components(ctx, release, catalog.Options{TargetNamespace: namespace}); err != nil {
				return err
			}
			problems[i] = release.Validate(ctx)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	return list, slices.DeleteFunc(problems, func(err error) bool { return err == nil }), nil
}

// Validate returns the conflicts between the components and what is installed.
func Validate(added []*components.Components, installed inventory.Inventory) []error {
	var problems []error
	cores := len(installed.OfType(clusterctlv1.CoreProviderType))
	for _, c := range added {
		for _, entry := range installed.Of(c.Provider.Type, c.Provider.Name) {
			problems = append(problems, duplicate(c, entry))
		}
		if c.Provider.Type == clusterctlv1.CoreProviderType && len(installed.Of(c.Provider.Type, c.Provider.Name)) == 0 {
			cores++
		}
		if err := c.ValidateCRDNames(); err != nil {
			problems = append(problems, err)
		}
	}
	if cores != 1 {
		problems = append(problems, fmt.Errorf("a management cluster must have one core provider, but this one would have %d", cores))
	}
	return problems
}

// duplicate explains why a provider cannot be installed in addition to the existing one.
func duplicate(c *components.Components, entry clusterctlv1.Provider) error {
	remedy := fmt.Sprintf("to change its version run `clusterctl upgrade apply --%s %s:%s`",
		packages.Word(c.Provider.Type), c.Provider.Name, c.Version)
	if c.Version == entry.Version {
		remedy = fmt.Sprintf("a management cluster can have one of each provider, so omit --target-namespace %s", c.TargetNamespace)
	}
	return fmt.Errorf("%s is already installed in version %s in namespace %s: %s",
		c.Provider.ManifestLabel(), entry.Version, entry.Namespace, remedy)
}

// judge turns the problems into one error, or into warnings.
func (p *InstallPlanner) judge(problems []error, lenient bool) error {
	if lenient {
		for _, problem := range problems {
			p.Warn(problem)
		}
		return nil
	}
	switch len(problems) {
	case 0:
		return nil
	case 1:
		return problems[0]
	default:
		var lines []string
		for _, problem := range problems {
			lines = append(lines, "  - "+problem.Error())
		}
		return fmt.Errorf("the providers cannot be installed for %d reasons:\n%s", len(problems), strings.Join(lines, "\n"))
	}
}
