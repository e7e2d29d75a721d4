package create

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/clusterctl/clustertemplate"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/packages/retry"
)

const (
	fieldManager = client.FieldOwner(clustertemplate.FieldManager)
	// writeTimeout bounds the writes, which are not interrupted by signals.
	writeTimeout = 2 * time.Minute
)

// applier writes the objects of a cluster: all of them, or on a best-effort basis none.
type applier struct {
	IO      *iostreams.Streams
	client  client.Client
	backoff wait.Backoff
	// notified is set once the user has been notified about an unresponsive webhook.
	notified bool
}

// entry is an object to apply.
type entry struct {
	desired *unstructured.Unstructured
	// before is the resource version of the existing object, empty if there is none.
	before string
	// created is the object if this command created it.
	created *unstructured.Unstructured
}

// apply writes the objects, ClusterClasses and their templates first, and reports whether anything changed. If an object
// is rejected, the objects created before it are deleted.
func (a *applier) apply(ctx context.Context, objects []unstructured.Unstructured) (bool, error) {
	entries := ordered(objects)
	if err := a.check(ctx, entries); err != nil {
		return false, err
	}
	if err := checkReferences(ctx, a.client, objects); err != nil {
		return false, err
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	changed := false
	for _, e := range entries {
		written, err := a.write(ctx, e)
		if err != nil {
			return false, errors.Join(rejection(e.desired, err), a.undo(ctx, entries))
		}
		changed = changed || written
	}
	return changed, nil
}

// ordered sorts objects after those that they reference: Namespaces, templates, ClusterClasses, other objects, and
// Clusters last, so that controllers find everything when they start.
func ordered(objects []unstructured.Unstructured) []*entry {
	var entries []*entry
	for i := range objects {
		dropNulls(objects[i].Object)
		entries = append(entries, &entry{desired: &objects[i]})
	}
	slices.SortStableFunc(entries, func(a, b *entry) int { return cmp.Compare(rank(a.desired), rank(b.desired)) })
	return entries
}

// dropNulls removes null fields. Templates have them where all entries of a map are left out or commented out. The API
// server drops them on create, but rejects them on apply.
func dropNulls(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, field := range v {
			if field == nil {
				delete(v, key)
			}
			dropNulls(field)
		}
	case []any:
		for _, item := range v {
			dropNulls(item)
		}
	}
}

func rank(o *unstructured.Unstructured) int {
	switch kind := o.GetKind(); {
	case kind == "Namespace":
		return 0
	case strings.HasSuffix(kind, "Template"):
		return 1
	case kind == "ClusterClass":
		return 2
	case kind == "Cluster":
		return 4
	default:
		return 3
	}
}

// check validates the objects with a dry run. Objects that depend on others of the same set, such as a namespace, can
// only be validated when they are written.
func (a *applier) check(ctx context.Context, entries []*entry) error {
	namespaces := map[string]bool{}
	for _, e := range entries {
		if e.desired.GetKind() == "Namespace" {
			namespaces[e.desired.GetName()] = true
		}
		live, err := a.try(ctx, e.desired, client.DryRunAll)
		switch {
		case err == nil:
			e.before = live.GetResourceVersion()
		case namespaces[e.desired.GetNamespace()] && apierrors.IsNotFound(err):
		case apierrors.IsNotFound(err):
			return fmt.Errorf("namespace %[1]s of %[2]s does not exist: create it with `kubectl create namespace %[1]s`, "+
				"or choose another with --target-namespace: %[3]w", e.desired.GetNamespace(), manifest.Describe(e.desired), err)
		default:
			return rejection(e.desired, err)
		}
	}
	return nil
}

// write applies one object and prints the result.
func (a *applier) write(ctx context.Context, e *entry) (changed bool, err error) {
	after, err := a.try(ctx, e.desired)
	if err != nil {
		return false, err
	}
	name := manifest.Describe(e.desired)
	switch e.before {
	case "":
		e.created = after
		a.IO.Infof("%s created", name)
	case after.GetResourceVersion():
		a.IO.Infof("%s unchanged", name)
		return false, nil
	default:
		a.IO.Infof("%s changed", name)
	}
	return true, nil
}

