package helm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/providers/operator/internal/providerobject"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// apply changes the declared objects that exist.
func (c *Controller) apply(ctx context.Context, m *corev1.ConfigMap) (step.Result, error) {
	var failed []error
	for _, key := range slices.Sorted(maps.Keys(m.Data)) {
		if err := c.applyOne(ctx, []byte(m.Data[key])); err != nil {
			failed = append(failed, fmt.Errorf("key %s of ConfigMap %s: %w", key, client.ObjectKeyFromObject(m), err))
		}
	}
	return step.Done(), errors.Join(failed...)
}

// applyOne changes an object if its declaration differs from the last one.
func (c *Controller) applyOne(ctx context.Context, text []byte) error {
	after := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict(text, &after.Object); err != nil {
		return fmt.Errorf("not YAML: %w", err)
	}
	live, err := empty(after)
	if err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(after)
	if err := c.Client.Get(ctx, key, live); err != nil {
		return client.IgnoreNotFound(err) // Helm creates it, as it is declared.
	}
	patch, err := change(live, after.Object["spec"])
	if err == nil && patch != nil {
		err = c.Client.Patch(ctx, live, client.RawPatch(types.MergePatchType, patch))
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("changing %s %s: %w", after.GetKind(), key, err)
	}
	return nil
}

// empty returns an empty object of the kind of a declaration.
func empty(o *unstructured.Unstructured) (providerobject.Object, error) {
	for _, k := range providerobject.Kinds() {
		if o.GetKind() == string(k.Type) && o.GroupVersionKind().Group == operatorv1.GroupVersion.Group {
			return k.New(), nil
		}
	}
	return nil, fmt.Errorf("%s of %s is not a kind of provider objects", o.GetKind(), o.GetAPIVersion())
}

// change returns the merge patch after which an object is as a spec declares it, nil if the declaration is the last one.
func change(live providerobject.Object, after any) ([]byte, error) {
	if after == nil {
		after = map[string]any{}
	}
	var before any
	annotation := live.GetAnnotations()[operatorv1.DeclaredSpecAnnotation]
	if annotation != "" {
		if err := json.Unmarshal([]byte(annotation), &before); err != nil {
			return nil, fmt.Errorf("its annotation %s: %w", operatorv1.DeclaredSpecAnnotation, err)
		}
	}
	declaration, err := json.Marshal(after)
	if err != nil {
		return nil, err
	}
	var normal any // with the types of numbers that before has
	if err := json.Unmarshal(declaration, &normal); err != nil || annotation != "" && equality.Semantic.DeepEqual(before, normal) {
		return nil, err
	}
	current, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live.GetSpec())
	if err != nil {
		return nil, err
	}
	document := func(spec any, annotation string) []byte {
		raw, _ := json.Marshal(map[string]any{ // It consists of what was decoded.
			"metadata": map[string]any{"annotations": map[string]any{operatorv1.DeclaredSpecAnnotation: annotation}}, "spec": spec,
		})
		return raw
	}
	if before == nil {
		before = map[string]any{}
	}
	return jsonmergepatch.CreateThreeWayJSONMergePatch(document(before, annotation), document(normal, string(declaration)),
		document(current, annotation))
}
