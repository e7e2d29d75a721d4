package host

import (
	"context"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// revisionAnnotation tells the ReplicaSets of Deployments from others. There is only one revision at a time.
const revisionAnnotation = "deployment.kubernetes.io/revision"

// publish writes the ReplicaSet of a Deployment's current template, and deletes those of earlier ones when their instances have stopped.
// It has no Pods: tools such as Helm 3 derive from it, and not from the Deployment, whether the Deployment is ready.
func (h *host) publish(ctx context.Context, d *appsv1.Deployment, seen observation) error {
	all := &appsv1.ReplicaSetList{}
	if err := h.client.List(ctx, all, client.InNamespace(d.Namespace)); err != nil {
		return fmt.Errorf("list the ReplicaSets of Deployment %s/%s: %w", d.Namespace, d.Name, err)
	}
	wanted := replicaSetOf(d)
	current := wanted.DeepCopy()
	found := false
	for i := range all.Items {
		set := &all.Items[i]
		switch {
		case !metav1.IsControlledBy(set, d):
		case set.Name == wanted.Name:
			current, found = set.DeepCopy(), true
		case !seen.old:
			if err := h.client.Delete(ctx, set); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("delete ReplicaSet %s/%s: %w", set.Namespace, set.Name, err)
			}
		}
	}
	if err := h.writeReplicaSet(ctx, current, wanted, found); err != nil {
		return err
	}
	before := current.DeepCopy()
	current.Status = replicaSetStatus(current, seen)
	if equality.Semantic.DeepEqual(before.Status, current.Status) {
		return nil
	}
	if err := h.client.Status().Update(ctx, current); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the status of ReplicaSet %s/%s: %w", current.Namespace, current.Name, err)
	}
	return nil
}

// writeReplicaSet creates a ReplicaSet that was not found, or updates its number of replicas.
func (h *host) writeReplicaSet(ctx context.Context, current, wanted *appsv1.ReplicaSet, found bool) error {
	key := client.ObjectKeyFromObject(wanted)
	if !found {
		err := h.client.Create(ctx, current)
		if apierrors.IsAlreadyExists(err) { // The cache does not have it yet.
			err = h.live.Get(ctx, key, current)
		}
		if err != nil {
			return fmt.Errorf("create ReplicaSet %s: %w", key, err)
		}
	}
	if ptr.Equal(current.Spec.Replicas, wanted.Spec.Replicas) {
		return nil
	}
	before := current.DeepCopy()
	current.Spec.Replicas = wanted.Spec.Replicas
	if err := h.client.Patch(ctx, current, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("scale ReplicaSet %s: %w", key, err)
	}
	return nil
}

// replicaSetOf returns the ReplicaSet of a Deployment's template, without status.
func replicaSetOf(d *appsv1.Deployment) *appsv1.ReplicaSet {
	hash := planHash(d)
	template := d.Spec.Template.DeepCopy()
	template.Labels = labeled(template.Labels, hash)
	selector := d.Spec.Selector.DeepCopy()
	selector.MatchLabels = labeled(selector.MatchLabels, hash)
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.Namespace, Name: d.Name + "-" + hash, Labels: template.Labels, Annotations: map[string]string{revisionAnnotation: "1"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To(ptr.Deref(d.Spec.Replicas, 1)), Selector: selector, Template: *template},
	}
}

// labeled returns labels with the hash of a template.
func labeled(labels map[string]string, hash string) map[string]string {
	out := map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: hash}
	maps.Copy(out, labels)
	return out
}

// replicaSetStatus is the status of the ReplicaSet of the current template.
func replicaSetStatus(set *appsv1.ReplicaSet, seen observation) appsv1.ReplicaSetStatus {
	status := appsv1.ReplicaSetStatus{ObservedGeneration: set.Generation}
	replicas := ptr.Deref(set.Spec.Replicas, 1)
	if seen.phase == phaseStarting || seen.phase == phaseReady || seen.phase == phaseFailed {
		status.Replicas, status.FullyLabeledReplicas = replicas, replicas
	}
	if seen.phase == phaseReady {
		status.ReadyReplicas, status.AvailableReplicas = replicas, replicas
	}
	return status
}
