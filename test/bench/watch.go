package main

import (
	"context"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"

	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// objects are all objects of one kind, from a watch: asking the API server again and again would be part of what is measured.
type objects struct{ cache.Store }

// named returns the objects whose name begins with the prefix.
func (o objects) named(prefix string) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for _, item := range o.List() {
		if u, ok := item.(*unstructured.Unstructured); ok && strings.HasPrefix(u.GetName(), prefix) {
			found = append(found, u)
		}
	}
	return found
}

// watch starts the watches of this program.
func (w *world) watch(ctx context.Context) error {
	c, err := dynamic.NewForConfig(w.Config)
	if err != nil {
		return err
	}
	d, err := discovery.NewDiscoveryClientForConfig(w.Config)
	if err != nil {
		return err
	}
	groups, err := restmapper.GetAPIGroupResources(d)
	if err != nil {
		return err
	}
	mapper, versions := restmapper.NewDiscoveryRESTMapper(groups), conversion.New(nil)
	factory := dynamicinformer.NewDynamicSharedInformerFactory(c, 0)
	// Objects are watched in the version that the API server prefers, so that it does not convert them, and read in v1beta1.
	of := func(group, resource string) (objects, error) {
		preferred, err := mapper.ResourceFor(schema.GroupVersionResource{Group: group, Resource: resource})
		if err != nil {
			return objects{}, err
		}
		informer := factory.ForResource(preferred).Informer()
		err = informer.SetTransform(func(item any) (any, error) {
			u, ok := item.(*unstructured.Unstructured)
			if !ok {
				return item, nil
			}
			return versions.In(ctx, "v1beta1", u)
		})
		return objects{informer.GetStore()}, err
	}
	var errs [3]error
	w.clusters, errs[0] = of("cluster.x-k8s.io", "clusters")
	w.machines, errs[1] = of("cluster.x-k8s.io", "machines")
	w.bindings, errs[2] = of("addons.cluster.x-k8s.io", "clusterresourcesetbindings")
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	for resource, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return errors.New("the watch of " + resource.Resource + " did not start")
		}
	}
	return nil
}
