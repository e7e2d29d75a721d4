package invariant

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/test/fault/history"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
)

// installedOnce checks that no object of a provider is created again after it was deleted.
func installedOnce(r Run) []Violation {
	if !r.Scenario.Operator {
		return nil
	}
	seen := map[history.Key]map[types.UID]bool{}
	see := func(o *unstructured.Unstructured, key history.Key) int {
		if seen[key] == nil {
			seen[key] = map[types.UID]bool{}
		}
		seen[key][o.GetUID()] = true
		return len(seen[key])
	}
	for key, o := range r.Before.End() {
		see(o, key)
	}
	return r.play(func(e history.Event, _ history.State) *Violation {
		key := e.Key()
		if key.Kind == "Event" || scenario.IsJournal(e.Object) || slices.Contains(r.Scenario.Recreated, key.Name) {
			return nil
		}
		if n := see(e.Object, key); n > 1 {
			return &Violation{Detail: fmt.Sprintf("%s %s was created again", key.Kind, key.Name)}
		}
		return nil
	})
}

// nothingOfUsersDeleted checks that neither definitions nor Namespaces nor objects of users are deleted, except by the user.
func nothingOfUsersDeleted(r Run) []Violation {
	if !r.Scenario.Operator {
		return nil
	}
	return r.play(func(e history.Event, _ history.State) *Violation {
		kind := e.Object.GetKind()
		if e.Type != watch.Deleted || !slices.Contains([]string{"CustomResourceDefinition", "Namespace", "InMemoryMachineTemplate"}, kind) {
			return nil
		}
		return &Violation{Detail: fmt.Sprintf("%s %s is deleted", kind, e.Object.GetName())}
	})
}

// neededStays checks that no component is deleted while an object that belongs to a Cluster is of a kind that its provider defines.
func neededStays(r Run) []Violation {
	if !r.Scenario.Operator {
		return nil
	}
	return r.play(func(e history.Event, now history.State) *Violation {
		_, isComponent := e.Object.GetLabels()[clusterv1.ProviderNameLabel]
		if e.Type != watch.Deleted || !isComponent {
			return nil
		}
		for _, user := range now.Of("InMemoryCluster") {
			return &Violation{
				Detail: fmt.Sprintf("%s %s is deleted, but InMemoryCluster %s needs it", e.Object.GetKind(), e.Object.GetName(), user.GetName()),
			}
		}
		return nil
	})
}

// alwaysServed checks that webhooks which had an available Deployment and a Service always have them, unless their provider is deleted.
func alwaysServed(r Run) []Violation {
	if !r.Scenario.Operator {
		return nil
	}
	served := map[string]string{}
	before := r.Before.End()
	for deployment, service := range scenario.Served() {
		if isAvailable(before, deployment) {
			served[deployment] = service
		}
	}
	return r.play(func(e history.Event, now history.State) *Violation {
		if e.Object.GetKind() != "Deployment" && e.Object.GetKind() != "Service" {
			return nil
		}
		for _, deployment := range slices.Sorted(maps.Keys(served)) {
			if isRemoved(now, deployment) {
				continue
			}
			if !isAvailable(now, deployment) || now[history.Key{Kind: "Service", Name: served[deployment]}] == nil {
				return &Violation{Detail: fmt.Sprintf("Deployment %s is not available, or Service %s does not exist", deployment, served[deployment])}
			}
		}
		return nil
	})
}

func isAvailable(now history.State, deployment string) bool {
	d := now[history.Key{Kind: "Deployment", Name: deployment}]
	return d != nil && d.GetDeletionTimestamp() == nil && scenario.Status(d, "Available") == "True"
}

// isRemoved reports whether the provider of a Deployment is being, or was, deleted.
func isRemoved(now history.State, deployment string) bool {
	kind := "CoreProvider"
	if strings.HasPrefix(deployment, "capim-") {
		kind = "InfrastructureProvider"
	}
	declared := now.Of(kind)
	return len(declared) == 0 || declared[0].GetDeletionTimestamp() != nil
}

// fewSpecs checks that a Deployment is not changed more often than without faults.
func fewSpecs(r Run) []Violation {
	if !r.Scenario.Operator {
		return nil
	}
	return r.play(func(e history.Event, _ history.State) *Violation {
		if n := e.Object.GetGeneration(); e.Object.GetKind() == "Deployment" && e.Type != watch.Deleted && n > int64(r.Scenario.Limits.Specs) {
			return &Violation{
				Detail: fmt.Sprintf("Deployment %s has spec number %d, at most %d are required", e.Object.GetName(), n, r.Scenario.Limits.Specs),
			}
		}
		return nil
	})
}

// sameVersions checks that finally the inventory, the provider objects and the images have the same versions, and no journal is left.
func sameVersions(r Run) []Violation {
	if !r.Scenario.Operator {
		return nil
	}
	end := slices.Concat(r.Before, r.Timeline).End()
	var found []Violation
	for _, o := range end.Of("Secret") {
		if scenario.IsJournal(o) {
			found = append(found, Violation{Detail: "the journal " + o.GetName() + " is left"})
		}
	}
	versions := map[string]string{}
	for _, entry := range end.Of("Provider") {
		versions[entry.GetName()] = field(entry, "version")
	}
	for _, d := range end.Of("Deployment") {
		label := d.GetLabels()[clusterv1.ProviderNameLabel]
		containers, _, _ := unstructured.NestedSlice(d.Object, "spec", "template", "spec", "containers")
		for _, one := range containers {
			container, _ := one.(map[string]any)
			image, _, _ := unstructured.NestedString(container, "image")
			if !strings.HasSuffix(image, ":"+versions[label]) {
				found = append(found, Violation{
					Detail: fmt.Sprintf("Deployment %s has image %s, the inventory %s %q", d.GetName(), image, label, versions[label]),
				})
			}
		}
		delete(versions, label)
	}
	for label := range versions {
		found = append(found, Violation{Detail: fmt.Sprintf("the inventory has %s, which has no Deployment", label)})
	}
	return found
}
