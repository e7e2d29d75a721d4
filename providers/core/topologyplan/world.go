package topologyplan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/classes"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// World is a client.Reader of the objects of a management cluster, each read once, under objects that were put into it. It is not safe
// for concurrent use.
type World struct {
	scheme *runtime.Scheme
	// live is nil if there is no management cluster.
	live    client.Reader
	objects map[identity]*unstructured.Unstructured
	// listed are the lists that have been read from live.
	listed map[string]bool
	// denied is the error of the last object that the user may not read, failed that of the last one that could not be read.
	denied, failed error
	// metadataApart makes the metadata of CustomResourceDefinitions be read without the rest.
	metadataApart bool
}

// identity identifies an object. Its kind has no version if objects of this kind can be converted.
type identity struct {
	kind schema.GroupVersionKind
	key  client.ObjectKey
}

func newIdentity(kind schema.GroupVersionKind, key client.ObjectKey) identity {
	if slices.Contains(conversion.Shared().Versions(kind.GroupKind()), kind.Version) {
		kind.Version = ""
	}
	return identity{kind, key}
}

var _ client.Reader = &World{}

// NewWorld returns a world with the objects that live reads. If it is nil, there are none.
func NewWorld(live client.Reader) (*World, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	return worldOf(scheme, live), nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(clusterv1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), runtimev1.AddToScheme(scheme))
}

func worldOf(scheme *runtime.Scheme, live client.Reader) *World {
	return &World{scheme: scheme, live: live, objects: map[identity]*unstructured.Unstructured{}, listed: map[string]bool{}}
}

func identityOf(u *unstructured.Unstructured) identity {
	return newIdentity(u.GroupVersionKind(), client.ObjectKeyFromObject(u))
}

// Put adds or replaces an object.
func (w *World) Put(u *unstructured.Unstructured) { w.objects[identityOf(u)] = u.DeepCopy() }

// PutTyped adds or replaces an object of a kind in the scheme.
func (w *World) PutTyped(obj client.Object) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return fmt.Errorf("converting %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
	}
	u := &unstructured.Unstructured{Object: content}
	kind, err := apiutil.GVKForObject(obj, w.scheme)
	if err != nil {
		return err
	}
	u.SetGroupVersionKind(kind)
	w.Put(u)
	return nil
}

// Remove removes an object.
func (w *World) Remove(u *unstructured.Unstructured) { w.objects[identityOf(u)] = nil }

// Get implements client.Reader.
func (w *World) Get(ctx context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if done, err := w.apart(ctx, key, obj); done || err != nil {
		return err
	}
	kind, err := apiutil.GVKForObject(obj, w.scheme)
	if err != nil {
		return err
	}
	u, err := w.get(ctx, kind, key)
	if err != nil {
		return err
	}
	return into(u, obj)
}

// get returns an object in the version of kind.
func (w *World) get(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*unstructured.Unstructured, error) {
	id := newIdentity(kind, key)
	if err := w.listExtensions(ctx, kind); err != nil {
		return nil, err
	}
	u, known := w.objects[id]
	if !known && w.live != nil {
		u = &unstructured.Unstructured{}
		u.SetGroupVersionKind(kind)
		err := w.live.Get(ctx, key, u)
		w.note(err)
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if err != nil {
			u = nil
		}
		w.objects[id] = u
	}
	if u == nil {
		plural, _ := meta.UnsafeGuessKindToResource(kind)
		return nil, apierrors.NewNotFound(plural.GroupResource(), key.Name)
	}
	return conversion.Shared().In(ctx, kind.Version, u)
}

