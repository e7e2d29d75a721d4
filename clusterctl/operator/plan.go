package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/packages/catalog"
	"sigs.k8s.io/cluster-api/packages/choose"
	"sigs.k8s.io/cluster-api/packages/inventory"
	"sigs.k8s.io/cluster-api/packages/live"
	"sigs.k8s.io/cluster-api/packages/replace"
)

const (
	// parallelDownloads is how many providers are downloaded concurrently.
	parallelDownloads = 4
	// shownDifferences is how many objects an error lists.
	shownDifferences = 5
)

// Request is the desired state of a management cluster.
type Request struct {
	Selection choose.Selection
	// OperatorVersion is empty for the latest, or the installed one.
	OperatorVersion string
	// Namespace is that of the operator; empty means the one that it has, or the default.
	Namespace string
	// Secret has the values of variables; nil: those of the configuration are stored in a Secret per provider.
	Secret *client.ObjectKey
	// Lenient turns errors about installed providers and objects of others that would be changed into warnings.
	Lenient bool
}

// Planner plans which providers are declared. It writes nothing.
type Planner struct {
	IO      *iostreams.Streams
	Catalog *catalog.Catalog
	Cluster *management.Cluster
}

// Plan is what to write, after all checks.
type Plan struct {
	// Operator are the operator's manifests; nil: it is installed.
	Operator *Manifests
	// Running is the operator, once it is installed.
	Running Installed
	// Declare are the providers to declare, in install order.
	Declare []*Declaration
	// Declared are the objects of requested providers that exist.
	Declared []inventory.Declaration
}

// state is what a management cluster has.
type state struct {
	operator  *Installed
	objects   inventory.Declarations
	inventory inventory.Inventory
}

func (p *Planner) inspect(ctx context.Context) (*state, error) {
	err := p.Cluster.CheckInstallable(ctx, management.MinKubernetes, func(err error) {
		p.IO.Infof("Retrying: %s", management.Text(err))
	})
	if err != nil {
		return nil, err
	}
	s := &state{}
	if s.operator, err = Find(ctx, p.Cluster.Client); err != nil {
		return nil, err
	}
	if s.objects, err = inventory.ReadDeclared(ctx, p.Cluster.Client); err != nil {
		return nil, err
	}
	s.inventory, err = inventory.Read(ctx, p.Cluster.Client)
	return s, err
}

