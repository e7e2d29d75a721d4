package workload

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// updaters are the field managers of objects that were created or patched instead of applied: by v1.7, and by Once.
func updaters() sets.Set[string] { return sets.New("cluster-api-controller-manager", FieldManager) }

// apply applies an object server-side. If it was written by an updater before, its fields are taken over, so that those that are no
// longer in the manifest are removed.
func (s *Session) apply(ctx context.Context, o *unstructured.Unstructured) error {
	applied, err := s.send(ctx, o)
	if unmergeable(err) {
		return s.merge(ctx, o)
	}
	if err != nil || !updated(applied) {
		return err
	}
	return s.takeOver(ctx, o, applied)
}

func (s *Session) send(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	request := o.DeepCopy()
	request.SetManagedFields(nil)
	request.SetResourceVersion("")
	err := s.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(request), client.FieldOwner(FieldManager), client.ForceOwnership)
	return request, err
}

// unmergeable reports whether an object does not conform to the schema of its kind so that it cannot be applied, for example because it
// has unknown fields. Such an object can still be created and patched, without these fields.
func unmergeable(err error) bool {
	return err != nil && strings.Contains(err.Error(), "failed to create typed patch object")
}

// merge creates an object or merges it into the existing one, as v1.7 does with all objects.
func (s *Session) merge(ctx context.Context, o *unstructured.Unstructured) error {
	raw, err := json.Marshal(o.Object)
	if err != nil {
		return err
	}
	err = s.client.Create(ctx, o.DeepCopy(), client.FieldOwner(FieldManager))
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	return s.client.Patch(ctx, o, client.RawPatch(types.MergePatchType, raw), client.FieldOwner(FieldManager))
}

// updated reports whether updaters own fields of an object.
func updated(o *unstructured.Unstructured) bool {
	managers := updaters()
	return slices.ContainsFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Operation == metav1.ManagedFieldsOperationUpdate && e.Subresource == "" && managers.Has(e.Manager)
	})
}

// takeOver makes the fields of updaters those of FieldManager, and applies the object again. Updaters also own defaults, some of which
// cannot be removed, such as the selector of a Job. Then the field managers are restored: the object is as the manifest states it, and
// fields that left the manifest remain, as with v1.7.
func (s *Session) takeOver(ctx context.Context, o, applied *unstructured.Unstructured) error {
	before := applied.GetManagedFields()
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(applied, updaters(), FieldManager)
	if err != nil || len(patch) == 0 {
		return err
	}
	if err := s.client.Patch(ctx, applied, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return err
	}
	if _, err = s.send(ctx, o); !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
		return err
	}
	restore, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": before},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": applied.GetResourceVersion()},
	})
	if err != nil {
		return err
	}
	return s.client.Patch(ctx, applied, client.RawPatch(types.JSONPatchType, restore))
}
