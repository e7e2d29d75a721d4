package reference

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Referrer is an object with references to provider objects, and conditions for them.
type Referrer interface {
	metav1.Object
	condition.Getter
}

// Delete deletes the referenced object and waits until it is gone. Condition t of the owner reports the
// progress. An object that is controlled by another object of the owner's kind, or is in no or another namespace, is not deleted.
func (f *Follower) Delete(
	ctx context.Context, ref *clusterv1.ContractVersionedObjectReference, owner Referrer, t clusterv1.ConditionType,
) (step.Result, error) {
	return f.DeleteOnce(ctx, ref, owner, t, func(context.Context) (step.Result, error) { return step.Done(), nil })
}

// DeleteOnce is Delete for an object that other objects depend on: it is only deleted after ready returned Done. ready is no longer
// called once the object is being deleted.
func (f *Follower) DeleteOnce(
	ctx context.Context,
	ref *clusterv1.ContractVersionedObjectReference, owner Referrer, t clusterv1.ConditionType,
	ready func(context.Context) (step.Result, error),
) (step.Result, error) {
	if !ref.IsDefined() {
		return step.Done(), nil
	}
	obj, err := f.Follow(ctx, ref, owner.GetNamespace())
	if err == nil && obj == nil {
		obj, err = f.confirm(ctx, ref, owner, t)
	}
	if gone, err := contract.KindGone(ctx, f.live(), err); err != nil {
		return failed(t, err), err
	} else if gone {
		return notInstalled(ctx, ref, owner, t), nil
	}
	if obj == nil || mayOwn(obj, owner.GetNamespace()) != nil || f.ofAnother(obj, owner) {
		return step.Done().WithConditions(condition.False(t, clusterv1.ConditionSeverityInfo, clusterv1.DeletedV1Beta1Reason, "")), nil
	}
	version, _ := f.Reader.Versions.Contract(ctx, obj.GroupVersionKind())
	wait := leaving(contract.Object{Unstructured: obj, Contract: version}, t)
	if obj.GetDeletionTimestamp().IsZero() {
		if result, err := ready(ctx); err != nil || result.Ends() {
			return wait.WithOutcome(result), err
		}
		if err := f.Client.Delete(ctx, obj, client.Preconditions{UID: ptr.To(obj.GetUID())}); client.IgnoreNotFound(err) != nil {
			err = fmt.Errorf("deleting %s %s/%s: %w", ref.Kind, obj.GetNamespace(), ref.Name, err)
			return failed(t, err), err
		}
	}
	return wait, nil
}

// live returns what decides that something does not exist.
func (f *Follower) live() client.Reader {
	if f.Live != nil {
		return f.Live
	}
	return f.Client
}

// notInstalled goes on without an object whose kind is not installed: there is nothing that could be deleted. What the provider created
// outside of the cluster may still exist, so an event says it once.
func notInstalled(
	ctx context.Context, ref *clusterv1.ContractVersionedObjectReference, owner Referrer, t clusterv1.ConditionType,
) step.Result {
	message := fmt.Sprintf("%s %s does not exist: its kind %s is not installed", ref.Kind, ref.Name, ref.GroupKind())
	if said := condition.Get(owner, t); said == nil || said.Message != message {
		step.Warning(ctx, KindNotInstalledReason, "The deletion goes on without %s %s: its kind %s is not installed. "+
			"What its provider created outside of this cluster may still exist", ref.Kind, ref.Name, ref.GroupKind())
	}
	return step.Done().WithConditions(condition.False(t, clusterv1.ConditionSeverityInfo, clusterv1.DeletedV1Beta1Reason, "%s", message))
}

// leaving waits until an object is gone, and mirrors its Ready condition meanwhile. Conditions that cannot be read must not prevent the
// deletion.
func leaving(obj contract.Object, t clusterv1.ConditionType) step.Result {
	conditions, _ := obj.Conditions()
	what := obj.GetKind() + " " + obj.GetName() + " to be deleted"
	fallback := condition.Fallback(false, clusterv1.DeletingV1Beta1Reason)
	fallback.Message = "Waiting for " + what
	return step.Wait(what).WithConditions(condition.Mirror(t, read(conditions), fallback))
}

// confirm reads an object that is not in the cache from the API server: a stale cache must not make the owner leave it
// behind. There are no further reads once the owner's condition reports that the object is deleted.
func (f *Follower) confirm(
	ctx context.Context, ref *clusterv1.ContractVersionedObjectReference, owner Referrer, t clusterv1.ConditionType,
) (*unstructured.Unstructured, error) {
	if said := condition.Get(owner, t); f.Live == nil || said != nil && said.Reason == clusterv1.DeletedV1Beta1Reason {
		return nil, nil
	}
	kind, err := f.Reader.Versions.Newest(ctx, ref.GroupKind())
	if err != nil {
		return nil, err
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(kind)
	err = f.Live.Get(ctx, client.ObjectKey{Namespace: owner.GetNamespace(), Name: ref.Name}, obj)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for %s %s/%s: %w", ref.Kind, owner.GetNamespace(), ref.Name, err)
	}
	return obj, nil
}

func (f *Follower) ofAnother(obj, owner metav1.Object) bool {
	controller := metav1.GetControllerOf(obj)
	return controller != nil && controller.Kind == f.Kind.Kind && controller.UID != owner.GetUID()
}
