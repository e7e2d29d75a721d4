package class

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/revision"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/packages/retry"
)

// fieldManager is the field manager of revisions.
const fieldManager = client.FieldOwner("clusterctl-class")

// applier creates revisions.
type applier struct {
	IO     *iostreams.Streams
	client client.Client
	retry  retry.Policy
}

// apply creates the revisions that do not exist: first templates, then the ClusterClasses that refer to them. Nothing is created unless the
// API server would accept all of it.
func apply(ctx context.Context, opts *PublishOptions, published *revision.Published) error {
	m, err := opts.Connect(opts.Kubeconfig)
	if err != nil {
		return err
	}
	if err := m.CheckContract(ctx); err != nil {
		return err
	}
	a := &applier{IO: opts.IO, client: m.Client, retry: retry.Policy{Backoff: opts.Backoff}}
	revisions := opts.revisions(published)
	namespace := opts.Namespace
	for _, u := range revisions {
		namespace = cmp.Or(namespace, u.GetNamespace())
	}
	for _, u := range revisions {
		if u.GetNamespace() == "" {
			// A class and its templates are in one namespace, even if only some of them say so.
			u.SetNamespace(cmp.Or(namespace, m.Namespace))
		}
	}
	missing, err := a.check(ctx, revisions)
	if err != nil {
		return err
	}
	for _, u := range revisions {
		if !slices.Contains(missing, u) {
			a.IO.Infof("%s unchanged", manifest.Describe(u))
			continue
		}
		if err := a.create(ctx, u); err != nil {
			return err
		}
	}
	return a.verify(ctx, published.Templates)
}

// check returns which revisions do not exist, and an error if the API server would reject one of them, or one exists with other content.
func (a *applier) check(ctx context.Context, revisions []*unstructured.Unstructured) (missing []*unstructured.Unstructured, err error) {
	for _, u := range revisions {
		switch _, err := a.try(ctx, u, client.DryRunAll); {
		case err == nil:
			missing = append(missing, u)
		case apierrors.IsAlreadyExists(err):
			if err := a.compare(ctx, u); err != nil {
				return nil, err
			}
		default:
			return nil, explain(u, err)
		}
	}
	return missing, nil
}

// create creates a revision. Another process may have done it in the meantime.
func (a *applier) create(ctx context.Context, u *unstructured.Unstructured) error {
	switch _, err := a.try(ctx, u); {
	case err == nil:
		a.IO.Infof("%s created", manifest.Describe(u))
		return nil
	case apierrors.IsAlreadyExists(err):
		a.IO.Infof("%s exists", manifest.Describe(u))
		return a.compare(ctx, u)
	default:
		return explain(u, err)
	}
}

// try creates a copy of an object, and returns it.
func (a *applier) try(
	ctx context.Context, u *unstructured.Unstructured, options ...client.CreateOption,
) (*unstructured.Unstructured, error) {
	var created *unstructured.Unstructured
	err := a.retry.Do(ctx, func(ctx context.Context) error {
		created = u.DeepCopy()
		return a.client.Create(ctx, created, append(options, fieldManager)...)
	})
	return created, err
}

// compare returns an error if an object exists with other content. A dry run under another name tells what the API server would make of the
// content.
func (a *applier) compare(ctx context.Context, u *unstructured.Unstructured) error {
	name := manifest.Describe(u)
	live := manifest.Identity(u)
	err := a.retry.Do(ctx, func(ctx context.Context) error { return a.client.Get(ctx, client.ObjectKeyFromObject(u), live) })
	if err != nil {
		return fmt.Errorf("cannot compare %s with what exists: %w", name, err)
	}
	if live.GetDeletionTimestamp() != nil {
		return fmt.Errorf("%s is being deleted: run the command again when it is gone", name)
	}
	other := u.DeepCopy()
	other.SetName("")
	other.SetGenerateName("dry-run-")
	stored, err := a.try(ctx, other, client.DryRunAll)
	if err != nil {
		return explain(u, err)
	}
	if field := revision.Difference(u, stored, live); field != "" {
		return fmt.Errorf("%s exists, and its %s differs: it was changed after it had been published; "+
			"restore it, or delete it if no Cluster uses it, and run the command again", name, field)
	}
	return nil
}

// verify checks that the templates still exist: those that existed before may have been deleted with another revision, as long as this one
// did not own them.
func (a *applier) verify(ctx context.Context, templates []*unstructured.Unstructured) error {
	for _, u := range templates {
		live := manifest.Identity(u)
		err := a.retry.Do(ctx, func(ctx context.Context) error { return a.client.Get(ctx, client.ObjectKeyFromObject(u), live) })
		if err == nil && live.GetDeletionTimestamp() == nil {
			continue
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("cannot read %s: %w", manifest.Describe(u), err)
		}
		return fmt.Errorf("%s was deleted in the meantime: run the command again", manifest.Describe(u))
	}
	return nil
}

// explain says why an object was rejected, and what to do.
func explain(u *unstructured.Unstructured, err error) error {
	name := manifest.Describe(u)
	switch {
	case meta.IsNoMatchError(err):
		return fmt.Errorf("the management cluster does not have the kind of %s (%s): install its provider with `clusterctl init`: %w",
			name, u.GetAPIVersion(), err)
	case apierrors.IsNotFound(err) && strings.Contains(err.Error(), "namespaces"):
		return fmt.Errorf("namespace %[1]s of %[2]s does not exist: create it with `kubectl create namespace %[1]s`: %[3]w",
			u.GetNamespace(), name, err)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsForbidden(err):
		return fmt.Errorf("the management cluster rejected %s: %w", name, err)
	default:
		return fmt.Errorf("cannot create %s: %w", name, err)
	}
}
