package controlplane

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

// extraRounds is how many more times discovery is requested after the last change of a CRD. The API server serves a new
// kind shortly after the CRD is established.
const extraRounds = 5

// watchedDiscovery caches discovery while no CRD changes. Controllers can poll it every second at no cost, and handle a
// new kind within a second. (With the API server's discovery, the garbage and quota controllers poll every 30 seconds;
// until then, deleting an owner leaves its dependents.)
type watchedDiscovery struct {
	discovery.ServerResourcesInterface

	asks  atomic.Int32 // remaining rounds that request it from the server
	known []*metav1.APIResourceList

	// watched are the versions that were preferred. lost is closed when one of them is no longer served, but another one of its kind is.
	watched map[schema.GroupVersionResource]bool
	lost    chan struct{}
	once    sync.Once
}

// newWatchedDiscovery watches CRDs through an informer that the garbage collector needs anyway.
func newWatchedDiscovery(d discovery.ServerResourcesInterface, m metadatainformer.SharedInformerFactory) (*watchedDiscovery, error) {
	w := &watchedDiscovery{ServerResourcesInterface: d, watched: map[schema.GroupVersionResource]bool{}, lost: make(chan struct{})}
	changed := func() { w.asks.Store(extraRounds) }
	crds := m.ForResource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	_, err := crds.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { changed() },
		UpdateFunc: func(any, any) { changed() },
		DeleteFunc: func(any) { changed() },
	})
	if err != nil {
		return nil, fmt.Errorf("watch CRDs: %w", err)
	}
	changed()
	return w, nil
}

// ServerPreferredResources implements discovery.ServerResourcesInterface. It is called by one goroutine.
func (w *watchedDiscovery) ServerPreferredResources() ([]*metav1.APIResourceList, error) {
	if w.known != nil && w.asks.Load() == 0 {
		return w.known, nil
	}
	w.asks.Add(-1)
	found, err := w.ServerResourcesInterface.ServerPreferredResources()
	if err != nil {
		w.asks.Store(extraRounds)
		return found, err
	}
	w.known = found
	if w.hasLost(found) {
		w.once.Do(func() { close(w.lost) })
	}
	return found, nil
}

// hasLost reports whether a version that was preferred is no longer served, but the kind is.
func (w *watchedDiscovery) hasLost(preferred []*metav1.APIResourceList) bool {
	served := map[schema.GroupResource]schema.GroupVersionResource{}
	for _, list := range preferred {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue // The API server does not send such.
		}
		for i := range list.APIResources {
			r := version.WithResource(list.APIResources[i].Name)
			served[r.GroupResource()] = r
			w.watched[r] = true
		}
	}
	asked := map[schema.GroupVersion]*metav1.APIResourceList{}
	for r := range w.watched {
		now, ok := served[r.GroupResource()]
		if !ok || now == r {
			continue
		}
		list, known := asked[r.GroupVersion()]
		var err error
		if !known {
			if list, err = w.ServerResourcesForGroupVersion(r.GroupVersion().String()); err == nil {
				asked[r.GroupVersion()] = list
			}
		}
		switch {
		case apierrors.IsNotFound(err):
			return true
		case err != nil:
			w.asks.Store(extraRounds)
		case !slices.ContainsFunc(list.APIResources, func(a metav1.APIResource) bool { return a.Name == r.Resource }):
			return true
		}
	}
	return false
}

// namespaced returns the namespaced kinds.
func (w *watchedDiscovery) namespaced() ([]*metav1.APIResourceList, error) {
	all, err := w.ServerPreferredResources()
	return discovery.FilteredBy(discovery.ResourcePredicateFunc(func(_ string, r *metav1.APIResource) bool { return r.Namespaced }), all), err
}
