package permission

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// migrationMark is the annotation of a definition whose objects are migrated.
const migrationMark = "crd-migration.cluster.x-k8s.io/observed-generation"

// definitions returns the definitions whose objects managers migrate: those with several versions.
func (w *world) definitions(ctx context.Context) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("apiextensions.k8s.io/v1")
	list.SetKind("CustomResourceDefinitionList")
	err := w.Client.List(ctx, list, client.HasLabels{clusterv1.ProviderNameLabel})
	return slices.DeleteFunc(list.Items, func(d unstructured.Unstructured) bool { return len(versions(d)) < 2 }), err
}

func versions(d unstructured.Unstructured) []any {
	all, _, _ := unstructured.NestedSlice(d.Object, "spec", "versions")
	return all
}

func storedVersions(d unstructured.Unstructured) []string {
	all, _, _ := unstructured.NestedStringSlice(d.Object, "status", "storedVersions")
	return all
}

// migrate makes objects of all definitions look as if they may be stored in another version, and waits until managers have migrated them.
func (w *world) migrate() {
	w.t.Helper()
	all, err := w.definitions(w.t.Context())
	if err != nil || len(all) == 0 {
		w.t.Fatalf("%d definitions have several versions, error %v", len(all), err)
	}
	for _, d := range all {
		first := versions(d)[0].(map[string]any)["name"]
		stored := fmt.Sprintf(`{"status":{"storedVersions":[%q,%q]}}`, first, storedVersions(d)[0])
		unmarked := fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, migrationMark)
		w.eventually("patching the definition "+d.GetName(), func(ctx context.Context) error {
			if err := w.Client.Status().Patch(ctx, &d, client.RawPatch(types.MergePatchType, []byte(stored))); err != nil {
				return err
			}
			return w.Client.Patch(ctx, &d, client.RawPatch(types.MergePatchType, []byte(unmarked)))
		})
	}
	w.eventually("migrating", func(ctx context.Context) error {
		all, err := w.definitions(ctx)
		for _, d := range all {
			if stored := storedVersions(d); len(stored) != 1 || d.GetAnnotations()[migrationMark] == "" {
				return fmt.Errorf("definition %s has stored versions %v and annotations %v", d.GetName(), stored, d.GetAnnotations())
			}
		}
		return err
	})
}
