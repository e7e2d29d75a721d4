package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/catalog"
	"sigs.k8s.io/cluster-api/packages/choose"
	"sigs.k8s.io/cluster-api/packages/inventory"
	"sigs.k8s.io/cluster-api/packages/live"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/packages/remove"
	"sigs.k8s.io/cluster-api/packages/repository"
)

// Change is a declared provider that gets another version.
type Change struct {
	Object  inventory.Declaration
	Version string
	// Release has a release that only the user's machine can read; nil: the operator downloads it.
	Release *corev1.ConfigMap
}

// PlanUpgrade returns what an upgrade changes, in install order, and the choice it is made of. Providers that have the wanted version
// are left out. It writes nothing.
func PlanUpgrade(
	ctx context.Context, m *management.Cluster, c *catalog.Catalog, r choose.UpgradeRequest,
) ([]Change, *choose.Choice, error) {
	objects, err := inventory.ReadDeclared(ctx, m.Client)
	if err != nil {
		return nil, nil, err
	}
	have, err := inventory.Read(ctx, m.Client)
	if err != nil {
		return nil, nil, err
	}
	choice, err := r.Choose(ctx, c, have, objects)
	if err != nil {
		return nil, nil, err
	}
	changes, err := changesOf(ctx, c, objects, choice.Upgrade)
	return changes, choice, err
}

func changesOf(ctx context.Context, c *catalog.Catalog, objects inventory.Declarations, wanted []choose.Wanted) ([]Change, error) {
	var list []Change
	for _, w := range wanted {
		label := w.Installed.ManifestLabel()
		o, ok := objects[label]
		if !ok {
			return nil,
				fmt.Errorf("%s is not declared: declare it with `clusterctl operator init`, or upgrade it with `clusterctl upgrade apply`", label)
		}
		if o.Version() == w.Version {
			continue
		}
		release, err := c.Release(ctx, o.Type, packages.Ref{Name: o.GetName(), Version: w.Version})
		if err != nil {
			return nil, err
		}
		if err := release.Validate(ctx); err != nil {
			return nil, err
		}
		change := Change{Object: o, Version: w.Version}
		if change.Release, err = Local(ctx, release, o.GetNamespace()); err != nil {
			return nil, err
		}
		list = append(list, change)
	}
	return list, nil
}

// Upgrade changes the versions of objects, and waits until the providers are ready: first the core provider, then all others.
func (a *Applier) Upgrade(ctx context.Context, changes []Change) error {
	var core, others []Change
	for _, c := range changes {
		if c.Object.Type == clusterctlv1.CoreProviderType {
			core = append(core, c)
		} else {
			others = append(others, c)
		}
	}
	for _, group := range [][]Change{core, others} {
		var objects []inventory.Declaration
		for _, c := range group {
			if err := a.change(ctx, c); err != nil {
				return fmt.Errorf("cannot upgrade %s to %s: %w", c.Object, c.Version, err)
			}
			a.IO.Infof("Changed %s from %s to %s", c.Object, c.Object.Version(), c.Version)
			objects = append(objects, c.Object)
		}
		if len(objects) == 0 {
			continue
		}
		if err := a.Wait(ctx, objects); err != nil {
			return err
		}
	}
	return nil
}

func (a *Applier) change(ctx context.Context, c Change) error {
	if c.Release != nil {
		if err := a.Preload(ctx, c.Release); err != nil {
			return err
		}
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"version": c.Version}})
	if err != nil {
		return err
	}
	return a.writer().Retry(ctx, func(ctx context.Context) error {
		return a.Client.Patch(ctx, identity(c.Object), client.RawPatch(types.MergePatchType, patch))
	})
}

// Replace replaces the installed operator, unless it would replace objects of others: it writes the new objects, waits until the new one
// is available, and deletes objects that only the old one had. CustomResourceDefinitions are kept.
func (a *Applier) Replace(ctx context.Context, m *management.Cluster, next *Manifests) error {
	if err := checkReplaced(ctx, m.Client, next); err != nil {
		return err
	}
	if err := a.Install(ctx, next); err != nil {
		return err
	}
	found, err := (&live.Finder{Client: m.Client, Resources: m.Resources, Selector: Labels()}).Find(ctx)
	if err != nil {
		return err
	}
	wanted := map[manifest.Key]bool{}
	for i := range next.Objects {
		wanted[manifest.KeyOf(&next.Objects[i])] = true
	}
	place := clusterctlv1.Provider{}
	place.Namespace = next.Namespace
	orphans := slices.DeleteFunc(remove.Select(&place, found[""], remove.Options{}), func(o unstructured.Unstructured) bool {
		return wanted[manifest.KeyOf(&o)]
	})
	return remove.Delete(ctx, a.Client, orphans)
}

// checkReplaced returns an error if an operator would replace objects of others.
func checkReplaced(ctx context.Context, c client.Reader, next *Manifests) error {
	have, err := inventory.Read(ctx, c)
	if err != nil {
		return err
	}
	declared, err := inventory.ReadDeclared(ctx, c)
	if err != nil {
		return err
	}
	problems, err := next.part().Conflicts(ctx, c, have, declared, "; otherwise rename or delete it")
	return errors.Join(append(problems, err)...)
}

// Next returns the manifests of an operator that is to replace the installed one: of the version, or the latest; nil if there is
// nothing to do, because it is installed, or newer than the latest, or the latest release has no operator. An older minor version is an
// error, as for providers: stored objects may have fields that it does not know.
func Next(ctx context.Context, c *catalog.Catalog, have *Installed, version string) (*Manifests, error) {
	next, err := Read(ctx, c, version, have.Namespace)
	if version == "" && errors.Is(err, repository.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if next.Version == have.Version {
		return nil, nil
	}
	before, err := packages.ParseVersion(have.Version)
	if err != nil {
		return next, nil // An unknown version is replaced.
	}
	after, err := packages.ParseVersion(next.Version)
	switch {
	case err != nil:
		return nil, err
	case version != "" && isOlderMinor(after, before):
		return nil, fmt.Errorf("the operator %s is of an older minor version than the installed %s: downgrades are not supported",
			next.Version, have.Version)
	case version == "" && before.GT(after):
		return nil, nil
	}
	return next, nil
}
