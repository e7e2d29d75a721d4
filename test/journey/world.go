package journey

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// World is what one test sees of a management cluster: a namespace.
type World struct {
	*Management
	Namespace string

	t        testing.TB
	patience time.Duration
}

// Applied writes objects into the namespace as somebody who applies a file does: what exists is changed.
func (w *World) Applied(objects ...client.Object) {
	w.t.Helper()
	for _, o := range objects {
		o.SetNamespace(w.Namespace)
		if err := w.apply(w.t.Context(), o); err != nil {
			w.t.Fatalf("applying %s %s: %v", kindOf(o), o.GetName(), err)
		}
	}
}

func (w *World) apply(ctx context.Context, o client.Object) error {
	err := w.Client.Create(ctx, o)
	if apierrors.IsAlreadyExists(err) {
		current := o.DeepCopyObject().(client.Object)
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(o), current); err != nil {
			return err
		}
		o.SetResourceVersion(current.GetResourceVersion())
		err = w.Client.Update(ctx, o)
	}
	if err != nil {
		return err
	}
	return w.settle(ctx, o)
}

// Subject creates a Cluster, and returns it as what the test is about.
func (w *World) Subject(cluster *clusterv1.Cluster) *Subject {
	w.t.Helper()
	before := w.Inventory()
	w.Applied(cluster)
	return &Subject{World: w, Name: cluster.Name, before: before}
}

// Inventory lists everything in the namespace as "<resource>/<name>", sorted. Events, which vanish by themselves, are
// left out.
func (w *World) Inventory() []string {
	w.t.Helper()
	var found []string
	w.each(func(resource string, o metav1.PartialObjectMetadata) {
		found = append(found, resource+"/"+o.Name)
	})
	slices.Sort(found)
	return found
}

// Versions maps everything in the namespace, as Inventory names it, to its resource version.
func (w *World) Versions() map[string]string {
	w.t.Helper()
	found := map[string]string{}
	w.each(func(resource string, o metav1.PartialObjectMetadata) { found[resource+"/"+o.Name] = o.ResourceVersion })
	return found
}

// each calls f with everything in the namespace but Events.
func (w *World) each(f func(resource string, o metav1.PartialObjectMetadata)) {
	w.t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(w.Config)
	if err != nil {
		w.t.Fatal(err)
	}
	groups, err := d.ServerPreferredNamespacedResources()
	if err != nil {
		w.t.Fatalf("asking which kinds there are: %v", err)
	}
	for _, group := range groups {
		for _, r := range group.APIResources {
			if r.Kind == "Event" || !slices.Contains(r.Verbs, "list") {
				continue
			}
			list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: group.GroupVersion, Kind: r.Kind + "List"}}
			if err := w.Client.List(w.t.Context(), list, client.InNamespace(w.Namespace)); err != nil {
				w.t.Fatalf("listing %s: %v", r.Name, err)
			}
			for _, o := range list.Items {
				f(r.Name, o)
			}
		}
	}
}

// kindOf names the kind of an object in messages.
func kindOf(o client.Object) string {
	if kind := o.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	name := fmt.Sprintf("%T", o)
	return name[strings.LastIndex(name, ".")+1:]
}