// Plan downloads and checks everything.
func (p *Planner) Plan(ctx context.Context, r Request) (*Plan, error) {
	s, err := p.inspect(ctx)
	if err != nil {
		return nil, err
	}
	plan := &Plan{}
	if err := p.operator(ctx, s, r, plan); err != nil {
		return nil, err
	}
	_, declared := s.objects[clusterctlv1.ClusterAPIProviderName]
	refs, err := References(r.Selection, choose.FirstRun(s.inventory) && !declared)
	if err != nil {
		return nil, err
	}
	refs, err = s.missing(refs, plan)
	if err != nil {
		return nil, err
	}
	from, err := p.withSecret(ctx, r.Secret)
	if err != nil {
		return nil, err
	}
	plan.Declare = make([]*Declaration, len(refs))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(parallelDownloads)
	for i, ref := range refs {
		group.Go(func() error {
			var err error
			plan.Declare[i], err = declare(groupCtx, from, ref, r.Secret)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return plan, p.checkAdopted(ctx, s, plan.Declare, r.Lenient)
}

// operator plans the operator itself.
func (p *Planner) operator(ctx context.Context, s *state, r Request, plan *Plan) error {
	if have := s.operator; have != nil {
		switch {
		case r.Namespace != "" && r.Namespace != have.Namespace:
			return fmt.Errorf("--target-namespace: the operator is installed in namespace %s, not in %s: omit the flag", have.Namespace, r.Namespace)
		case r.OperatorVersion != "" && r.OperatorVersion != have.Version:
			return fmt.Errorf("--operator-version: the operator is installed in version %s: "+
				"to change it, run `clusterctl upgrade operator --operator-version %s`",
				have.Version, r.OperatorVersion)
		}
		plan.Running = *have
		return nil
	}
	var err error
	if plan.Operator, err = Read(ctx, p.Catalog, r.OperatorVersion, cmp.Or(r.Namespace, Namespace)); err != nil {
		return err
	}
	plan.Running = plan.Operator.Installed
	problems, err := plan.Operator.part().Conflicts(ctx, p.Cluster.Client, s.inventory, s.objects, "; --validate=false overwrites it")
	if err != nil || !r.Lenient {
		return errors.Join(append(problems, err)...)
	}
	for _, problem := range problems {
		p.IO.Warnf("%v", problem)
	}
	return nil
}

// missing returns the references of providers that are not declared yet: requested ones, and those that clusterctl has installed.
func (s *state) missing(refs []Reference, plan *Plan) ([]Reference, error) {
	var list []Reference
	for _, r := range refs {
		if o, ok := s.objects[r.Label()]; ok {
			if err := r.matches(o.String(), o.GetNamespace(), o.Version(), "clusterctl operator upgrade apply"); err != nil {
				return nil, err
			}
			plan.Declared = append(plan.Declared, o)
			continue
		}
		for _, entry := range s.inventory.Of(r.Type, r.Name) {
			if err := r.matches(r.Label(), entry.Namespace, entry.Version, "clusterctl upgrade apply"); err != nil {
				return nil, err
			}
			r.Namespace, r.Version = entry.Namespace, entry.Version
		}
		list = append(list, r)
	}
	for _, entry := range s.inventory {
		label := entry.ManifestLabel()
		_, declared := s.objects[label]
		if declared || slices.ContainsFunc(list, func(r Reference) bool { return r.Label() == label }) {
			continue
		}
		adopted := Reference{Type: entry.GetProviderType(), Namespace: entry.Namespace}
		adopted.Name, adopted.Version = entry.ProviderName, entry.Version
		list = append(list, adopted)
	}
	slices.SortStableFunc(list, func(a, b Reference) int { return cmp.Compare(a.Type.Order(), b.Type.Order()) })
	return list, nil
}

// matches returns an error if a provider is there with another namespace or version than requested.
func (r Reference) matches(what, namespace, version, command string) error {
	switch {
	case r.Namespace != "" && r.Namespace != namespace:
		return fmt.Errorf("%s: %s is in namespace %s, not in %s: omit the namespace", r.flag(), what, namespace, r.Namespace)
	case r.Version != "" && version != "" && r.Version != version:
		return fmt.Errorf("%s: %s has version %s: to change it, run `%s %s %s:%s`", r.flag(), what, version, command, r.flag(), r.Name, r.Version)
	}
	return nil
}

// withSecret returns the catalog with the values of a Secret, which take precedence over the configuration.
func (p *Planner) withSecret(ctx context.Context, key *client.ObjectKey) (*catalog.Catalog, error) {
	if key == nil {
		return p.Catalog, nil
	}
	secret := &corev1.Secret{}
	if err := p.Cluster.Client.Get(ctx, *key, secret); err != nil {
		return nil, fmt.Errorf("--config-secret: cannot read Secret %s: %w: "+
			"create it, or omit the flag, so that the values of your configuration are stored", key, err)
	}
	values := map[string]string{}
	for name, value := range secret.Data {
		values[name] = string(value)
	}
	return &catalog.Catalog{Config: p.Catalog.Config.With(values), Store: p.Catalog.Store}, nil
}

// checkAdopted checks that what clusterctl has installed stays as it is when it is declared.
func (p *Planner) checkAdopted(ctx context.Context, s *state, list []*Declaration, lenient bool) error {
	adopted := map[string]clusterctlv1.Provider{}
	for _, d := range list {
		for _, entry := range s.inventory.Of(d.Type, d.Name) {
			adopted[d.Label()] = entry
		}
	}
	if len(adopted) == 0 {
		return nil
	}
	found, err := (&live.Finder{Client: p.Cluster.Client, Resources: p.Cluster.Resources}).Find(ctx)
	if err != nil {
		return err
	}
	for _, d := range list {
		entry, ok := adopted[d.Label()]
		if !ok {
			continue
		}
		differences, err := (&replace.Replacer{Client: p.Cluster.Client}).Differences(ctx, replace.Target{
			Installed: entry, Components: d.components, Present: found[d.Label()],
		})
		if err != nil {
			return err
		}
		if err := changes(d, differences); err != nil && !lenient {
			return err
		} else if err != nil {
			p.IO.Warnf("%v", err)
		}
	}
	return nil
}

// changes returns an error that lists differences, and which inputs have to be as they were; nil if there are none.
func changes(d *Declaration, differences replace.Differences) error {
	if len(differences) == 0 {
		return nil
	}
	var shown, inputs []string
	images, other := false, false
	for _, found := range differences {
		text := found.Object
		if len(found.Images) > 0 {
			text += " (image " + strings.Join(found.Images, ", ") + ")"
		}
		shown = append(shown, text)
		images, other = images || len(found.Images) > 0, other || found.Other
	}
	if other {
		var names []string
		for _, v := range d.components.Variables {
			names = append(names, v.Name)
		}
		inputs = append(inputs, fmt.Sprintf("the variables (it has %s)", cmp.Or(strings.Join(names, ", "), "none")))
	}
	if images {
		inputs = append(inputs, "the image overrides")
	}
	text := strings.Join(shown[:min(len(shown), shownDifferences)], ", ")
	if more := len(shown) - shownDifferences; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("%s %s is installed, and the operator would change %s: "+
		"set %s that it was installed with, or --validate=false to let the operator change it",
		d.Label(), d.Version, text, strings.Join(inputs, " and "))
}

// Namespaces returns the namespaces of the declared providers, sorted.
func (p *Plan) Namespaces() []string {
	names := map[string]bool{}
	for _, d := range p.Declare {
		names[d.Namespace] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// Objects returns the objects of all requested providers.
func (p *Plan) Objects() []inventory.Declaration {
	list := slices.Clone(p.Declared)
	for _, d := range p.Declare {
		list = append(list, inventory.Declaration{Unstructured: *d.Object, Type: d.Type})
	}
	return list
}
