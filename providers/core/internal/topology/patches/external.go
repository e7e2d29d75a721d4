package patches

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/variables"
)

// external is a patch that an extension serves.
type external struct {
	patch     *clusterv1.ClusterClassPatch
	extension Extension
}

func (x *external) apply(ctx context.Context, r *run) error {
	call, err := x.call(r, x.patch.External.GeneratePatchesExtension)
	if err != nil {
		return fmt.Errorf("patch %q: %w", x.patch.Name, err)
	}
	patches, err := x.extension.GeneratePatches(ctx, call)
	if err != nil {
		return fmt.Errorf("patch %q: generating patches with %q: %w", x.patch.Name, call.Handler, err)
	}
	templates, err := ApplyAll(ctx, call.Items, patches, AnswerBudget(call.Items))
	if failed, ok := errors.AsType[*PatchError](err); ok {
		return x.errorOf(r, call, patches, failed)
	}
	if err != nil {
		return fmt.Errorf("patch %q: %w", x.patch.Name, err)
	}
	for n, i := range r.items {
		if !slices.ContainsFunc(patches, func(p Patch) bool { return p.Item == n }) {
			continue
		}
		err := i.replace(templates[n])
		if err == nil {
			err = r.budget.SpendOn(i.root)
		}
		if err != nil {
			return fmt.Errorf("patch %q for %s: %w", x.patch.Name, i, err)
		}
	}
	return nil
}

func (x *external) errorOf(r *run, call Call, patches []Patch, failed *PatchError) error {
	item := patches[failed.Patch].Item
	if errors.Is(failed, errUnknownItem) {
		return fmt.Errorf("patch %q: %q returned a patch for a template that was not in the request", x.patch.Name, call.Handler)
	}
	return fmt.Errorf("patch %q for %s: patch %d of %q: %w", x.patch.Name, r.items[item], failed.Patch, call.Handler, failed.Err)
}

// replace replaces spec, labels and annotations with those of a patched template.
func (i *item) replace(template any) error {
	object, _ := template.(map[string]any)
	if _, ok := object["spec"]; !ok {
		return errors.New("the patched template has no spec")
	}
	i.root = changeable(object)
	return nil
}

func (x *external) check(ctx context.Context, r *run) error {
	call, err := x.call(r, x.patch.External.ValidateTopologyExtension)
	if err != nil {
		return fmt.Errorf("patch %q: %w", x.patch.Name, err)
	}
	if err := x.extension.ValidateTopology(ctx, call); err != nil {
		return fmt.Errorf("patch %q: validating the topology with %q: %w", x.patch.Name, call.Handler, err)
	}
	return nil
}

func (x *external) call(r *run, handler string) (Call, error) {
	call := Call{Handler: handler, Settings: x.patch.External.Settings, Cluster: r.cluster}
	var err error
	call.Variables, err = r.encode(r.cluster.Spec.Topology.Variables, variables.List{}, x.patch.Name, map[string]any{"cluster": r.builtin})
	if err != nil {
		return Call{}, err
	}
	for _, i := range r.items {
		object, err := json.Marshal(i.object())
		if err != nil {
			return Call{}, fmt.Errorf("%s: %w", i, err)
		}
		values, err := r.encode(i.overrides, i.list(), x.patch.Name, i.builtin)
		if err != nil {
			return Call{}, fmt.Errorf("%s: %w", i, err)
		}
		call.Items = append(call.Items, Item{Holder: i.holder, Object: object, Variables: values})
	}
	return call, nil
}

// encode returns the values of a list that are visible to a patch, and the builtin variable unless it is empty.
func (r *run) encode(
	values []clusterv1.ClusterVariable, list variables.List, from string, builtin map[string]any,
) ([]Variable, error) {
	var out []Variable
	for _, value := range r.visible(values, list, from) {
		out = append(out, Variable{Name: value.Name, Value: value.Value})
	}
	if len(builtin) == 0 {
		return out, nil
	}
	encoded, err := json.Marshal(builtin)
	if err != nil {
		return nil, fmt.Errorf("builtin variable: %w", err)
	}
	return append(out, Variable{Name: variables.Builtin, Value: apiextensionsv1.JSON{Raw: encoded}}), nil
}
