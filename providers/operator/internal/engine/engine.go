// Package engine installs, changes, upgrades and removes the components of a provider in a management cluster, with the library of
// clusterctl.
//
// Everything can be interrupted after any request, and be repeated. The caller decides which components a provider has.
package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages/apply"
	"sigs.k8s.io/cluster-api/packages/components"
	"sigs.k8s.io/cluster-api/packages/inventory"
	"sigs.k8s.io/cluster-api/packages/live"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/packages/remove"
	"sigs.k8s.io/cluster-api/packages/replace"
	"sigs.k8s.io/cluster-api/packages/replace/journal"
	"sigs.k8s.io/cluster-api/packages/retry"
)

// Engine changes the components of providers in a management cluster.
type Engine struct {
	// Client reads and writes without a cache.
	Client client.WithWatch
	// Resources lists the kinds of the API server.
	Resources discovery.ServerResourcesInterface
	// Hold runs a function while no other process, such as clusterctl, upgrades providers.
	Hold func(ctx context.Context, run func(context.Context) error) error
	// Timeout is how long each Deployment of a changed provider may take to become available.
	Timeout time.Duration

	// changing is held while Hold is called: the Lease does not distinguish the workers of a process.
	changing sync.Mutex
}

// Outcome is what Apply has done.
type Outcome struct {
	// Before is the version that was installed before; empty: none.
	Before string
	// Changed are the objects that differed, described; nil after the first installation.
	Changed []string
	// version is the version that is installed now.
	version string
}

// Wrote reports whether anything was written.
func (o Outcome) Wrote() bool { return len(o.Changed) > 0 || o.Before != o.version }

// Apply installs the components. Another version, or other objects, are replaced without interruption of webhooks; if the new ones do not
// start, the previous ones are rolled back, and the error is an upgrade.FailedError. Components that exist already are not written.
func (e *Engine) Apply(ctx context.Context, c *components.Components) (Outcome, error) {
	if err := c.ValidateCRDNames(); err != nil {
		return Outcome{}, err
	}
	all, err := inventory.Read(ctx, e.Client)
	if err != nil {
		return Outcome{}, err
	}
	entries := all.Of(c.Provider.Type, c.Provider.Name)
	if len(entries) == 0 {
		return Outcome{version: c.Version}, e.install(ctx, c)
	}
	entry := entries[0]
	if entry.Namespace != c.TargetNamespace {
		return Outcome{}, fmt.Errorf("%s is installed in namespace %s: create this object in that namespace, or delete the provider first",
			c.Provider.ManifestLabel(), entry.Namespace)
	}
	out := Outcome{Before: entry.Version, version: c.Version}
	pending, err := e.pending(ctx, &entry)
	if err != nil {
		return out, err
	}
	target := replace.Target{Installed: entry, Components: c}
	if pending == nil {
		if target.Present, err = e.present(ctx, c); err != nil {
			return out, err
		}
		differences, err := e.upgrader().Differences(ctx, target)
		if err != nil {
			return out, err
		}
		if out.Changed = differences.Objects(); len(out.Changed) == 0 && entry.Version == c.Version {
			return out, nil
		}
	}
	return out, e.hold(ctx, func(ctx context.Context) error { return e.change(ctx, target) })
}

// Same reports whether the objects of these kinds are as in the components. It is cheaper than Apply, which compares all.
func (e *Engine) Same(ctx context.Context, c *components.Components, kinds []schema.GroupVersionKind) (bool, error) {
	found, err := (&live.Finder{Client: e.Client, Kinds: kinds}).Find(ctx)
	if err != nil {
		return false, err
	}
	some := *c
	some.Objects = slices.DeleteFunc(slices.Clone(c.Objects), func(o unstructured.Unstructured) bool {
		return !slices.ContainsFunc(kinds,
			func(kind schema.GroupVersionKind) bool { return kind.GroupKind() == o.GroupVersionKind().GroupKind() })
	})
	differences, err := e.upgrader().Differences(ctx, replace.Target{
		Installed: *c.Inventory(), Components: &some, Present: found[c.Provider.ManifestLabel()],
	})
	return len(differences) == 0, err
}

