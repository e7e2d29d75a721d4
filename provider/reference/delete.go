package reference

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/contract"
	"sigs.k8s.io/cluster-api/provider/step"
)

// Referrer is an object that refers to objects of providers, and says how they are.
type Referrer interface {
	metav1.Object
	condition.Getter
}

// Delete deletes the object that ref names and waits until it is gone; condition t of the owner says how far
// that is. An object that somebody else of the owner's kind controls is not the owner's to delete.
func (f *Follower) Delete(ctx context.Context, ref *corev1.ObjectReference, owner Referrer, t clusterv1.ConditionType) (step.Result, error) {
	return f.DeleteOnce(ctx, ref, owner, t, func(context.Context) (step.Result, error) { return step.Done(), nil })
}

// DeleteOnce is Delete for an object that others depend on: it is not deleted before ready returns Done. Ready is not asked
// again once the object is being deleted.
func (f *Follower) DeleteOnce(ctx context.Context, ref *corev1.ObjectReference, owner Referrer, t clusterv1.ConditionType, ready func(context.Context) (step.Result, error)) (step.Result, error) {
	if ref == nil {
		return step.Done(), nil
	}
	obj, err := f.Follow(ctx, ref, owner.GetNamespace())
	if err == nil && obj == nil {
		obj, err = f.confirm(ctx, ref, owner, t)
	}
	if err != nil {
		return step.Done(), err
	}
	if obj == nil || f.ofAnother(obj, owner) {
		return step.Done().WithConditions(condition.False(t, clusterv1.ConditionSeverityInfo, clusterv1.DeletedReason, "")), nil
	}
	wait, err := leaving(obj, t)
	if err != nil {
		return step.Done(), err
	}
	if obj.GetDeletionTimestamp().IsZero() {
		if result, err := ready(ctx); err != nil || result.Ends() {
			return wait.WithOutcome(result), err
		}
		if err := f.Client.Delete(ctx, obj, client.Preconditions{UID: ptr.To(obj.GetUID())}); client.IgnoreNotFound(err) != nil {
			return step.Done(), fmt.Errorf("deleting %s %s/%s: %w", ref.Kind, obj.GetNamespace(), ref.Name, err)
		}
	}
	return wait, nil
}

// leaving waits until an object is gone, and states what it says of itself meanwhile.
func leaving(obj *unstructured.Unstructured, t clusterv1.ConditionType) (step.Result, error) {
	conditions, err := contract.ObjectOf(obj).Conditions()
	if err != nil {
		return step.Done(), err
	}
	what := obj.GetKind() + " " + obj.GetName() + " to be deleted"
	fallback := condition.Fallback(false, clusterv1.DeletingReason)
	fallback.Message = "Waiting for " + what
	return step.Wait(what).WithConditions(condition.Mirror(t, read(conditions), fallback)), nil
}

// confirm asks the API server for an object that the cache does not have: it may not have it yet, and then the owner would
// leave it behind. Once the owner says that the object is deleted nobody is asked again.
func (f *Follower) confirm(ctx context.Context, ref *corev1.ObjectReference, owner Referrer, t clusterv1.ConditionType) (*unstructured.Unstructured, error) {
	if said := condition.Get(owner, t); f.Live == nil || said != nil && said.Reason == clusterv1.DeletedReason {
		return nil, nil
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(ref.GroupVersionKind())
	err := f.Live.Get(ctx, client.ObjectKey{Namespace: owner.GetNamespace(), Name: ref.Name}, obj)
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