// into converts an object into another one of the same kind.
func into(u *unstructured.Unstructured, obj runtime.Object) error {
	content := u.Object
	switch out := obj.(type) {
	case *unstructured.Unstructured:
		u.DeepCopyInto(out)
		return nil
	case *metav1.PartialObjectMetadata:
		content = map[string]any{"apiVersion": content["apiVersion"], "kind": content["kind"], "metadata": content["metadata"]}
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(runtime.DeepCopyJSON(content), obj); err != nil {
		return fmt.Errorf("decoding %s %s/%s: %w", u.GetKind(), u.GetNamespace(), u.GetName(), err)
	}
	return nil
}

// List implements client.Reader. Of field selectors, it supports that of Clusters by class.
func (w *World) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	kind, err := apiutil.GVKForObject(list, w.scheme)
	if err != nil {
		return err
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	var o client.ListOptions
	o.ApplyOptions(opts)
	if err := w.readList(ctx, kind, o); err != nil {
		return err
	}
	var found []runtime.Object
	for _, u := range w.ofKind(kind, o.Namespace) {
		if u, err = conversion.Shared().In(ctx, kind.Version, u); err != nil {
			return err
		}
		selected, err := selects(o, u)
		if err != nil {
			return err
		}
		if !selected {
			continue
		}
		if _, untyped := list.(*unstructured.UnstructuredList); untyped {
			found = append(found, u.DeepCopy())
			continue
		}
		item, err := w.item(kind, u)
		if err != nil {
			return err
		}
		found = append(found, item)
	}
	return meta.SetList(list, found)
}

// item returns an object in the type that lists of its kind have.
func (w *World) item(kind schema.GroupVersionKind, u *unstructured.Unstructured) (runtime.Object, error) {
	if !w.scheme.Recognizes(kind) {
		return u.DeepCopy(), nil
	}
	item, err := w.scheme.New(kind)
	if err != nil {
		return nil, err
	}
	return item, into(u, item)
}

// readList reads a list from live. Objects that are known already stay as they are.
func (w *World) readList(ctx context.Context, kind schema.GroupVersionKind, o client.ListOptions) error {
	selector := ofCluster(o.LabelSelector)
	name := strings.Join([]string{kind.String(), o.Namespace, selector.String()}, "|")
	if w.live == nil || w.listed[name] {
		return nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := w.live.List(ctx, list, client.InNamespace(o.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		w.note(err)
		return err
	}
	for i := range list.Items {
		u := &list.Items[i]
		if u.GroupVersionKind() != kind {
			u.SetGroupVersionKind(kind)
		}
		if _, known := w.objects[identityOf(u)]; !known {
			w.objects[identityOf(u)] = u
		}
	}
	w.listed[name] = true
	return nil
}

// ofCluster returns a selector of all objects of a Cluster in place of one for a part of them: other parts are needed, too.
func ofCluster(selector labels.Selector) labels.Selector {
	if selector == nil {
		return labels.Everything()
	}
	if name, ok := selector.RequiresExactMatch(clusterv1.ClusterNameLabel); ok {
		return labels.SelectorFromSet(labels.Set{clusterv1.ClusterNameLabel: name})
	}
	return selector
}

func selects(o client.ListOptions, u *unstructured.Unstructured) (bool, error) {
	if o.LabelSelector != nil && !o.LabelSelector.Matches(labelSet(u)) {
		return false, nil
	}
	if o.FieldSelector == nil || o.FieldSelector.Empty() {
		return true, nil
	}
	class, ok := o.FieldSelector.RequiresExactMatch(classes.IndexName())
	if !ok {
		return false, fmt.Errorf("field selector %s is not supported", o.FieldSelector)
	}
	cluster := &clusterv1.Cluster{}
	if err := into(u, cluster); err != nil {
		return false, err
	}
	return slices.Contains(classes.ClassOf(cluster), class), nil
}

// ofKind returns the objects of a kind, in all namespaces if the namespace is empty, by namespace and name.
func (w *World) ofKind(kind schema.GroupVersionKind, namespace string) []*unstructured.Unstructured {
	kind = newIdentity(kind, client.ObjectKey{}).kind
	var found []*unstructured.Unstructured
	for id, u := range w.objects {
		if u != nil && id.kind == kind && (namespace == "" || id.key.Namespace == namespace) {
			found = append(found, u)
		}
	}
	slices.SortFunc(found, byKindAndName)
	return found
}

// sorted returns all objects by kind, namespace and name.
func (w *World) sorted() []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, u := range w.objects {
		if u != nil {
			all = append(all, u)
		}
	}
	slices.SortFunc(all, byKindAndName)
	return all
}

func byKindAndName(a, b *unstructured.Unstructured) int {
	return slices.Compare(
		[]string{a.GetKind(), a.GetNamespace(), a.GetName()},
		[]string{b.GetKind(), b.GetNamespace(), b.GetName()})
}
