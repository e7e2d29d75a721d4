package main

import (
	"context"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
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
	factory := dynamicinformer.NewDynamicSharedInformerFactory(c, 0)
	of := func(group, resource string) objects {
		return objects{
			factory.ForResource(schema.GroupVersionResource{Group: group, Version: "v1beta1", Resource: resource}).Informer().GetStore(),
		}
	}
	w.clusters, w.machines = of("cluster.x-k8s.io", "clusters"), of("cluster.x-k8s.io", "machines")
	w.bindings = of("addons.cluster.x-k8s.io", "clusterresourcesetbindings")
	factory.Start(ctx.Done())
	for resource, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return errors.New("the watch of " + resource.Resource + " did not start")
		}
	}
	return nil
}
