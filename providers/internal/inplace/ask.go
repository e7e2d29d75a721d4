package inplace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/internal/extension"
)

// Objects are a Machine with its objects.
type Objects struct {
	Machine        *clusterv1.Machine
	Infrastructure *unstructured.Unstructured
	// Bootstrap is the bootstrap config; nil if the Machine has none.
	Bootstrap *unstructured.Unstructured
}

// Caller calls the extension of a hook. extension.Client implements it.
type Caller interface {
	// Handlers returns the names of the handlers of a hook for an object, from the cache.
	Handlers(ctx context.Context, hook runtimecatalog.Hook, forObject client.Object) ([]string, error)
	// CallOnly calls the only one.
	CallOnly(ctx context.Context, hook runtimecatalog.Hook, forObject client.Object,
		request runtimehooksv1.RequestObject, response runtimehooksv1.ResponseObject) error
}

// changedAlways are the fields of the spec of Machines that their owners, or the Machine controller, change without an extension.
func changedAlways() []string {
	return []string{"bootstrap", "infrastructureRef", "providerID", "minReadySeconds", "readinessGates", "deletion", "taints"}
}

// CanUpdate asks the extension whether it can change a Machine and its objects in place. obstacles are the fields that would still differ
// from the desired ones, such as "KubeadmConfig spec.files"; empty if it can. Without an extension for the hook, the error is
// extension.ErrNoHandler.
func CanUpdate(ctx context.Context, caller Caller, current, desired Objects) (obstacles []string, err error) {
	request, response := &runtimehooksv1.CanUpdateMachineRequest{}, &runtimehooksv1.CanUpdateMachineResponse{}
	if request.Current, err = sent(current); err != nil {
		return nil, err
	}
	if request.Desired, err = sent(desired); err != nil {
		return nil, err
	}
	if err := caller.CallOnly(ctx, runtimehooksv1.CanUpdateMachine, current.Machine, request, response); err != nil {
		return nil, err
	}
	var errs []error
	compare := func(kind string, from, to any, patch runtimehooksv1.Patch, except ...string) {
		left, err := differences(from, to, patch, except)
		if err != nil {
			errs = append(errs, fmt.Errorf("invalid patch of %s in the response to hook CanUpdateMachine: %w", kind, err))
		}
		for _, field := range left {
			obstacles = append(obstacles, kind+" spec."+field)
		}
	}
	compare("Machine", &request.Current.Machine, &request.Desired.Machine, response.MachinePatch, changedAlways()...)
	compare(current.Infrastructure.GetKind(), current.Infrastructure, desired.Infrastructure, response.InfrastructureMachinePatch)
	if current.Bootstrap != nil && desired.Bootstrap != nil {
		compare(current.Bootstrap.GetKind(), current.Bootstrap, desired.Bootstrap, response.BootstrapConfigPatch)
	}
	return obstacles, errors.Join(errs...)
}

// Request returns the request of the hook UpdateMachine.
func Request(desired Objects) (*runtimehooksv1.UpdateMachineRequest, error) {
	objects, err := sent(desired)
	return &runtimehooksv1.UpdateMachineRequest{Desired: runtimehooksv1.UpdateMachineRequestObjects(objects)}, err
}

// sent returns objects as requests contain them: without status and what only API servers and kubectl read.
func sent(o Objects) (runtimehooksv1.CanUpdateMachineRequestObjects, error) {
	out := runtimehooksv1.CanUpdateMachineRequestObjects{Machine: *o.Machine.DeepCopy()}
	out.Machine.SetGroupVersionKind(clusterv1.GroupVersion.WithKind(clusterv1.MachineKind))
	out.Machine.Status = clusterv1.MachineStatus{}
	reduce(&out.Machine)
	var err error
	if out.InfrastructureMachine, err = raw(o.Infrastructure); err != nil {
		return out, err
	}
	out.BootstrapConfig, err = raw(o.Bootstrap)
	return out, err
}

func reduce(obj client.Object) {
	obj.SetManagedFields(nil)
	annotations := maps.Clone(obj.GetAnnotations())
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	obj.SetAnnotations(annotations)
}

// differences returns the fields of the spec, sorted, that differ between from, patched, and to.
func differences(from, to any, patch runtimehooksv1.Patch, except []string) ([]string, error) {
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
	var got, want struct {
		Spec map[string]any `json:"spec"`
	}
	if err := json.Unmarshal(document, &got); err != nil {
		return nil, fmt.Errorf("after the patch: %w", err)
	}
	if err := json.Unmarshal(wanted, &want); err != nil {
		return nil, err
	}
	return differ(got.Spec, want.Spec, except), nil
}

// differ returns the names of the fields that differ, sorted.
func differ(got, want map[string]any, except []string) []string {
	fields := map[string]bool{}
	for _, spec := range []map[string]any{got, want} {
		for name := range spec {
			fields[name] = !slices.Contains(except, name) && !reflect.DeepEqual(got[name], want[name])
		}
	}
	maps.DeleteFunc(fields, func(_ string, differs bool) bool { return !differs })
	return slices.Sorted(maps.Keys(fields))
}

// maxCopied is how much the copy operations of a patch may add to a document, in bytes.
const maxCopied = 1 << 20

// patched applies the patch of a response.
func patched(document []byte, patch runtimehooksv1.Patch) ([]byte, error) {
	switch {
	case len(patch.Patch) == 0:
		return document, nil
	case patch.PatchType == runtimehooksv1.JSONPatchType:
		operations, err := jsonpatch.DecodePatch(patch.Patch)
		if err != nil {
			return nil, err
		}
		options := jsonpatch.NewApplyOptions()
		options.AccumulatedCopySizeLimit = maxCopied
		return operations.ApplyWithOptions(document, options)
	case patch.PatchType == runtimehooksv1.JSONMergePatchType:
		return jsonpatch.MergePatch(document, patch.Patch)
	default:
		return nil, fmt.Errorf("patchType is %q, but must be %s or %s",
			patch.PatchType, runtimehooksv1.JSONPatchType, runtimehooksv1.JSONMergePatchType)
	}
}

var _ Caller = (*extension.Client)(nil)
