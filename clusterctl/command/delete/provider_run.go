package delete

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/operator"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/choose"
	"sigs.k8s.io/cluster-api/packages/inventory"
	"sigs.k8s.io/cluster-api/packages/live"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/packages/remove"
	"sigs.k8s.io/cluster-api/packages/retry"
)

// operatorTimeout is how long the operator may take to delete a declared provider.
const operatorTimeout = 5 * time.Minute

// doomed is a provider and what is deleted with it.
type doomed struct {
	entry   clusterctlv1.Provider
	objects []unstructured.Unstructured
	// leftover is set if the provider is not installed, but objects of it exist.
	leftover bool
	// kept is set if it has objects that are not deleted.
	kept bool
}

// exists reports whether there is something to delete.
func (d doomed) exists() bool { return !d.leftover || len(d.objects) > 0 }

func runProviders(ctx context.Context, opts *ProviderOptions) error {
	m, err := opts.Connect(opts.Kubeconfig)
	if err != nil {
		return err
	}
	declared := &operator.Doomed{}
	if opts.All {
		declared, err = operator.PlanDeletion(ctx, m, operator.Deletion{
			All: true, Options: remove.Options{Namespace: opts.IncludeNamespace, CRDs: opts.IncludeCRDs},
		})
		if err != nil {
			return err
		}
	}
	providers, err := plan(ctx, opts, m)
	if err != nil && (declared.IsEmpty() || !errors.Is(err, management.ErrNotInitialized)) {
		return err // Otherwise, only the operator is left.
	}
	if !slices.ContainsFunc(providers, doomed.exists) && declared.IsEmpty() {
		opts.IO.Infof("No provider is installed")
		return tellLeft(ctx, opts, m, providers)
	}
	if err := tellAbandoned(ctx, opts, m); err != nil {
		return err
	}
	a := &operator.Applier{IO: opts.IO, Client: m.Client, Backoff: retry.Backoff(), Timeout: operatorTimeout}
	if err := a.Delete(ctx, declared); err != nil {
		return err
	}
	if err := deleteProviders(ctx, opts, m, providers); err != nil {
		return err
	}
	if opts.All && opts.IncludeCRDs {
		crd := unstructured.Unstructured{}
		crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind(manifest.KindCRD))
		crd.SetName(inventory.CRDName)
		if err := remove.Delete(ctx, m.Client, []unstructured.Unstructured{crd}); err != nil {
			return err
		}
	}
	return tellLeft(ctx, opts, m, providers)
}

