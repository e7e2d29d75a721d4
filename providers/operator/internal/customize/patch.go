package customize

import (
	"encoding/json"
	"errors"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
)

// patch applies the patches of the spec. A patch that applies to no object is an error: it would otherwise be ignored silently.
func patch(objects []unstructured.Unstructured, spec *operatorv1.ProviderSpec) ([]unstructured.Unstructured, error) {
	for i, text := range spec.ManifestPatches {
		if err := mergePatch(objects, text); err != nil {
			return nil, fmt.Errorf("spec.manifestPatches[%d]: %w", i, err)
		}
	}
	for i, p := range spec.Patches {
		if err := targeted(objects, p); err != nil {
			return nil, fmt.Errorf("spec.patches[%d]: %w", i, err)
		}
	}
	return objects, nil
}

// mergePatch applies a merge patch to the objects with its kind and, if it has them, its apiVersion, name and namespace.
func mergePatch(objects []unstructured.Unstructured, text string) error {
	content, raw, err := parsePatch(text)
	if err != nil {
		return err
	}
	selects, err := selectorOf(content)
	if err != nil {
		return err
	}
	return each(objects, selects, func(document []byte, _ *unstructured.Unstructured) ([]byte, error) {
		return jsonpatch.MergePatch(document, raw)
	})
}

// parsePatch returns the content of a patch that is an object, and the patch in JSON.
func parsePatch(text string) (map[string]any, []byte, error) {
	raw, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, nil, fmt.Errorf("the patch must be YAML: %w", err)
	}
	content := map[string]any{}
	if err := json.Unmarshal(raw, &content); err != nil {
		return nil, nil, fmt.Errorf("the patch must be an object: %w", err)
	}
	return content, raw, nil
}

func selectorOf(content map[string]any) (func(*unstructured.Unstructured) bool, error) {
	p := &unstructured.Unstructured{Object: content}
	if p.GetKind() == "" {
		return nil, errors.New("the patch must have the kind of its object")
	}
	return func(o *unstructured.Unstructured) bool {
		return o.GetKind() == p.GetKind() && isOrEmpty(p.GetAPIVersion(), o.GetAPIVersion()) &&
			isOrEmpty(p.GetName(), o.GetName()) && isOrEmpty(p.GetNamespace(), o.GetNamespace())
	}, nil
}

func isOrEmpty(wanted, is string) bool { return wanted == "" || wanted == is }

// targeted applies a strategic merge patch or a JSON patch.
func targeted(objects []unstructured.Unstructured, p *operatorv1.Patch) error {
	if p == nil {
		return errors.New("the patch must not be null")
	}
	raw, err := yaml.YAMLToJSONStrict([]byte(p.Patch))
	if err != nil {
		return fmt.Errorf("the patch must be YAML: %w", err)
	}
	if operations, err := jsonpatch.DecodePatch(raw); err == nil {
		if p.Target == nil {
			return errors.New("a JSON patch must have a target")
		}
		selects, err := targetOf(p.Target)
		if err != nil {
			return err
		}
		return each(objects, selects, func(document []byte, _ *unstructured.Unstructured) ([]byte, error) { return operations.Apply(document) })
	}
	content, raw, err := parsePatch(p.Patch)
	if err != nil {
		return fmt.Errorf("%w, or a list of operations", err)
	}
	selects, err := targetOf(p.Target)
	if p.Target == nil {
		selects, err = selectorOf(content)
	}
	if err != nil {
		return err
	}
	return each(objects, selects, func(document []byte, o *unstructured.Unstructured) ([]byte, error) {
		return strategic(document, raw, o)
	})
}

// strategic applies a strategic merge patch to a kind of Kubernetes, and a merge patch to others, whose lists have no keys.
func strategic(document, raw []byte, o *unstructured.Unstructured) ([]byte, error) {
	typed, err := scheme.Scheme.New(o.GroupVersionKind())
	if runtime.IsNotRegisteredError(err) {
		return jsonpatch.MergePatch(document, raw)
	}
	if err != nil {
		return nil, err
	}
	return strategicpatch.StrategicMergePatch(document, raw, typed)
}

func targetOf(t *operatorv1.PatchSelector) (func(*unstructured.Unstructured) bool, error) {
	if t == nil {
		return nil, nil
	}
	selector, err := labels.Parse(t.LabelSelector)
	if err != nil {
		return nil, fmt.Errorf("target.labelSelector: %w", err)
	}
	return func(o *unstructured.Unstructured) bool {
		kind := o.GroupVersionKind()
		return isOrEmpty(t.Group, kind.Group) && isOrEmpty(t.Version, kind.Version) && isOrEmpty(t.Kind, kind.Kind) &&
			isOrEmpty(t.Name, o.GetName()) && isOrEmpty(t.Namespace, o.GetNamespace()) && selector.Matches(labels.Set(o.GetLabels()))
	}, nil
}

// each applies a change to the selected objects, of which there must be one.
func each(
	objects []unstructured.Unstructured,
	selects func(*unstructured.Unstructured) bool, change func([]byte, *unstructured.Unstructured) ([]byte, error),
) error {
	found := false
	for i := range objects {
		o := &objects[i]
		if !selects(o) {
			continue
		}
		found = true
		document, err := o.MarshalJSON()
		if err != nil {
			return err
		}
		out, err := change(document, o)
		if err != nil {
			return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
		patched := &unstructured.Unstructured{}
		if err := patched.UnmarshalJSON(out); err != nil {
			return fmt.Errorf("%s %s: the result is invalid: %w", o.GetKind(), o.GetName(), err)
		}
		if patched.GroupVersionKind() != o.GroupVersionKind() || patched.GetName() != o.GetName() || patched.GetNamespace() != o.GetNamespace() {
			return fmt.Errorf("%s %s: kind, name and namespace cannot be changed", o.GetKind(), o.GetName())
		}
		objects[i] = *patched
	}
	if !found {
		return errors.New("it applies to none of the provider's objects: check kind, name, namespace and target")
	}
	return nil
}