// try applies an object, with retries, and returns the resulting object.
func (a *applier) try(
	ctx context.Context, desired *unstructured.Unstructured, options ...client.ApplyOption,
) (*unstructured.Unstructured, error) {
	var after *unstructured.Unstructured
	err := retry.Policy{Backoff: a.backoff}.Do(ctx, func(ctx context.Context) error {
		after = desired.DeepCopy()
		err := a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(after), append(options, fieldManager)...)
		if starting(err) && !a.notified {
			a.notified = true
			a.IO.Infof("Waiting for the webhook of %s: %v", manifest.Describe(desired), err)
		}
		return err
	})
	return after, err
}

// starting reports whether a webhook did not respond: its provider may just have been installed.
func starting(err error) bool {
	return apierrors.IsInternalError(err) && (strings.Contains(err.Error(), "failed calling webhook") ||
		strings.Contains(err.Error(), "conversion webhook for "))
}

// typed matches the start of the API server's errors about unknown fields and fields of the wrong type.
var typed = regexp.MustCompile(`failed to create typed patch object \([^)]*\): `)

// rejection explains why an object was rejected, and what to do.
func rejection(o *unstructured.Unstructured, err error) error {
	name := manifest.Describe(o)
	switch {
	case typed.MatchString(err.Error()):
		return fmt.Errorf("%s does not match the schema of its kind: %s: correct the template or its values",
			name, typed.ReplaceAllString(err.Error(), ""))
	case meta.IsNoMatchError(err):
		return fmt.Errorf("the management cluster does not have the kind of %s (%s): "+
			"install its provider with `clusterctl init`, or `clusterctl operator init` where the operator manages providers: %w",
			name, o.GetAPIVersion(), err)
	case apierrors.IsConflict(err):
		return fmt.Errorf("%s exists, and some of its fields are managed by other tools: change it with them, or leave it unchanged: %w",
			name, err)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsForbidden(err):
		return fmt.Errorf("the management cluster rejected %s: %w", name, err)
	case starting(err):
		return fmt.Errorf("cannot apply %s, because a provider's webhook does not respond: "+
			"check that all providers are available with `kubectl get deployments -A -l cluster.x-k8s.io/provider`: %w", name, err)
	default:
		return fmt.Errorf("cannot apply %s: %w", name, err)
	}
}

// checkExisting returns an error if the Cluster exists and was not created by this command, or is being deleted.
func checkExisting(ctx context.Context, c client.Reader, wanted *unstructured.Unstructured) error {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(wanted.GroupVersionKind())
	err := c.Get(ctx, client.ObjectKeyFromObject(wanted), live)
	name := manifest.Describe(wanted)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("cannot check whether %s already exists: %w", name, err)
	case live.GetDeletionTimestamp() != nil:
		return fmt.Errorf("%[1]s is being deleted: wait for the deletion with `clusterctl delete cluster %[2]s -n %[3]s`, or choose another name",
			name, wanted.GetName(), wanted.GetNamespace())
	case !clustertemplate.Applied(live):
		return fmt.Errorf("%s already exists and was not created by `clusterctl create cluster`: "+
			"choose another name, or change it with the tool that created it", name)
	default:
		return nil
	}
}

// undo deletes the created objects, in reverse order.
func (a *applier) undo(ctx context.Context, entries []*entry) error {
	var errs []error
	for _, e := range slices.Backward(entries) {
		if e.created == nil {
			continue
		}
		uid := e.created.GetUID()
		err := a.client.Delete(ctx, e.created, client.Preconditions(metav1.Preconditions{UID: &uid}))
		if client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("failed to delete %s, delete it manually: %w", manifest.Describe(e.created), err))
			continue
		}
		a.IO.Infof("%s rolled back", manifest.Describe(e.created))
	}
	return errors.Join(errs...)
}
