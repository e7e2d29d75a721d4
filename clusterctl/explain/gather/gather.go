// Package gather reads what package explain considers, from a management cluster.
//
// It makes one request per kind, most of them at the same time. What the user may not read is left out and noted, except for the
// Cluster's own objects.
package gather

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/clusterctl/explain"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
	"sigs.k8s.io/cluster-api/clusterctl/tree/snapshot"
	"sigs.k8s.io/cluster-api/packages/apply"
)

const (
	providerLabel = "cluster.x-k8s.io/provider"
	// maxEvents bounds the warnings that are read, in pages of pageSize. An API server keeps Events for an hour, sorted by name.
	maxEvents = 2000
	pageSize  = 500
	// maxVerified bounds how many objects are read again.
	maxVerified = 10
)

// Read returns the input of Explain for a Cluster. The Cluster is missing among its objects if it does not exist.
func Read(ctx context.Context, c client.Client, cluster types.NamespacedName, now time.Time) (explain.Input, error) {
	r := &reader{
		client: c,
		in:     explain.Input{Cluster: cluster, Now: now, ProviderOf: map[schema.GroupKind]string{}, NoKind: map[schema.GroupKind]bool{}},
	}
	var claims, sets unstructured.UnstructuredList
	var group errgroup.Group // It cancels nothing: client-go logs requests that are canceled.
	group.Go(func() error {
		var err error
		r.in.Objects, err = snapshot.Read(ctx, c, cluster,
			tree.Options{MachineSets: true, ResourceSets: true, HealthChecks: true, Templates: true})
		return err
	})
	for what, read := range map[string]func(context.Context) error{
		"IPAddressClaims":                 r.list(&claims, explain.ClaimKind, client.InNamespace(cluster.Namespace)),
		"ClusterResourceSets":             r.list(&sets, explain.ResourceSetKind, client.InNamespace(cluster.Namespace)),
		"CustomResourceDefinitions":       r.definitions,
		"Deployments of the providers":    r.deployments,
		"Events in the Cluster namespace": r.events,
	} {
		group.Go(func() error { return r.note(what, read(ctx)) })
	}
	if err := group.Wait(); err != nil {
		return explain.Input{}, err
	}
	for _, list := range []*unstructured.UnstructuredList{&claims, &sets} {
		for i := range list.Items {
			r.in.Objects.Add(&list.Items[i])
		}
	}
	if err := r.class(ctx); err != nil {
		return explain.Input{}, err
	}
	if err := r.operation(ctx); err != nil {
		return explain.Input{}, err
	}
	if err := r.verify(ctx, r.unresolved()); err != nil {
		return explain.Input{}, err
	}
	slices.Sort(r.in.Unread)
	return r.in, nil
}

type reader struct {
	client client.Client
	mu     sync.Mutex
	in     explain.Input
}

// note records what may not be read; other errors are returned.
func (r *reader) note(what string, err error) error {
	switch {
	case err == nil, meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return nil
	case apierrors.IsForbidden(err):
		r.mu.Lock()
		defer r.mu.Unlock()
		r.in.Unread = append(r.in.Unread, fmt.Sprintf("%s: the user of the kubeconfig may not list them", what))
		return nil
	default:
		return fmt.Errorf("cannot read %s: %w", what, err)
	}
}

func (r *reader) list(
	list *unstructured.UnstructuredList, kind schema.GroupVersionKind, opts ...client.ListOption,
) func(context.Context) error {
	return func(ctx context.Context) error {
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		return r.client.List(ctx, list, opts...)
	}
}

// definitions reads the metadata of the providers' CustomResourceDefinitions.
func (r *reader) definitions(ctx context.Context) error {
	partial := &metav1.PartialObjectMetadataList{
		TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinitionList"},
	}
	if err := r.client.List(ctx, partial, client.HasLabels{providerLabel}); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range partial.Items {
		resource, group, _ := strings.Cut(partial.Items[i].Name, ".")
		kind, err := r.client.RESTMapper().KindFor(schema.GroupVersionResource{Group: group, Resource: resource})
		if err == nil {
			r.in.ProviderOf[kind.GroupKind()] = partial.Items[i].Labels[providerLabel]
		}
	}
	return nil
}

