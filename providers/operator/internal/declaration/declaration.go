// Package declaration changes provider objects as ConfigMaps with the label operator.cluster.x-k8s.io/declarations declare them. The Helm
// chart writes one: a hook of Helm can create an object when the webhooks run, but cannot change it later.
//
// An object is changed when its declaration changes, and only in the fields that are or were declared: what users changed in between
// stays. Creating and deleting objects does not belong here.
package declaration

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
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
	"sigs.k8s.io/yaml"

	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/providers/operator/internal/declared"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Controller reconciles ConfigMaps with declarations.
type Controller struct{ step.Outside }

// Setup adds the controller to a manager. Only ConfigMaps in the operator's own namespace count: who may write there is an administrator of
// the management cluster.
func Setup(mgr ctrl.Manager, namespace string) error {
	c := &Controller{step.OutsideOf(mgr, "declaration-controller", "")}
	// The manager's own cache has the metadata of other ConfigMaps.
	own, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultNamespaces:    map[string]cache.Config{namespace: {}},
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{operatorv1.DeclarationsLabel: ""}),
	})
	if err != nil {
		return fmt.Errorf("creating a cache of ConfigMaps: %w", err)
	}
	if err := mgr.Add(own); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).Named("declaration").
		WatchesRawSource(source.Kind(own, &corev1.ConfigMap{}, &handler.TypedEnqueueRequestForObject[*corev1.ConfigMap]{})).
		Complete(c)
}

// Reconcile changes the declared objects that exist.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	m := &corev1.ConfigMap{}
	if err := c.Client.Get(ctx, request.NamespacedName, m); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var failed []error
	for _, key := range slices.Sorted(maps.Keys(m.Data)) {
		if err := c.apply(ctx, []byte(m.Data[key])); err != nil {
			failed = append(failed, fmt.Errorf("key %s of ConfigMap %s: %w", key, request, err))
		}
	}
	err := errors.Join(failed...)
	if err != nil {
		c.Recorder.Event(m, corev1.EventTypeWarning, "NotDeclared", err.Error())
	}
	return ctrl.Result{}, err
}

// apply changes an object if its declaration differs from the last one.
func (c *Controller) apply(ctx context.Context, text []byte) error {
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
		return client.IgnoreNotFound(err) // Who creates it declares it as it is.
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
func empty(o *unstructured.Unstructured) (declared.Object, error) {
	for _, k := range declared.Kinds() {
		if o.GetKind() == string(k.Type) && o.GroupVersionKind().Group == operatorv1.GroupVersion.Group {
			return k.New(), nil
		}
	}
	return nil, fmt.Errorf("%s of %s is not a kind of provider objects", o.GetKind(), o.GetAPIVersion())
}

// change returns the merge patch after which an object is as a spec declares it, nil if the declaration is the last one.
func change(live declared.Object, after any) ([]byte, error) {
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
	return jsonmergepatch.CreateThreeWayJSONMergePatch(document(before, annotation), document(normal, string(declaration)), document(current, annotation))
}
