package journey

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// Versions of Kubernetes that most journeys create, and upgrade to.
const (
	older = "v1.30.5"
	newer = "v1.31.2"
)

// managedHost is the only host on which API servers of in-memory clusters listen under capi.
const managedHost = "127.0.0.1"

// World is a namespace of a management cluster for one test.
type World struct {
	*Management
	Namespace string

	t       testing.TB
	timeout time.Duration
}

// Patient makes Conditions wait longer than usual, for machines that take a minute to start, one after another.
func (w *World) Patient() { w.timeout = slowTimeout }

// Applied creates or updates objects in the namespace.
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
	return w.waitForCache(ctx, o)
}

// Subject creates the Cluster under test.
func (w *World) Subject(cluster *clusterv1.Cluster) *Subject {
	w.t.Helper()
	before := w.Inventory()
	w.Applied(cluster)
	return &Subject{World: w, Name: cluster.Name, before: before}
}

// Inventory lists all objects in the namespace, except Events, as "<resource>/<name>", sorted.
func (w *World) Inventory() []string {
	w.t.Helper()
	var found []string
	w.each(func(resource string, o metav1.PartialObjectMetadata) {
		found = append(found, resource+"/"+o.Name)
	})
	slices.Sort(found)
	return found
}

// Versions returns the resource versions of all objects in the namespace, with the keys of Inventory.
func (w *World) Versions() map[string]string {
	w.t.Helper()
	found := map[string]string{}
	w.each(func(resource string, o metav1.PartialObjectMetadata) { found[resource+"/"+o.Name] = o.ResourceVersion })
	return found
}

// Requested returns what clients, not controllers that report a status, have changed of the objects in the namespace: generation and
// metadata; of kinds without generation the resource version.
func (w *World) Requested() map[string]string {
	w.t.Helper()
	found := map[string]string{}
	w.each(func(resource string, o metav1.PartialObjectMetadata) {
		found[resource+"/"+o.Name] = o.ResourceVersion
		if o.Generation > 0 {
			found[resource+"/"+o.Name] = fmt.Sprint(o.Generation, o.Labels, o.Annotations, o.Finalizers, o.DeletionTimestamp)
		}
	})
	return found
}

// garbage returns an error that names an object of which an owner does not exist: the garbage collector has not deleted it yet.
func (w *World) garbage() error {
	w.t.Helper()
	exists := map[types.UID]bool{}
	owners := map[string][]metav1.OwnerReference{}
	w.each(func(resource string, o metav1.PartialObjectMetadata) {
		exists[o.UID] = true
		owners[resource+"/"+o.Name] = o.OwnerReferences
	})
	for name, references := range owners {
		for _, r := range references {
			if !exists[r.UID] {
				return fmt.Errorf("%s exists, and its owner %s %s does not", name, r.Kind, r.Name)
			}
		}
	}
	return nil
}

// each calls f for all objects in the namespace, except Events.
func (w *World) each(f func(resource string, o metav1.PartialObjectMetadata)) {
	w.t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(w.Config)
	if err != nil {
		w.t.Fatal(err)
	}
	groups, err := d.ServerPreferredNamespacedResources()
	if err != nil {
		w.t.Fatalf("discovering kinds: %v", err)
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

// kindOf returns the kind of an object, for messages.
func kindOf(o client.Object) string {
	if kind := o.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	name := fmt.Sprintf("%T", o)
	return name[strings.LastIndex(name, ".")+1:]
}

// installed returns the versions of the providers with these labels, or of all, from the inventory.
func (w *World) installed(labels ...string) map[string]string {
	w.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(clusterctlv1.GroupVersion.WithKind("ProviderList"))
	if err := w.Client.List(w.t.Context(), list); err != nil {
		w.t.Fatal(err)
	}
	versions := map[string]string{}
	for _, p := range list.Items {
		if len(labels) == 0 || slices.Contains(labels, p.GetName()) {
			versions[p.GetName()], _ = p.Object["version"].(string)
		}
	}
	return versions
}

// crds returns the CRDs of the components.
func (w *World) crds() (client.Client, []apiextensionsv1.CustomResourceDefinition) {
	w.t.Helper()
	scheme := runtime.NewScheme()
	testenv.Must(w.t, apiextensionsv1.AddToScheme(scheme))
	api, err := client.New(w.Config, client.Options{Scheme: scheme})
	testenv.Must(w.t, err)
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	testenv.Must(w.t, api.List(w.t.Context(), list, client.HasLabels{"cluster.x-k8s.io/provider"}))
	return api, list.Items
}
