package choose

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/packages/apply"
	"sigs.k8s.io/cluster-api/packages/components"
	"sigs.k8s.io/cluster-api/packages/inventory"
	"sigs.k8s.io/cluster-api/packages/live"
	"sigs.k8s.io/cluster-api/packages/manifest"
)

const (
	parallelLists = 8
	// maxConflicts is how many conflicts of a provider an error lists.
	maxConflicts = 10
)

// conflict is an object that components would replace although it is not of their provider. Labels and what other programs have added are
// not counted as content.
type conflict struct {
	object *unstructured.Unstructured
	// owner is the label of the provider that has the object, "" if it is of none.
	owner string
	// objection is why it must not be replaced.
	objection string
}

// survey finds conflicts.
type survey struct {
	client client.Reader
	// installed are the labels of the providers that are installed or declared.
	installed []string

	mu    sync.Mutex
	found map[manifest.Key]*metav1.PartialObjectMetadata
	seen  map[schema.GroupVersionKind]bool
}

func newSurvey(c client.Reader, have inventory.Inventory, declared inventory.Declarations) *survey {
	s := &survey{client: c, found: map[manifest.Key]*metav1.PartialObjectMetadata{}, seen: map[schema.GroupVersionKind]bool{}}
	for i := range have {
		s.installed = append(s.installed, have[i].ManifestLabel())
	}
	for label := range declared {
		s.installed = append(s.installed, label)
	}
	return s
}

// conflicts returns those of a provider.
func (s *survey) conflicts(ctx context.Context, c *components.Components) ([]conflict, error) {
	return s.find(ctx, c.Objects, func(owner live.Owner, o *unstructured.Unstructured) string {
		return owner.Objection(o, c.Provider.ManifestLabel(), s.isInstalled)
	})
}

func (s *survey) isInstalled(label string) bool { return slices.Contains(s.installed, label) }

// find returns the conflicts of objects. Those with the same content are none: some releases share definitions.
func (s *survey) find(
	ctx context.Context, objects []unstructured.Unstructured, objection func(live.Owner, *unstructured.Unstructured) string,
) ([]conflict, error) {
	if err := s.read(ctx, objects); err != nil {
		return nil, err
	}
	var list []conflict
	for i := range objects {
		o := &objects[i]
		existing := s.found[manifest.KeyOf(o)]
		if existing == nil {
			continue
		}
		owner := live.OwnerOf(o.GetKind(), existing)
		if o.GetNamespace() != "" { // Objects of users in the namespace of a provider are its own.
			owner = live.Owner{Provider: owner.Provider}
		}
		problem := objection(owner, o)
		if problem == "" {
			continue
		}
		differs, err := s.differs(ctx, o)
		if err != nil {
			return nil, err
		}
		if differs {
			list = append(list, conflict{o, owner.Provider, problem})
		}
	}
	return list, nil
}

// differs reports whether the existing object would be changed.
func (s *survey) differs(ctx context.Context, o *unstructured.Unstructured) (bool, error) {
	existing := manifest.Identity(o)
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(o), existing); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return apply.Changes(existing, o)
}

// read lists the objects of the kinds of the components: one request per kind. Only objects without a namespace are of interest if they
// are not of a provider.
func (s *survey) read(ctx context.Context, objects []unstructured.Unstructured) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelLists)
	own := defined(objects)
	for i := range objects {
		kind := objects[i].GroupVersionKind()
		if kind.Kind == "Namespace" || s.seen[kind] {
			continue
		}
		s.seen[kind] = true
		var options []client.ListOption
		if objects[i].GetNamespace() != "" {
			options = append(options, client.HasLabels{clusterv1.ProviderNameLabel})
		}
		group.Go(func() error {
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
			err := s.client.List(ctx, list, options...)
			switch {
			case meta.IsNoMatchError(err), err != nil && slices.Contains(own, kind.GroupKind()) && ctx.Err() == nil:
				// The components define the kind: it does not exist, or the provider that converts its objects does not run.
				return nil
			case err != nil:
				return fmt.Errorf("cannot list the objects of kind %s, to find out whether the components replace some: %w", kind.Kind, err)
			}
			s.add(kind.GroupKind(), list.Items)
			return nil
		})
	}
	return group.Wait()
}