// hold is Hold for one worker at a time. Comparisons do not wait for it.
func (e *Engine) hold(ctx context.Context, run func(context.Context) error) error {
	e.changing.Lock()
	defer e.changing.Unlock()
	return e.Hold(ctx, run)
}

// install writes the components for the first time, and then the inventory. It does not wait until they are available.
func (e *Engine) install(ctx context.Context, c *components.Components) error {
	w := e.writer()
	crd, err := manifest.Parse(inventory.CRD())
	if err != nil {
		return err
	}
	if err := inventory.EnsureCRD(ctx, w, crd); err != nil {
		return err
	}
	if err := w.Objects(ctx, c.Objects); err != nil {
		return err
	}
	return inventory.Record(ctx, w, c.Inventory())
}

// change replaces the installed components. What was read before the Lease was held is read again.
func (e *Engine) change(ctx context.Context, t replace.Target) error {
	u := e.upgrader()
	pending, err := e.pending(ctx, &t.Installed)
	if err != nil {
		return err
	}
	if pending != nil && !replace.Continues(pending, t.Components) {
		if _, err := u.RollBack(ctx, pending); err != nil {
			return fmt.Errorf("putting %s back, whose upgrade to %s was interrupted: %w", pending.Provider.Version, pending.Version, err)
		}
		pending = nil
	}
	if t.Present, err = e.present(ctx, t.Components); err != nil {
		return err
	}
	if err := u.Check(t); err != nil {
		return err
	}
	return u.Upgrade(ctx, t, pending)
}

// pending returns the journal of an interrupted change of a provider, or nil. One of a change that was completed is deleted.
func (e *Engine) pending(ctx context.Context, entry *clusterctlv1.Provider) (*journal.Entry, error) {
	journals, err := journal.List(ctx, e.Client)
	if err != nil {
		return nil, err
	}
	found := journals[client.ObjectKeyFromObject(entry)]
	if found == nil || found.Version != entry.Version || found.Provider.Version == found.Version {
		return found, nil
	}
	return nil, found.Delete(ctx, e.Client)
}

func (e *Engine) present(ctx context.Context, c *components.Components) ([]unstructured.Unstructured, error) {
	found, err := (&live.Finder{Client: e.Client, Resources: e.Resources}).Find(ctx)
	if err != nil {
		return nil, err
	}
	return found[c.Provider.ManifestLabel()], nil
}

// Remove deletes the components of a provider and its entry in the inventory. CustomResourceDefinitions and the Namespace are kept,
// with all objects of users.
func (e *Engine) Remove(ctx context.Context, t clusterctlv1.ProviderType, name string) error {
	return e.hold(ctx, func(ctx context.Context) error {
		all, err := inventory.Read(ctx, e.Client)
		if err != nil {
			return err
		}
		found, err := (&live.Finder{Client: e.Client, Resources: e.Resources}).Find(ctx)
		if err != nil {
			return err
		}
		var errs []error
		for _, entry := range all.Of(t, name) {
			err := remove.Delete(ctx, e.Client, remove.Select(&entry, found[entry.ManifestLabel()], remove.Options{}))
			if err == nil {
				err = client.IgnoreNotFound(e.Client.Delete(ctx, &entry))
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
}

// User returns an object that needs a provider, described, or "" if there is none; see removal.User.
func (e *Engine) User(ctx context.Context, t clusterctlv1.ProviderType, name string) (string, error) {
	found, err := (&live.Finder{Client: e.Client, Resources: e.Resources}).Find(ctx)
	if err != nil {
		return "", err
	}
	return remove.User(ctx, e.Client, found[clusterctlv1.ManifestLabel(name, t)])
}

func (e *Engine) writer() *apply.Writer {
	return &apply.Writer{Client: e.Client, Backoff: retry.Backoff()}
}

func (e *Engine) upgrader() *replace.Replacer {
	return &replace.Replacer{Client: e.Client, Writer: e.writer(), Timeout: e.Timeout}
}
