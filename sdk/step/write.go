package step

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/apiversion"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// Create creates an object under a derived name, and waits until it is in the cache, so that the next reconcile finds it. If an
// object of that name exists, the error is stale (IsStale): the cache does not have it yet, or it belongs to another owner.
func (c Clients) Create(ctx context.Context, obj client.Object) error {
	return c.CreateIn(ctx, c.Client, obj)
}

// CreateIn is Create for objects that are not read from Client's cache, such as Secrets and ConfigMaps in our managers: for them,
// waiting with Client would be a request. It waits until the object is in the given cache. If that is nil, it does not wait: for
// objects that are always read from the API server, or whose controller handles a stale cache itself.
func (c Clients) CreateIn(ctx context.Context, cache client.Reader, obj client.Object) error {
	requested := c.Clock.Now()
	if err := c.Client.Create(ctx, obj); err != nil {
		return err
	}
	c.Recent.Created(obj, requested)
	if cache != nil {
		AwaitVisible(ctx, cache, obj)
	}
	return nil
}

// WriteOption changes what a write requires of the object.
type WriteOption int

// IfUnchanged makes any concurrent change of the object a conflict (IsStale): for changes that depend on the rest of the object.
const IfUnchanged WriteOption = 1

// Patch writes the changes that change makes to the metadata and spec of an object other than the reconciled one; without
// changes, it sends nothing. Concurrent changes by other clients are kept, except with IfUnchanged: if a list changes, which a merge
// patch replaces as a whole, they are a conflict (IsStale). Afterwards, obj is up to date.
func (c Clients) Patch(ctx context.Context, obj client.Object, change func(), opts ...WriteOption) error {
	before, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T is not an object", obj)
	}
	change()
	if equality.Semantic.DeepEqual(before, obj) {
		return nil
	}
	patch, err := metadataDifference(before, obj)
	if err != nil || len(patch) == 0 {
		return err
	}
	if patch.holdsList() || slices.Contains(opts, IfUnchanged) {
		patch.require(before.GetResourceVersion())
	}
	raw, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	requested := c.Clock.Now()
	if err := c.Client.Patch(ctx, obj, apiversion.Merge(before, raw)); err != nil {
		return err
	}
	c.Recent.Wrote(obj, requested)
	return nil
}

// Delete deletes an object as it was read. If it was written since, this is a conflict (IsStale), because the reason to delete it
// may no longer hold. A missing object is not an error.
func (c Clients) Delete(ctx context.Context, obj client.Object) error {
	is := client.Preconditions{UID: ptr.To(obj.GetUID()), ResourceVersion: ptr.To(obj.GetResourceVersion())}
	return client.IgnoreNotFound(c.Client.Delete(ctx, obj, is))
}

// DeleteAny deletes an object, even if it was written since it was read. An object that is missing, or was replaced by another
// one of its name, is not an error.
func (c Clients) DeleteAny(ctx context.Context, obj client.Object) error {
	err := c.Client.Delete(ctx, obj, client.Preconditions{UID: ptr.To(obj.GetUID())})
	if apierrors.IsConflict(err) {
		return nil
	}
	return client.IgnoreNotFound(err)
}

// SetConditions sets conditions of an object other than the reconciled one, and writes them if they changed. Because all
// conditions are one list to a merge patch, the write requires the resource version that was read; after a conflict, the changes
// are merged into the live object. A missing object is not an error.
func (c Clients) SetConditions(ctx context.Context, obj Object, conditions ...clusterv1.Condition) error {
	return c.SetReports(ctx, obj, conditions)
}

// SetReports is SetConditions with metav1 conditions, which are written in the same patch.
func (c Clients) SetReports(ctx context.Context, obj Object, conditions []clusterv1.Condition, reports ...metav1.Condition) error {
	before := AsRead(obj)
	for _, c := range conditions {
		condition.Set(obj, c)
	}
	report.Set(reportsOf(obj), obj.GetGeneration(), c.Clock.Now(), reports...)
	return c.SaveConditions(ctx, obj, before)
}

// ConditionsAsRead are the conditions of an object before they are changed, in both forms.
type ConditionsAsRead struct {
	conditions clusterv1.Conditions
	reports    []metav1.Condition
}

// AsRead returns the conditions that an object has.
func AsRead(obj client.Object) ConditionsAsRead {
	return ConditionsAsRead{slices.Clone(conditionsOf(obj).GetV1Beta1Conditions()), slices.Clone(reportsOf(obj).GetConditions())}
}

// same reports whether conditions are equal, apart from transition times.
func (a ConditionsAsRead) same(b ConditionsAsRead) bool {
	return sameConditions(a.conditions, b.conditions) && slices.EqualFunc(a.reports, b.reports, report.Same)
}

// SaveConditions is SetConditions for conditions that are already set on obj; before is what they were. With IfUnchanged, any change of
// the object since it was read is a conflict (IsStale), and obj has the new resource version afterwards.
func (c Clients) SaveConditions(ctx context.Context, obj Object, before ConditionsAsRead, opts ...WriteOption) error {
	if before.same(AsRead(obj)) {
		return nil
	}
	condition.Stamp(obj, before.conditions, c.Clock.Now())
	after := AsRead(obj)
	base, ok := obj.DeepCopyObject().(Object)
	if !ok {
		return fmt.Errorf("%T is not an object", obj)
	}
	base.SetV1Beta1Conditions(before.conditions)
	reportsOf(base).SetConditions(before.reports)
	write := after
	for attempt := 0; ; attempt++ {
		written, err := c.patchConditions(ctx, base, write)
		if err == nil {
			if attempt == 0 {
				obj.SetResourceVersion(written)
			} // Otherwise obj is older than the object that was written, and a deletion with Delete must detect that.
			return nil
		}
		if slices.Contains(opts, IfUnchanged) {
			return err
		}
		if !apierrors.IsConflict(err) || attempt == statusAttempts {
			return client.IgnoreNotFound(err)
		}
		live, ok := obj.DeepCopyObject().(Object)
		if !ok {
			return err
		}
		if err := c.Live.Get(ctx, client.ObjectKeyFromObject(obj), live); err != nil {
			return client.IgnoreNotFound(err)
		}
		if live.GetUID() != obj.GetUID() {
			return nil
		}
		base = live
		write = ConditionsAsRead{
			mergeConditions(before.conditions, after.conditions, live.GetV1Beta1Conditions()),
			report.Merge(before.reports, after.reports, reportsOf(live).GetConditions()),
		}
		if write.same(AsRead(live)) {
			return nil
		}
	}
}

// patchConditions writes the conditions of an object that differ, if it is still as in base.
func (c Clients) patchConditions(ctx context.Context, base Object, write ConditionsAsRead) (written string, err error) {
	status, is := map[string]any{}, AsRead(base)
	_, hasReports := base.(report.Setter)
	switch {
	case sameConditions(is.conditions, write.conditions):
	case hasReports:
		status["deprecated"] = map[string]any{"v1beta1": map[string]any{"conditions": write.conditions}}
	default:
		status["conditions"] = write.conditions
	}
	if hasReports && !slices.EqualFunc(is.reports, write.reports, report.Same) {
		status["conditions"] = write.reports
	}
	raw, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": base.GetResourceVersion()}, "status": status,
	})
	if err != nil {
		return "", err
	}
	response, ok := base.DeepCopyObject().(client.Object)
	if !ok {
		return "", fmt.Errorf("%T is not an object", base)
	}
	err = c.Client.Status().Patch(ctx, response, apiversion.Merge(base, raw))
	return response.GetResourceVersion(), err
}
