package replace

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/packages/apply"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/packages/replace/merge"
	"sigs.k8s.io/cluster-api/sdk/failsafe"
)

const (
	// gonePoll and goneTimeout are for objects that are deleted in the background.
	gonePoll    = 100 * time.Millisecond
	goneTimeout = time.Minute
)

// form computes what to write; nil means nothing.
type form func(live, desired *unstructured.Unstructured) *unstructured.Unstructured

// refresh reads an object.
func (r *run) refresh(ctx context.Context, o *unstructured.Unstructured) error {
	live := manifest.Identity(o)
	err := r.Writer.Retry(ctx, func(ctx context.Context) error {
		err := r.Client.Get(ctx, client.ObjectKeyFromObject(o), live)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			live = nil
			return nil
		}
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("cannot read %s: %w", manifest.Describe(o), err)
	case live == nil:
		r.forget(o)
	default:
		r.set(live)
	}
	return nil
}

// write creates an object, or updates it to a form of the desired one. Objects that have it already are not written.
func (r *run) write(ctx context.Context, desired *unstructured.Unstructured, f form) error {
	err := r.Writer.Retry(ctx, func(ctx context.Context) error { return r.attempt(ctx, desired, f) })
	if err == nil {
		return nil
	}
	if desired.GetKind() == "Secret" {
		err = failsafe.Redacted(err)
	}
	return fmt.Errorf("cannot write %s: %w", manifest.Describe(desired), err)
}

func (r *run) attempt(ctx context.Context, desired *unstructured.Unstructured, f form) error {
	live := r.get(desired)
	if live == nil {
		created := merge.ForCreation(desired)
		err := r.Client.Create(ctx, created)
		if apierrors.IsAlreadyExists(err) {
			return cmp.Or(r.refresh(ctx, desired), err)
		}
		if err == nil {
			r.set(created)
		}
		return err
	}
	out := f(live, desired)
	if out == nil || merge.Same(live, out) {
		return nil
	}
	// The API version may be another than the one that live was read in.
	err := r.Client.Update(ctx, out)
	switch {
	case err == nil:
		r.set(out)
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return cmp.Or(r.refresh(ctx, desired), err)
	}
	return err
}

// roll replaces a Deployment without interruption, unless nothing changes.
func (r *run) roll(ctx context.Context, desired *unstructured.Unstructured) error {
	if live := r.get(desired); live != nil {
		// The API server sets defaults, which only it knows.
		final := merge.Final(live, desired)
		if err := r.Client.Update(ctx, final, client.DryRunAll); err == nil && merge.Same(live, final) {
			return nil
		}
	}
	return r.write(ctx, desired, merge.Rolling)
}

// recreate deletes an object and creates it again. Pods of a Deployment keep running: see removeOrphans.
func (r *run) recreate(ctx context.Context, desired *unstructured.Unstructured) error {
	live := r.get(desired)
	uid := live.GetUID()
	err := r.Writer.Retry(ctx, func(ctx context.Context) error {
		err := r.Client.Delete(ctx, live, client.PropagationPolicy(metav1.DeletePropagationOrphan), client.Preconditions{UID: &uid})
		return client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("cannot delete %s, to create it again with a change that Kubernetes does not allow: %w", manifest.Describe(live), err)
	}
	err = wait.PollUntilContextTimeout(ctx, gonePoll, goneTimeout, true, func(ctx context.Context) (bool, error) {
		found, gone := manifest.Identity(live), false
		err := r.Writer.Retry(ctx, func(ctx context.Context) error {
			err := r.Client.Get(ctx, client.ObjectKeyFromObject(live), found)
			gone = apierrors.IsNotFound(err)
			return client.IgnoreNotFound(err)
		})
		return err == nil && (gone || found.GetUID() != uid), err
	})
	if err != nil {
		return fmt.Errorf("%s is being deleted, but remains: see its finalizers: %w", manifest.Describe(live), err)
	}
	r.forget(live)
	f := merge.Final
	if desired.GetKind() == "Deployment" {
		f = merge.Rolling
	}
	return r.write(ctx, desired, f)
}

// removeOrphans deletes ReplicaSets that Deployments left when they were created again with another selector, and that no
// Deployment has adopted: their Pods have served until now.
func (r *run) removeOrphans(ctx context.Context, namespace string) error {
	var deployments []string
	for _, o := range r.all() {
		if o.GetKind() == "Deployment" {
			deployments = append(deployments, o.GetName())
		}
	}
	list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSetList"}}
	err := r.Writer.Retry(ctx, func(ctx context.Context) error { return r.Client.List(ctx, list, client.InNamespace(namespace)) })
	if err != nil {
		return fmt.Errorf("cannot list ReplicaSets in namespace %s: %w", namespace, err)
	}
	for i := range list.Items {
		o := &list.Items[i]
		if metav1.GetControllerOfNoCopy(o) != nil || o.Annotations[apply.RevisionAnnotation] == "" || !ofDeployment(o.Name, deployments) {
			continue
		}
		err := r.Writer.Retry(ctx, func(ctx context.Context) error {
			return client.IgnoreNotFound(r.Client.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationBackground)))
		})
		if err != nil {
			return fmt.Errorf("cannot delete ReplicaSet %s/%s of the previous version: %w", namespace, o.Name, err)
		}
	}
	return nil
}

// ofDeployment reports whether a ReplicaSet has the name of one of a Deployment, which is followed by a hash.
func ofDeployment(name string, deployments []string) bool {
	for _, d := range deployments {
		if hash, ok := strings.CutPrefix(name, d+"-"); ok && hash != "" && !strings.Contains(hash, "-") {
			return true
		}
	}
	return false
}

func compare(a, b manifest.Key) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name))
}
