package scenario

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/test/fault/history"
)

const addonsAPI = "addons.cluster.x-k8s.io/v1beta1"

// The names of the ClusterResourceSets, and of their ConfigMaps and Secrets.
const (
	onceSet      = "once"
	reconcileSet = "reconcile"
)

// resourceSets returns the scenarios with ClusterResourceSets.
func resourceSets() []Scenario {
	size := deployed(1, 1)
	apply := func(name string, changes []Change, done ...Condition) Scenario {
		return Scenario{
			Name: name, Before: &size, Change: changes, Done: append(done, Ready(size)),
			Limits: Limits{MaxControlPlanes: 1, MaxWorkers: 1, MinControlPlanes: 1, MinWorkers: 1},
		}
	}
	deletes := Scenario{
		Name: "resource-sets-delete-cluster", Before: &size, Change: []Change{CreateResourceSets, resourceSetsApplied, Delete}, Deletes: true,
		Limits: Limits{MaxControlPlanes: 1, MaxWorkers: 1},
		Done:   []Condition{Absent, Bound()},
	}
	return []Scenario{
		apply("resource-sets-apply", []Change{CreateResourceSets}, Bound(onceSet+" ConfigMap", onceSet+" Secret", reconcileSet+" ConfigMap")),
		apply("resource-sets-delete", []Change{CreateResourceSets, resourceSetsApplied, DeleteResourceSet},
			Bound(onceSet+" ConfigMap", onceSet+" Secret"), withoutSet),
		deletes,
	}
}

// CreateResourceSets creates two ClusterResourceSets that select all Clusters, with a ConfigMap and a Secret.
func CreateResourceSets(ctx context.Context, t Target) error {
	manifest := func(name string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {a: b}\n", name)
	}
	for _, name := range []string{onceSet, reconcileSet} {
		config := object("v1", "ConfigMap", t.Namespace, name)
		config.Object["data"] = map[string]any{"1.yaml": manifest(name + "-1"), "2.yaml": manifest(name + "-2")}
		if err := ignoreExists(t.Client.Create(ctx, config)); err != nil {
			return err
		}
	}
	secret := object("v1", "Secret", t.Namespace, onceSet)
	secret.Object["type"], secret.Object["stringData"] = "addons.cluster.x-k8s.io/resource-set", map[string]any{"1.yaml": manifest("secret")}
	if err := ignoreExists(t.Client.Create(ctx, secret)); err != nil {
		return err
	}
	for name, strategy := range map[string]string{onceSet: "ApplyOnce", reconcileSet: "Reconcile"} {
		set := object(addonsAPI, "ClusterResourceSet", t.Namespace, name)
		resources := []any{map[string]any{"kind": "ConfigMap", "name": name}}
		if name == onceSet {
			resources = append(resources, map[string]any{"kind": "Secret", "name": name})
		}
		all := map[string]any{"key": "no-resource-sets", "operator": "DoesNotExist"}
		set.Object["spec"] = map[string]any{
			"strategy": strategy, "resources": resources, "clusterSelector": map[string]any{"matchExpressions": []any{all}},
		}
		if err := ignoreExists(t.Client.Create(ctx, set)); err != nil {
			return err
		}
	}
	return nil
}

// resourceSetsApplied fails, and is retried, until the conditions of both ClusterResourceSets are True and their ConfigMaps have owners.
// Otherwise it would depend on timing whether the ConfigMap of one that is deleted is collected as garbage.
func resourceSetsApplied(ctx context.Context, t Target) error {
	for _, name := range []string{onceSet, reconcileSet} {
		set, config := object(addonsAPI, "ClusterResourceSet", t.Namespace, name), object("v1", "ConfigMap", t.Namespace, name)
		for _, o := range []*unstructured.Unstructured{set, config} {
			if err := t.Client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
				return err
			}
		}
		if Status(set, "ResourcesApplied") != "True" || len(config.GetOwnerReferences()) == 0 {
			return fmt.Errorf("ClusterResourceSet %s is not applied", name)
		}
	}
	return nil
}

// DeleteResourceSet deletes the ClusterResourceSet with strategy Reconcile.
func DeleteResourceSet(ctx context.Context, t Target) error {
	return client.IgnoreNotFound(t.Client.Delete(ctx, object(addonsAPI, "ClusterResourceSet", t.Namespace, reconcileSet)))
}

// Bound is true when the binding of the Cluster records that exactly these were applied, "<set> <kind>"; for none, when there is no
// binding.
func Bound(want ...string) Condition {
	return func(now history.State) error {
		b := now[history.Key{Kind: "ClusterResourceSetBinding", Name: ClusterName}]
		var got []string
		if b != nil {
			entries, _, _ := unstructured.NestedSlice(b.Object, "spec", "bindings")
			for _, item := range entries {
				entry, _ := item.(map[string]any)
				resources, _ := entry["resources"].([]any)
				for _, item := range resources {
					if r, _ := item.(map[string]any); r["applied"] == true {
						got = append(got, fmt.Sprintf("%v %v", entry["clusterResourceSetName"], r["kind"]))
					}
				}
				if len(resources) == 0 {
					got = append(got, fmt.Sprintf("%v", entry["clusterResourceSetName"]))
				}
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) || b != nil && len(want) == 0 {
			return fmt.Errorf("the binding records %q, not %q", got, want)
		}
		return nil
	}
}

// withoutSet is true when the ClusterResourceSet that DeleteResourceSet deletes does not exist.
func withoutSet(now history.State) error {
	if now[history.Key{Kind: "ClusterResourceSet", Name: reconcileSet}] != nil {
		return fmt.Errorf("ClusterResourceSet %s still exists", reconcileSet)
	}
	return nil
}

// ofResourceSets reports whether CreateResourceSets creates an object.
func ofResourceSets(key history.Key) bool { return key.Name == onceSet || key.Name == reconcileSet }