// tellAbandoned warns if workload clusters exist while all providers are deleted: their machines go on to run, and to cost, and nothing
// reconciles them. Scripts delete providers to install others, so that it is not refused.
func tellAbandoned(ctx context.Context, opts *ProviderOptions, m *management.Cluster) error {
	if !opts.All {
		return nil
	}
	clusters := &metav1.PartialObjectMetadataList{}
	clusters.SetGroupVersionKind(tree.ClusterKind.GroupVersion().WithKind(tree.ClusterKind.Kind + "List"))
	err := m.Client.List(ctx, clusters, client.Limit(maxNamed+1))
	if meta.IsNoMatchError(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil || len(clusters.Items) == 0 {
		return err
	}
	var names []string
	for i := range clusters.Items {
		names = append(names, clusters.Items[i].Namespace+"/"+clusters.Items[i].Name)
	}
	which := strings.Join(names[:min(maxNamed, len(names))], ", ")
	if len(names) > maxNamed {
		which += " and others"
	}
	opts.IO.Warnf("workload clusters exist: %s. Their machines go on to run, and no controller upgrades, repairs or deletes them until the "+
		"providers are installed again", which)
	return nil
}

// maxNamed is how many Clusters a warning names.
const maxNamed = 3

func deleteProviders(ctx context.Context, opts *ProviderOptions, m *management.Cluster, providers []doomed) error {
	providers = slices.DeleteFunc(slices.Clone(providers), func(p doomed) bool { return !p.exists() })
	var names []string
	for i := range providers {
		names = append(names, providers[i].entry.Name)
	}
	board := opts.IO.Board(slices.Compact(names)...)
	for _, p := range providers {
		version := cmp.Or(p.entry.Version, "leftovers")
		board.Set(p.entry.Name, fmt.Sprintf("%s: deleting %d objects", version, len(p.objects)))
		err := remove.Delete(ctx, m.Client, p.objects)
		if err == nil && !p.leftover {
			// The inventory last: after an interruption, the same command finds the provider again.
			err = client.IgnoreNotFound(m.Client.Delete(ctx, &p.entry))
		}
		if err != nil {
			board.Set(p.entry.Name, "failed")
			return fmt.Errorf("%s %s is partially deleted; run the same command again to continue: %w", p.entry.Name, version, err)
		}
		board.Set(p.entry.Name, version+": deleted")
	}
	return nil
}

// tellLeft tells which namespaces are still being deleted, and how to delete what was kept.
func tellLeft(ctx context.Context, opts *ProviderOptions, m *management.Cluster, providers []doomed) error {
	var terminating []string
	kept := false
	for _, p := range providers {
		kept = kept || p.kept
		for i := range p.objects {
			if p.objects[i].GetKind() != "Namespace" {
				continue
			}
			err := m.Client.Get(ctx, client.ObjectKeyFromObject(&p.objects[i]), &corev1.Namespace{})
			if client.IgnoreNotFound(err) != nil {
				return err
			}
			if name := p.objects[i].GetName(); err == nil && !slices.Contains(terminating, name) {
				terminating = append(terminating, name)
			}
		}
	}
	if len(terminating) > 0 {
		opts.IO.Infof("Namespaces %s are still being deleted, with everything in them: %s", strings.Join(terminating, ", "),
			opts.IO.Commands("see `kubectl get namespaces`, and if that takes long, the conditions of the namespace"))
	}
	if opts.All && kept {
		opts.IO.Infof("Namespaces and CustomResourceDefinitions that are not included were kept: %s",
			opts.IO.Commands("to delete them, too, run `clusterctl delete --all --include-crd --include-namespace`"))
	}
	return nil
}

// plan checks everything, and returns the providers to delete: the core provider last, whose webhooks others may call.
func plan(ctx context.Context, opts *ProviderOptions, m *management.Cluster) ([]doomed, error) {
	have, err := inventory.Read(ctx, m.Client)
	if err != nil {
		return nil, err
	}
	if len(have) == 0 && !opts.All {
		return nil, m.CheckContract(ctx)
	}
	entries, err := selected(have, opts)
	if err != nil {
		return nil, err
	}
	if err := checkNamespaces(have, entries, opts); err != nil {
		return nil, err
	}
	objects, err := inventory.ReadDeclared(ctx, m.Client)
	if err != nil {
		return nil, err
	}
	for i := range entries {
		if err := objects.Check("delete that object, or run `clusterctl operator delete`", entries[i].ManifestLabel()); err != nil && !opts.All {
			return nil, err
		}
	}
	entries = slices.DeleteFunc(slices.Clone(entries), func(e clusterctlv1.Provider) bool {
		_, declared := objects[e.ManifestLabel()]
		return declared // With --all, it is deleted before.
	})
	found, err := (&live.Finder{Client: m.Client, Resources: m.Resources}).Find(ctx)
	if err != nil {
		return nil, err
	}
	var leftovers inventory.Inventory
	if opts.All {
		leftovers = remove.Leftovers(found, func(label string) bool {
			_, declared := objects[label]
			return declared || slices.ContainsFunc(have, func(p clusterctlv1.Provider) bool { return p.ManifestLabel() == label })
		})
	}
	if len(leftovers) == 0 && len(have) == 0 {
		// After --all there is nothing to delete; a cluster that never was a management cluster is a mistake.
		return nil, m.CheckContract(ctx)
	}
	return doom(ctx, opts, m, slices.Concat(leftovers, entries), found, len(leftovers))
}

// doom returns what is deleted of providers, the first of which are leftovers.
func doom(
	ctx context.Context, opts *ProviderOptions, m *management.Cluster, entries inventory.Inventory, found live.Objects, leftovers int,
) ([]doomed, error) {
	var providers []doomed
	var all []unstructured.Unstructured
	for i, entry := range slices.Backward(entries) {
		existing := found[entry.ManifestLabel()]
		objects := remove.Select(&entry, existing, remove.Options{Namespace: opts.IncludeNamespace, CRDs: opts.IncludeCRDs})
		providers = append(providers, doomed{entry: entry, objects: objects, leftover: i < leftovers, kept: opts.keeps(existing)})
		all = append(all, objects...)
	}
	if err := remove.Used(ctx, m.Client, entries, all); err != nil {
		return nil, fmt.Errorf("--include-crd: %w", err)
	}
	return providers, nil
}

// keeps reports whether there are objects that are not included.
func (o *ProviderOptions) keeps(objects []unstructured.Unstructured) bool {
	return slices.ContainsFunc(objects, func(object unstructured.Unstructured) bool {
		switch object.GetKind() {
		case "Namespace":
			return !o.IncludeNamespace
		case manifest.KindCRD:
			return !o.IncludeCRDs
		}
		return false
	})
}

// selected returns the inventory's entries of the selected providers, in install order.
func selected(have inventory.Inventory, opts *ProviderOptions) (inventory.Inventory, error) {
	if opts.All {
		return have, nil
	}
	items, err := opts.Selection.Items(false)
	if err != nil {
		return nil, err
	}
	var entries inventory.Inventory
	for _, item := range items {
		entry, err := find(have, item)
		if err != nil {
			return nil, err
		}
		entries = append(entries, *entry)
	}
	return entries, nil
}

// find returns the entry of an item.
func find(have inventory.Inventory, item choose.Item) (*clusterctlv1.Provider, error) {
	list := have.Of(item.Type, item.Ref.Name)
	switch {
	case len(list) == 0:
		return nil, fmt.Errorf("--%s: %s is not installed: see `kubectl get providers -A`", packages.Word(item.Type), item.Label())
	case len(list) > 1:
		return nil, fmt.Errorf("--%s: %s is installed in %d namespaces, among them %s and %s, and a management cluster can have one: "+
			"delete one of them with kubectl, with its Provider object",
			packages.Word(item.Type), item.Label(), len(list), list[0].Namespace, list[1].Namespace)
	case item.Ref.Version != "" && item.Ref.Version != list[0].Version:
		return nil, fmt.Errorf("--%s: %s is installed in version %s, not %s: correct or omit the version",
			packages.Word(item.Type), item.Label(), list[0].Version, item.Ref.Version)
	}
	return &list[0], nil
}

// checkNamespaces protects providers that are to stay in the namespace of one that is deleted with it.
func checkNamespaces(have, entries inventory.Inventory, opts *ProviderOptions) error {
	if !opts.IncludeNamespace {
		return nil
	}
	for _, entry := range entries {
		for _, other := range have {
			stays := !slices.ContainsFunc(entries, func(e clusterctlv1.Provider) bool {
				return client.ObjectKeyFromObject(&e) == client.ObjectKeyFromObject(&other)
			})
			if stays && other.Namespace == entry.Namespace {
				return fmt.Errorf("--include-namespace: namespace %s of %s has %s, too: delete both, or omit --include-namespace",
					entry.Namespace, entry.Name, other.Name)
			}
		}
	}
	return nil
}