func (s *survey) add(kind schema.GroupKind, items []metav1.PartialObjectMetadata) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range items {
		s.found[manifest.Key{GroupKind: kind, Namespace: items[i].Namespace, Name: items[i].Name}] = &items[i]
	}
}

// defined returns the kinds that CustomResourceDefinitions among objects define.
func defined(objects []unstructured.Unstructured) []schema.GroupKind {
	var kinds []schema.GroupKind
	for i := range objects {
		if objects[i].GetKind() == manifest.KindCRD {
			kinds = append(kinds, live.Defines(&objects[i]))
		}
	}
	return kinds
}

// newConflicts returns the problems of providers that would replace objects of others, and warnings where providers share objects by
// design: those of the same name, whose releases come from the same project.
func (s *survey) newConflicts(ctx context.Context, added []*components.Components) (problems, warnings []error, err error) {
	for i, c := range added {
		list, err := s.conflicts(ctx, c)
		if err != nil {
			return nil, nil, err
		}
		var serious []conflict
		for _, found := range list {
			if live.Related(c.Provider.ManifestLabel(), found.owner) {
				warnings = append(warnings, found.warning(c))
			} else {
				serious = append(serious, found)
			}
		}
		problems = append(problems, texts(titleOf(c), serious, "; --validate=false overwrites it")...)
		for _, other := range added[:i] {
			if problem := collision(other, c); problem != nil {
				problems = append(problems, problem)
			}
		}
	}
	return problems, warnings, nil
}

// replacements returns the problems of an upgrade that would replace objects of users or other programs, and warnings about those
// of other providers, which may have been shared before.
func (s *survey) replacements(ctx context.Context, list []*components.Components) (problems []error, warnings []string, err error) {
	for _, c := range list {
		conflicts, err := s.conflicts(ctx, c)
		if err != nil {
			return nil, nil, err
		}
		var serious []conflict
		for _, found := range conflicts {
			if found.owner != "" {
				warnings = append(warnings, found.warning(c).Error())
			} else {
				serious = append(serious, found)
			}
		}
		problems = append(problems, texts(titleOf(c), serious, "; otherwise rename or delete it")...)
	}
	return problems, warnings, nil
}

// Part is what clusterctl installs beside providers, such as the operator.
type Part struct {
	// Name is the value of its label.
	Name, Version string
	Objects       []unstructured.Unstructured
}

// Conflicts returns the objects of others that those of a part would replace, as errors with the remedy at their end.
func (p Part) Conflicts(
	ctx context.Context, c client.Reader, have inventory.Inventory, declared inventory.Declarations, remedy string,
) ([]error, error) {
	s := newSurvey(c, have, declared)
	conflicts, err := s.find(ctx, p.Objects, func(owner live.Owner, o *unstructured.Unstructured) string {
		return owner.PartObjection(o, p.Name, s.isInstalled)
	})
	return texts(p.Name+" "+p.Version, conflicts, remedy), err
}

func titleOf(c *components.Components) string { return c.Provider.ManifestLabel() + " " + c.Version }

func (f conflict) warning(c *components.Components) error {
	return fmt.Errorf("%s replaces %s of provider %s", titleOf(c), manifest.Describe(f.object), f.owner)
}

// texts returns an error per conflict, with how to go on.
func texts(title string, conflicts []conflict, remedy string) []error {
	var list []error
	for i, f := range conflicts {
		if i == maxConflicts {
			return append(list, fmt.Errorf("%s: the same for %d more objects", title, len(conflicts)-i))
		}
		list = append(list, fmt.Errorf("%s: %s %s%s", title, manifest.Describe(f.object), f.objection, remedy))
	}
	return list
}

// collision returns an error if two providers that are installed together have different objects of the same name.
func collision(first, second *components.Components) error {
	if first.Provider.Name == second.Provider.Name {
		return nil
	}
	for i := range first.Objects {
		a := &first.Objects[i]
		for j := range second.Objects {
			b := &second.Objects[j]
			if a.GetKind() == "Namespace" || manifest.KeyOf(a) != manifest.KeyOf(b) {
				continue
			}
			if differs, err := apply.Changes(a, b); err == nil && !differs {
				continue
			}
			return fmt.Errorf("%s %s and %s %s both have %s: install them in different namespaces or versions, or only one of them",
				first.Provider.ManifestLabel(), first.Version, second.Provider.ManifestLabel(), second.Version, manifest.Describe(a))
		}
	}
	return nil
}
