package inplace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// SetObjects are a MachineSet with its templates.
type SetObjects struct {
	Set            *clusterv1.MachineSet
	Infrastructure *unstructured.Unstructured
	// Bootstrap is the template of bootstrap configs; nil if there is none.
	Bootstrap *unstructured.Unstructured
}

// CanUpdateSet asks the extension whether it can change the Machines of a MachineSet in place to those of another one. obstacles are the
// fields of spec.template.spec that would still differ from the desired ones, such as "KubeadmConfigTemplate files"; empty if it can. It is
// not asked if the kinds of the templates differ. Without an extension for the hook, the error is extension.ErrNoHandler.
func CanUpdateSet(ctx context.Context, caller Caller, current, desired SetObjects) (obstacles []string, err error) {
	if current.Infrastructure.GroupVersionKind().GroupKind() != desired.Infrastructure.GroupVersionKind().GroupKind() {
		return []string{"the kind of the infrastructure template"}, nil
	}
	if (current.Bootstrap == nil) != (desired.Bootstrap == nil) ||
		current.Bootstrap != nil && current.Bootstrap.GroupVersionKind().GroupKind() != desired.Bootstrap.GroupVersionKind().GroupKind() {
		return []string{"the kind of the bootstrap template"}, nil
	}
	request, response := &runtimehooksv1.CanUpdateMachineSetRequest{}, &runtimehooksv1.CanUpdateMachineSetResponse{}
	if request.Current, err = sentSet(current); err != nil {
		return nil, err
	}
	if request.Desired, err = sentSet(desired); err != nil {
		return nil, err
	}
	if err := caller.CallOnly(ctx, runtimehooksv1.CanUpdateMachineSet, current.Set, request, response); err != nil {
		return nil, err
	}
	var errs []error
	compare := func(kind string, from, to any, patch runtimehooksv1.Patch, except ...string) {
		left, err := templateDifferences(from, to, patch, except)
		if err != nil {
			errs = append(errs, fmt.Errorf("invalid patch of %s in the response to hook CanUpdateMachineSet: %w", kind, err))
		}
		for _, field := range left {
			obstacles = append(obstacles, kind+" spec.template.spec."+field)
		}
	}
	compare("MachineSet", &request.Current.MachineSet, &request.Desired.MachineSet, response.MachineSetPatch, changedAlways()...)
	compare(current.Infrastructure.GetKind(), current.Infrastructure, desired.Infrastructure, response.InfrastructureMachineTemplatePatch)
	if current.Bootstrap != nil {
		compare(current.Bootstrap.GetKind(), current.Bootstrap, desired.Bootstrap, response.BootstrapConfigTemplatePatch)
	}
	return obstacles, errors.Join(errs...)
}

// sentSet returns objects as requests contain them.
func sentSet(o SetObjects) (runtimehooksv1.CanUpdateMachineSetRequestObjects, error) {
	out := runtimehooksv1.CanUpdateMachineSetRequestObjects{MachineSet: *o.Set.DeepCopy()}
	out.MachineSet.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("MachineSet"))
	out.MachineSet.Status = clusterv1.MachineSetStatus{}
	reduce(&out.MachineSet)
	var err error
	if out.InfrastructureMachineTemplate, err = raw(o.Infrastructure); err != nil {
		return out, err
	}
	out.BootstrapConfigTemplate, err = raw(o.Bootstrap)
	return out, err
}

// raw returns an object of a provider as requests contain it: without status and what only API servers and kubectl read. It may be nil.
func raw(u *unstructured.Unstructured) (runtime.RawExtension, error) {
	if u == nil {
		return runtime.RawExtension{}, nil
	}
	reduced := u.DeepCopy()
	unstructured.RemoveNestedField(reduced.Object, "status")
	reduce(reduced)
	encoded, err := reduced.MarshalJSON()
	if err != nil {
		return runtime.RawExtension{}, fmt.Errorf("encoding %s %s: %w", reduced.GetKind(), reduced.GetName(), err)
	}
	return runtime.RawExtension{Raw: encoded}, nil
}

// templateDifferences returns the fields of spec.template.spec, sorted, that differ between from, patched, and to.
func templateDifferences(from, to any, patch runtimehooksv1.Patch, except []string) ([]string, error) {
	document, err := json.Marshal(from)
	if err != nil {
		return nil, err
	}
	if document, err = patched(document, patch); err != nil {
		return nil, err
	}
	wanted, err := json.Marshal(to)
	if err != nil {
		return nil, err
	}
	type template struct {
		Spec struct {
			Template map[string]any `json:"template"`
		} `json:"spec"`
	}
	var got, want template
	if err := json.Unmarshal(document, &got); err != nil {
		return nil, fmt.Errorf("after the patch: %w", err)
	}
	if err := json.Unmarshal(wanted, &want); err != nil {
		return nil, err
	}
	return differ(specOf(got.Spec.Template), specOf(want.Spec.Template), except), nil
}

// specOf returns the spec of a template; a template that has none has all its fields outside of one.
func specOf(template map[string]any) map[string]any {
	spec, ok := template["spec"].(map[string]any)
	if !ok {
		spec = maps.Clone(template)
		delete(spec, "metadata")
		delete(spec, "spec")
	}
	return spec
}
