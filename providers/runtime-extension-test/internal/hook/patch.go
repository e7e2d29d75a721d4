package hook

import (
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	runtimehooksv1 "sigs.k8s.io/cluster-api/exp/runtime/hooks/api/v1alpha1"
	"sigs.k8s.io/cluster-api/exp/runtime/topologymutation"
	"sigs.k8s.io/cluster-api/providers/runtime-extension-test/internal/answer"
)

// operation is an operation of a JSON patch.
type operation struct {
	Op    string                `json:"op"`
	Path  string                `json:"path"`
	Value *apiextensionsv1.JSON `json:"value,omitempty"`
}

// patches returns the JSON patches for the templates of a request. Operations whose variable has no value are left out.
func patches(
	definitions []answer.Patch, request *runtimehooksv1.GeneratePatchesRequest,
) ([]runtimehooksv1.GeneratePatchesResponseItem, error) {
	out := []runtimehooksv1.GeneratePatchesResponseItem{}
	global := topologymutation.ToMap(request.Variables)
	for i := range request.Items {
		item := &request.Items[i]
		operations, err := operationsFor(definitions, item, global)
		if err != nil {
			return nil, err
		}
		if len(operations) == 0 {
			continue
		}
		patch, err := json.Marshal(operations)
		if err != nil {
			return nil, fmt.Errorf("cannot encode a patch: %w", err)
		}
		out = append(out, runtimehooksv1.GeneratePatchesResponseItem{UID: item.UID, PatchType: runtimehooksv1.JSONPatchType, Patch: patch})
	}
	return out, nil
}

func operationsFor(
	definitions []answer.Patch, item *runtimehooksv1.GeneratePatchesRequestItem, global map[string]apiextensionsv1.JSON,
) ([]operation, error) {
	var template metav1.TypeMeta
	if err := json.Unmarshal(item.Object.Raw, &template); err != nil {
		return nil, fmt.Errorf("cannot decode the template for %s of %s %s: %w",
			item.HolderReference.FieldPath, item.HolderReference.Kind, item.HolderReference.Name, err)
	}
	variables, err := topologymutation.MergeVariableMaps(global, topologymutation.ToMap(item.Variables))
	if err != nil {
		return nil, err
	}
	var out []operation
	for _, d := range definitions {
		if d.Kind != template.Kind {
			continue
		}
		for i := range d.JSONPatches {
			o, err := newOperation(&d.JSONPatches[i], variables)
			if topologymutation.IsNotFoundError(err) {
				continue
			}
			if err != nil {
				return nil, err
			}
			out = append(out, o)
		}
	}
	return out, nil
}

func newOperation(p *clusterv1beta1.JSONPatch, variables map[string]apiextensionsv1.JSON) (operation, error) {
	o := operation{Op: p.Op, Path: p.Path, Value: p.Value}
	if p.ValueFrom != nil {
		var err error
		if o.Value, err = topologymutation.GetVariable(variables, *p.ValueFrom.Variable); err != nil {
			return o, err
		}
	}
	return o, nil
}