// deployments reads the Deployments of providers, and the Pods of those that are not available.
func (r *reader) deployments(ctx context.Context) error {
	list := &appsv1.DeploymentList{}
	if err := r.client.List(ctx, list, client.HasLabels{providerLabel}); err != nil {
		return err
	}
	r.in.Providers = list.Items
	r.in.NoManagers = len(list.Items) == 0 && !management.ManagersMayRun(ctx, r.client, r.in.Now)
	for i := range list.Items {
		if d := &list.Items[i]; d.Status.AvailableReplicas == 0 && d.Spec.Selector != nil {
			if err := r.pods(ctx, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// pods reads the Pods of a Deployment, and warnings about the first one whose containers are not created: its status does not have the
// reason.
func (r *reader) pods(ctx context.Context, d *appsv1.Deployment) error {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return nil // The API server validates selectors.
	}
	pods := &corev1.PodList{}
	if err := r.client.List(ctx, pods, client.InNamespace(d.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return err
	}
	r.in.Pods = append(r.in.Pods, pods.Items...)
	first := slices.IndexFunc(pods.Items, func(p corev1.Pod) bool { return apply.Creating(&p) })
	if first < 0 {
		return nil
	}
	warnings, err := apply.Warnings(ctx, r.client, &pods.Items[first])
	r.in.PodEvents = append(r.in.PodEvents, warnings...)
	return r.note("Events of the Pods of "+d.Labels[providerLabel], err)
}

// events reads warnings.
func (r *reader) events(ctx context.Context) error {
	next := ""
	for len(r.in.Events) < maxEvents {
		list := &corev1.EventList{}
		err := r.client.List(ctx, list, client.InNamespace(r.in.Cluster.Namespace),
			client.MatchingFields{"type": corev1.EventTypeWarning}, client.Limit(pageSize), client.Continue(next))
		if apierrors.IsResourceExpired(err) {
			return nil // Events changed while they were read; what was read is enough.
		}
		if err != nil {
			return err
		}
		r.in.Events = append(r.in.Events, list.Items...)
		if next = list.Continue; next == "" {
			break
		}
	}
	return nil
}

// class reads the ClusterClass of the Cluster.
func (r *reader) class(ctx context.Context) error {
	cluster := r.in.Objects.Cluster(r.in.Cluster)
	if cluster == nil {
		return nil
	}
	key, _ := tree.Class(cluster)
	if key.Name == "" {
		return nil
	}
	class := &unstructured.Unstructured{}
	class.SetGroupVersionKind(explain.ClassKind)
	err := r.client.Get(ctx, key, class)
	if err == nil {
		r.in.Objects.Add(class)
	}
	r.in.ClassRead = err == nil || apierrors.IsNotFound(err)
	return r.note("ClusterClasses", err)
}

// operation reads the operation of the fleet provider on the control plane, if there is one.
func (r *reader) operation(ctx context.Context) error {
	plane := r.in.Objects.Resolve(r.in.Objects.Cluster(r.in.Cluster), "spec", "controlPlaneRef")
	if plane == nil {
		return nil
	}
	op, err := fleetv1.OperationOf(plane)
	if err != nil || op == nil {
		return nil // An invalid annotation is explained.
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(fleetv1.GroupVersion.WithKind(op.Kind))
	err = r.client.Get(ctx, client.ObjectKey{Namespace: plane.GetNamespace(), Name: op.Name}, object)
	if err == nil {
		r.in.Operation = object
	}
	return r.note(op.Kind+" "+op.Name, err)
}

// unresolved returns the references to objects that were not found, and notes the kinds that the API server does not serve.
func (r *reader) unresolved() []tree.Reference {
	var list []tree.Reference
	for _, ref := range tree.References(r.in.Cluster, r.in.Objects) {
		gk := ref.Kind.GroupKind()
		if r.in.Objects.Get(gk, ref.Name) != nil || ref.From.GetDeletionTimestamp() != nil {
			continue
		}
		if _, err := snapshot.Served(r.client.RESTMapper(), ref.Kind); meta.IsNoMatchError(err) {
			r.in.NoKind[gk] = true
			continue
		}
		list = append(list, ref)
	}
	return list
}

// verify reads objects again until one of them refers to an object that does not exist. Kinds are read one after the other, so both
// may have been deleted meanwhile; then the first does not count. It gives up after maxVerified: most of the Cluster is being deleted.
func (r *reader) verify(ctx context.Context, unresolved []tree.Reference) error {
	for _, ref := range unresolved[:min(len(unresolved), maxVerified)] {
		from := &unstructured.Unstructured{}
		from.SetGroupVersionKind(ref.From.GroupVersionKind())
		err := r.client.Get(ctx, client.ObjectKeyFromObject(ref.From), from)
		switch {
		case apierrors.IsNotFound(err):
			from = ref.From.DeepCopy()
			from.SetDeletionTimestamp(&metav1.Time{Time: r.in.Now})
		case err != nil:
			return fmt.Errorf("cannot read %s %s again: %w", ref.From.GetKind(), ref.From.GetName(), err)
		case from.GetDeletionTimestamp() == nil:
			return nil
		}
		r.in.Objects.Add(from)
	}
	return nil
}
