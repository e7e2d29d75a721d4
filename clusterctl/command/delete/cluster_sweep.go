package delete

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
)

const (
	// parallelLists is how many kinds are listed concurrently.
	parallelLists = 8
	maxNames      = 3
)

// sweeper waits until the objects of a deleted Cluster have been garbage collected.
type sweeper struct {
	IO     *iostreams.Streams
	client client.WithWatch
	// resources tells the kinds if the user may not list their definitions.
	resources discovery.ServerResourcesInterface
	cluster   types.NamespacedName
	// waiting is what the sweeper waits for.
	waiting []string
}

// leftovers are the objects of one kind that carry the Cluster's label.
type leftovers struct {
	kind schema.GroupVersionKind
	// resourceVersion is the one of the list.
	resourceVersion string
	// leaving have owners or are being deleted; staying have no owner and are not.
	leaving, staying []string
}

// sweep waits for the objects that are leaving, and prints those that are not.
func (s *sweeper) sweep(ctx context.Context) error {
	kinds, err := s.kinds(ctx)
	if err != nil {
		return err
	}
	found, err := s.look(ctx, kinds)
	if err != nil {
		return err
	}
	var staying []string
	for _, l := range found {
		staying = append(staying, l.staying...)
		if err := s.waitGone(ctx, l); err != nil {
			return err
		}
	}
	if len(staying) > 0 {
		s.IO.Infof("Not deleted, because the Cluster does not own it: %s", strings.Join(staying, ", "))
	}
	return nil
}

// kinds returns the kinds whose objects can belong to a Cluster: those of providers, Secrets and ConfigMaps.
func (s *sweeper) kinds(ctx context.Context) ([]schema.GroupVersionKind, error) {
	kinds := []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("Secret"), corev1.SchemeGroupVersion.WithKind("ConfigMap")}
	crds := &metav1.PartialObjectMetadataList{
		TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinitionList"},
	}
	err := s.client.List(ctx, crds)
	if apierrors.IsForbidden(err) {
		found, err := s.discovered()
		return append(kinds, found...), err
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list the kinds of the management cluster: %w", err)
	}
	for _, crd := range crds.Items {
		resource, group, _ := strings.Cut(crd.Name, ".")
		_, ours := crd.Labels[clusterctlv1.ClusterctlLabel]
		_, provided := crd.Labels[clusterv1.ProviderNameLabel]
		if !ours && !provided && !strings.HasSuffix(group, "."+clusterv1.GroupVersion.Group) && group != clusterv1.GroupVersion.Group {
			continue
		}
		kind, err := s.client.RESTMapper().KindFor(schema.GroupVersionResource{Group: group, Resource: resource})
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot look up the kind of %s: %w", crd.Name, err)
		}
		if mapping, err := s.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version); err == nil &&
			mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			kinds = append(kinds, kind)
		}
	}
	return kinds, nil
}

// discovered returns the kinds with namespaces that are not of Kubernetes itself, as all users may discover them: only definitions tell
// which of them are those of providers.
func (s *sweeper) discovered() ([]schema.GroupVersionKind, error) {
	lists, err := s.resources.ServerPreferredNamespacedResources()
	if err != nil && len(lists) == 0 {
		return nil, fmt.Errorf("cannot discover the kinds of the management cluster: %w", err)
	}
	var kinds []schema.GroupVersionKind
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil || !strings.Contains(version.Group, ".") || strings.HasSuffix(version.Group, ".k8s.io") {
			continue
		}
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch") {
				kinds = append(kinds, version.WithKind(r.Kind))
			}
		}
	}
	return kinds, nil
}

// look returns the kinds that have remaining objects.
func (s *sweeper) look(ctx context.Context, kinds []schema.GroupVersionKind) ([]leftovers, error) {
	var mu sync.Mutex
	var found []leftovers
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelLists)
	for _, kind := range kinds {
		group.Go(func() error {
			l, err := s.list(ctx, kind)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if len(l.leaving)+len(l.staying) > 0 {
				found = append(found, l)
			}
			return nil
		})
	}
	err := group.Wait()
	slices.SortFunc(found, func(a, b leftovers) int { return cmp.Compare(a.kind.Kind, b.kind.Kind) })
	return found, err
}

func (s *sweeper) list(ctx context.Context, kind schema.GroupVersionKind) (leftovers, error) {
	l := leftovers{kind: kind}
	list := listOf(kind)
	err := s.client.List(ctx, list, s.options()...)
	switch {
	case apierrors.IsForbidden(err):
		// Users do not wait for what they may not list.
		s.IO.Logf(1, "Skipping %s objects of the cluster: %v", kind.Kind, err)
		return l, nil
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return l, nil
	case err != nil:
		return l, fmt.Errorf("cannot list %s objects: %w", kind.Kind, err)
	}
	l.resourceVersion = list.ResourceVersion
	for _, item := range list.Items {
		name := kind.Kind + "/" + item.Name
		if item.DeletionTimestamp != nil || len(item.OwnerReferences) > 0 {
			l.leaving = append(l.leaving, name)
		} else {
			l.staying = append(l.staying, name)
		}
	}
	return l, nil
}

// waitGone watches the objects that are leaving until they are gone.
func (s *sweeper) waitGone(ctx context.Context, l leftovers) error {
	for len(l.leaving) > 0 {
		if waiting := []string{some(l.leaving) + " to be deleted"}; !slices.Equal(waiting, s.waiting) {
			s.waiting = waiting
			s.IO.Infof("Waiting for %s", waiting[0])
		}
		if err := s.watchGone(ctx, l); err != nil {
			return err
		}
		var err error
		if l, err = s.list(ctx, l.kind); err != nil {
			return err
		}
	}
	return nil
}

// watchGone returns when the objects are gone, or when the watch ends.
func (s *sweeper) watchGone(ctx context.Context, l leftovers) error {
	raw := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: l.resourceVersion}}
	w, err := s.client.Watch(ctx, listOf(l.kind), append(s.options(), raw)...)
	if err != nil {
		return fmt.Errorf("cannot watch %s objects: %w", l.kind.Kind, err)
	}
	defer w.Stop()
	left := slices.Clone(l.leaving)
	for len(left) > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event, open := <-w.ResultChan():
			if !open || event.Type == watch.Error {
				return nil
			}
			o, err := meta.Accessor(event.Object)
			if err == nil && event.Type == watch.Deleted {
				left = slices.DeleteFunc(left, func(name string) bool { return name == l.kind.Kind+"/"+o.GetName() })
			}
		}
	}
	return nil
}

func (s *sweeper) options() []client.ListOption {
	return []client.ListOption{client.InNamespace(s.cluster.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: s.cluster.Name}}
}

func listOf(kind schema.GroupVersionKind) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}

// some lists at most maxNames names.
func some(names []string) string {
	if len(names) > maxNames {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNames], ", "), len(names)-maxNames)
	}
	return strings.Join(names, ", ")
}
