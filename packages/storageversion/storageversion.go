// Package storageversion migrates stored objects to the storage version of their CustomResourceDefinition, so that versions
// that are no longer served can be removed from it.
package storageversion

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/sdk/migration"
)

// parallelWrites is how many objects are saved concurrently.
const parallelWrites = 8

// Migration is what has to be done before a CustomResourceDefinition can be replaced.
type Migration struct {
	// Definition is the name of the CustomResourceDefinition.
	Definition string
	// Kind is its kind in the storage version.
	Kind schema.GroupVersionKind
	// Outdated are the versions in which objects may be stored, and that the new definition does not serve.
	Outdated []string
	// Retry repeats a request that may succeed later; nil means that it is made once.
	Retry func(ctx context.Context, do func(context.Context) error) error
}

// Plan returns the migration that has to precede the replacement of a CustomResourceDefinition, or nil if there is none. It
// returns an error if live cannot be replaced by desired, whatever is migrated.
func Plan(live, desired *unstructured.Unstructured) (*Migration, error) {
	have, want := versionsOf(live), versionsOf(desired)
	storage := storageVersion(have)
	if len(have) == 0 || storage == "" {
		return nil, nil // It was never accepted by the API server: there are no objects.
	}
	if !slices.ContainsFunc(want, func(v version) bool { return v.name == storage }) {
		return nil, fmt.Errorf("CustomResourceDefinition %s stores objects in version %s, which the new one does not have: "+
			"first upgrade the provider to a version whose CustomResourceDefinition has both %s and %s",
			live.GetName(), storage, storage, strings.Join(names(want), ", "))
	}
	if a, b := scopeOf(live), scopeOf(desired); a != b {
		return nil, fmt.Errorf("CustomResourceDefinition %s has scope %s, and the new one %s, which Kubernetes does not allow: "+
			"choose another version of the provider", live.GetName(), a, b)
	}
	var outdated []string
	for _, stored := range Stored(live) {
		if !serves(want, stored) && stored != storage {
			outdated = append(outdated, stored)
		}
	}
	if len(outdated) == 0 {
		return nil, nil
	}
	group, _, _ := unstructured.NestedString(live.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(live.Object, "spec", "names", "kind")
	stored := schema.GroupVersionKind{Group: group, Version: storage, Kind: kind}
	return &Migration{Definition: live.GetName(), Kind: stored, Outdated: outdated}, nil
}

// Stored returns the versions in which objects may be stored.
func Stored(crd *unstructured.Unstructured) []string {
	stored, _, _ := unstructured.NestedStringSlice(crd.Object, "status", "storedVersions")
	return stored
}

// Missing returns the versions in which objects of live may be stored, and that other does not have.
func Missing(live, other *unstructured.Unstructured) []string {
	have := names(versionsOf(other))
	return slices.DeleteFunc(Stored(live), func(v string) bool { return slices.Contains(have, v) })
}

// Run saves all objects again, and then records that they are stored in the storage version only. report, which may be nil,
// is called with the number of saved objects, once per page. It can be run again after an interruption.
func (m *Migration) Run(ctx context.Context, c client.Client, report func(saved int)) error {
	pass := migration.Pass{
		Kind: m.Kind, Parallel: parallelWrites, Failures: 1, Retry: m.Retry, Report: report,
		Patch: func(*metav1.PartialObjectMetadata) ([]byte, error) { return migration.Unchanged(), nil },
	}
	if err := pass.Run(ctx, c, c, &migration.Visited{}); err != nil {
		return err
	}
	return m.record(ctx, c)
}

func (m *Migration) record(ctx context.Context, c client.Client) error {
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind(manifest.KindCRD)
	crd.SetName(m.Definition)
	patch := fmt.Sprintf(`{"status":{"storedVersions":[%q]}}`, m.Kind.Version)
	err := m.retry(ctx, func(ctx context.Context) error {
		return c.Status().Patch(ctx, crd, client.RawPatch(types.MergePatchType, []byte(patch)))
	})
	if err != nil {
		return fmt.Errorf("cannot set status.storedVersions of CustomResourceDefinition %s: %w", m.Definition, err)
	}
	return nil
}

func (m *Migration) retry(ctx context.Context, do func(context.Context) error) error {
	if m.Retry == nil {
		return do(ctx)
	}
	return m.Retry(ctx, do)
}

type version struct {
	name            string
	served, storage bool
}

func versionsOf(crd *unstructured.Unstructured) []version {
	list, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	var versions []version
	for _, item := range list {
		if v, ok := item.(map[string]any); ok {
			name, _ := v["name"].(string)
			versions = append(versions, version{name, v["served"] == true, v["storage"] == true})
		}
	}
	return versions
}

func storageVersion(versions []version) string {
	for _, v := range versions {
		if v.storage {
			return v.name
		}
	}
	return ""
}

func serves(versions []version, name string) bool {
	return slices.ContainsFunc(versions, func(v version) bool { return v.name == name && v.served })
}

func names(versions []version) []string {
	var list []string
	for _, v := range versions {
		list = append(list, v.name)
	}
	return list
}

func scopeOf(crd *unstructured.Unstructured) string {
	scope, _, _ := unstructured.NestedString(crd.Object, "spec", "scope")
	return scope
}
