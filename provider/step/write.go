package step

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/step/internal/conditionlist"
)

// Create creates an object under a derived name, and waits until the cache shows it, so that the next reconcile counts it. If
// there is an object of that name already, the error is stale (IsStale): the cache does not show it, or it is somebody else's.
func (o Outside) Create(ctx context.Context, obj client.Object) error {
	asked := o.Clock.Now()
	if err := o.Client.Create(ctx, obj); err != nil {
		return err
	}
	o.Recent.Created(obj, asked)
	AwaitVisible(ctx, o.Client, obj)
	return nil
}

// Patch writes what change does to metadata and spec of an object that is not the reconciled one, and nothing if that is
// nothing. What others wrote since it was read stays: a change of a list, which a merge patch replaces as a whole, is a
// conflict then (IsStale). With exact, so is any change. obj is as the API server has it afterwards.
func (o Outside) Patch(ctx context.Context, obj client.Object, exact bool, change func()) error {
	before, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T is no object", obj)
	}
	change()
	if equality.Semantic.DeepEqual(before, obj) {
		return nil
	}
	patch, err := metadataDifference(before, obj)
	if err != nil || len(patch) == 0 {
		return err
	}
	if exact || patch.holdsList() {
		patch.require(before.GetResourceVersion())
	}
	raw, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	asked := o.Clock.Now()
	if err := o.Client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, raw)); err != nil {
		return err
	}
	o.Recent.Wrote(obj, asked)
	return nil
}

// Delete deletes an object as it was read: if it was written since, that is a conflict (IsStale), because it may not be the one
// to delete any more. One that is gone is no error.
func (o Outside) Delete(ctx context.Context, obj client.Object) error {
	is := client.Preconditions{UID: ptr.To(obj.GetUID()), ResourceVersion: ptr.To(obj.GetResourceVersion())}
	return client.IgnoreNotFound(o.Client.Delete(ctx, obj, is))
}

// DeleteAny deletes an object whatever has been written to it since it was read. One that is gone, or has been replaced by
// another of its name, is no error.
func (o Outside) DeleteAny(ctx context.Context, obj client.Object) error {
	err := o.Client.Delete(ctx, obj, client.Preconditions{UID: ptr.To(obj.GetUID())})
	if apierrors.IsConflict(err) {
		return nil
	}
	return client.IgnoreNotFound(err)
}

// SetConditions sets conditions of an object that is not the reconciled one, and writes them if that changes anything. Others write
// conditions of the same list, so the write is tied to the version that it was computed from, and on a conflict what changed
// here is carried over to the live object. An object that is gone needs none.
func (o Outside) SetConditions(ctx context.Context, obj Object, conditions ...clusterv1.Condition) error {
	before := slices.Clone(obj.GetConditions())
	for _, c := range conditions {
		condition.Set(obj, c)
	}
	return o.SaveConditions(ctx, obj, before)
}

// SaveConditions is SetConditions for conditions that were set on obj already; before is what they were.
func (o Outside) SaveConditions(ctx context.Context, obj Object, before clusterv1.Conditions) error {
	if conditionlist.Same(before, obj.GetConditions()) {
		return nil
	}
	condition.Stamp(obj, before, o.Clock.Now())
	after := slices.Clone(obj.GetConditions())
	version, conditions := obj.GetResourceVersion(), after
	for attempt := 0; ; attempt++ {
		written, err := o.patchConditions(ctx, obj, version, conditions)
		if err == nil {
			if attempt == 0 {
				obj.SetResourceVersion(written)
			} // else obj is older than what was written to, and a deletion of it has to find that out
			return nil
		}
		if !apierrors.IsConflict(err) || attempt == statusAttempts {
			return client.IgnoreNotFound(err)
		}
		live, ok := obj.DeepCopyObject().(Object)
		if !ok {
			return err
		}
		if err := o.Live.Get(ctx, client.ObjectKeyFromObject(obj), live); err != nil {
			return client.IgnoreNotFound(err)
		}
		if live.GetUID() != obj.GetUID() {
			return nil
		}
		version, conditions = live.GetResourceVersion(), conditionlist.Merge(before, after, live.GetConditions())
		if conditionlist.Same(conditions, live.GetConditions()) {
			return nil
		}
	}
}

func (o Outside) patchConditions(ctx context.Context, obj Object, version string, conditions clusterv1.Conditions) (written string, err error) {
	raw, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": version},
		"status":   map[string]any{"conditions": conditions},
	})
	if err != nil {
		return "", err
	}
	answer, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		return "", fmt.Errorf("%T is no object", obj)
	}
	err = o.Client.Status().Patch(ctx, answer, client.RawPatch(types.MergePatchType, raw))
	return answer.GetResourceVersion(), err
}
