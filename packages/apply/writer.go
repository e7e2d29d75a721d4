package apply

import (
	"context"
	"encoding/json"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/packages/components"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/packages/retry"
	"sigs.k8s.io/cluster-api/packages/storageversion"
)

// parallelWrites is how many objects of one rank are written concurrently.
const parallelWrites = 8

// Writer creates objects, or merges them into those that exist.
type Writer struct {
	Client client.Client
	// Backoff is for retries of failed writes; see package retry.
	Backoff wait.Backoff
}

// Objects writes objects in the order of components.InstallOrder, those of the same rank concurrently.
func (w *Writer) Objects(ctx context.Context, objects []unstructured.Unstructured) error {
	ordered := components.InstallOrder(objects)
	for start := 0; start < len(ordered); {
		end := start + 1
		for end < len(ordered) && ordered[end].GetKind() == ordered[start].GetKind() {
			end++
		}
		group, groupCtx := errgroup.WithContext(ctx)
		group.SetLimit(parallelWrites)
		for i := start; i < end; i++ {
			group.Go(func() error { return w.Object(groupCtx, &ordered[i]) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
		start = end
	}
	return nil
}

// Object creates the object, or merges it into the existing one, unless that is being deleted: then it waits, and creates it again.
// Fields that it does not have are kept, lists are replaced. A
// CA bundle that a manager injected into the existing object is kept unless the object has its own. Nothing is written if
// nothing changes.
func (w *Writer) Object(ctx context.Context, o *unstructured.Unstructured) error {
	if err := w.Retry(ctx, func(ctx context.Context) error { return w.attempt(ctx, o) }); err != nil {
		return fmt.Errorf("cannot install %s: %w", manifest.Describe(o), err)
	}
	return nil
}

// Retry repeats a request that reads again, in every attempt, what it depends on.
func (w *Writer) Retry(ctx context.Context, request func(context.Context) error) error {
	return retry.Policy{Backoff: w.Backoff, Rereads: true}.Do(ctx, request)
}

func (w *Writer) attempt(ctx context.Context, o *unstructured.Unstructured) error {
	// A copy, because the client decodes the response into its argument.
	exists := w.Client.Create(ctx, o.DeepCopy())
	if !apierrors.IsAlreadyExists(exists) {
		return exists
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(o.GroupVersionKind())
	if err := w.Client.Get(ctx, client.ObjectKeyFromObject(o), live); err != nil {
		return err
	}
	if live.GetDeletionTimestamp() != nil { // For example the namespace of a provider that was just deleted.
		return fmt.Errorf("it is being deleted: %w", exists)
	}
	patch, err := mergePatch(live, o)
	if err != nil {
		return err
	}
	if same, err := changesNothing(live, patch); err != nil || same {
		return err
	}
	return w.Client.Patch(ctx, live, client.RawPatch(types.MergePatchType, patch))
}

// mergePatch returns what merges an object into the existing one.
func mergePatch(live, o *unstructured.Unstructured) ([]byte, error) {
	desired := o.DeepCopy()
	unstructured.RemoveNestedField(desired.Object, "status")
	if _, aggregated := desired.Object["aggregationRule"]; aggregated {
		// Its rules are those of other ClusterRoles, which the API server's controller manager writes.
		unstructured.RemoveNestedField(desired.Object, "rules")
	}
	keepCABundles(desired, live)
	storageversion.Keep(desired, live)
	return json.Marshal(desired.Object)
}

// Changes reports whether Writer.Object would change the content of the existing object: labels and annotations are none.
func Changes(live, o *unstructured.Unstructured) (bool, error) {
	desired := o.DeepCopy()
	desired.Object["metadata"] = map[string]any{"name": live.GetName()}
	patch, err := mergePatch(live, desired)
	if err != nil {
		return false, err
	}
	same, err := changesNothing(live, patch)
	return !same, err
}

func changesNothing(live *unstructured.Unstructured, patch []byte) (bool, error) {
	before, err := json.Marshal(live.Object)
	if err != nil {
		return false, err
	}
	after, err := jsonpatch.MergePatch(before, patch)
	if err != nil {
		return false, fmt.Errorf("cannot merge with the existing object: %w", err)
	}
	merged := &unstructured.Unstructured{}
	if err := merged.UnmarshalJSON(after); err != nil {
		return false, err
	}
	return equality.Semantic.DeepEqual(live.Object, merged.Object), nil
}

// keepCABundles copies the CA bundles of live into desired where desired has none: managers inject them at run time, and
// without them admission fails until the managers notice.
func keepCABundles(desired, live *unstructured.Unstructured) {
	switch desired.GetKind() {
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		configured := map[any]map[string]any{}
		for _, webhook := range nestedMaps(live.Object, "webhooks") {
			configured[webhook["name"]] = webhook
		}
		for _, webhook := range nestedMaps(desired.Object, "webhooks") {
			keepCABundle(webhook, configured[webhook["name"]], "clientConfig")
		}
	case manifest.KindCRD:
		keepCABundle(desired.Object, live.Object, "spec", "conversion", "webhook", "clientConfig")
	}
}

func keepCABundle(desired, live map[string]any, clientConfig ...string) {
	path := append(clientConfig, "caBundle") // The variadic slice is not used again.
	own, _, _ := unstructured.NestedString(desired, path...)
	// Manifests use a base64 line break as placeholder, because the field used to be required.
	if own != "" && own != "Cg==" {
		return
	}
	kept, _, _ := unstructured.NestedString(live, path...)
	if _, ok, _ := unstructured.NestedMap(desired, clientConfig...); ok && kept != "" {
		// Cannot fail: the parent is a map.
		_ = unstructured.SetNestedField(desired, kept, path...)
	}
}

func nestedMaps(object map[string]any, field string) []map[string]any {
	list, _ := object[field].([]any)
	var maps []map[string]any
	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			maps = append(maps, m)
		}
	}
	return maps
}
