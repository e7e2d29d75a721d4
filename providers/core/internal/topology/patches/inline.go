package patches

import (
	"context"
	"fmt"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/gotemplate"
)

// inline is a compiled patch with definitions.
type inline struct {
	name        string
	enabledIf   *gotemplate.Template // nil if always enabled
	definitions []definition
}

type definition struct {
	selector clusterv1.PatchSelector
	changes  []change
}

// change is a compiled JSON patch.
type change struct {
	op    operation
	path  pointer
	value value // nil for remove
}

// String identifies the change in errors.
func (c *change) String() string { return string(c.op) + " " + c.path.String() }

func compileInline(p *gotemplate.Parser, patch *clusterv1.ClusterClassPatch) (*inline, error) {
	out := &inline{name: patch.Name}
	if patch.EnabledIf != "" {
		enabledIf, err := p.Parse(patch.EnabledIf)
		if err != nil {
			return nil, fmt.Errorf("enabledIf: %w", err)
		}
		out.enabledIf = enabledIf
	}
	for i := range patch.Definitions {
		source := &patch.Definitions[i]
		compiled := definition{selector: *source.Selector.DeepCopy()}
		for j := range source.JSONPatches {
			c, err := compileChange(p, &source.JSONPatches[j])
			if err != nil {
				return nil, fmt.Errorf("definition %d, jsonPatch %d: %w", i, j, err)
			}
			compiled.changes = append(compiled.changes, c)
		}
		out.definitions = append(out.definitions, compiled)
	}
	return out, nil
}

func compileChange(p *gotemplate.Parser, patch *clusterv1.JSONPatch) (change, error) {
	c := change{op: operation(patch.Op), path: parsePointer(patch.Path)}
	if !slices.Contains(operations, patch.Op) {
		return c, fmt.Errorf("op %q is not supported: it must be one of %v", patch.Op, operations)
	}
	if !isChangeable(patch.Path) {
		return c, fmt.Errorf("path %q is not below one of %s", patch.Path, strings.Join(prefixes, ", "))
	}
	if c.op == remove {
		return c, nil
	}
	var err error
	c.value, err = compileValue(p, patch)
	return c, err
}

func (p *inline) apply(_ context.Context, r *run) error {
	for _, i := range r.items {
		if err := p.applyTo(i, r); err != nil {
			return fmt.Errorf("patch %q for %s: %w", p.name, i, err)
		}
	}
	return nil
}

// applyTo applies the patch to one template. enabledIf is evaluated only for templates that the patch selects: it may use
// builtin variables that others do not have.
func (p *inline) applyTo(i *item, r *run) error {
	enabled := false
	for n := range p.definitions {
		d := &p.definitions[n]
		if !selects(&d.selector, i) {
			continue
		}
		values, err := r.inlineValues(i)
		if err != nil {
			return err
		}
		if !enabled {
			if enabled, err = p.enabled(values, r.budget); err != nil {
				return fmt.Errorf("enabledIf: %w", err)
			}
			if !enabled {
				return nil
			}
		}
		if err := d.apply(i.mutable(), values, r.budget); err != nil {
			return fmt.Errorf("definition %d, %w", n, err)
		}
	}
	return nil
}

// enabled parses what enabledIf renders as YAML, so that white space around it does not matter.
func (p *inline) enabled(values map[string]any, budget *gotemplate.Budget) (bool, error) {
	if p.enabledIf == nil {
		return true, nil
	}
	out, err := p.enabledIf.Execute(values, budget)
	if err != nil {
		return false, err
	}
	parsed, err := parseValue(out)
	return parsed == true, err
}

func (d *definition) apply(root, values map[string]any, budget *gotemplate.Budget) error {
	for n := range d.changes {
		c := &d.changes[n]
		if err := c.apply(root, values, budget); err != nil {
			return fmt.Errorf("jsonPatch %d (%s): %w", n, c, err)
		}
	}
	return nil
}

func (c *change) apply(root, values map[string]any, budget *gotemplate.Budget) error {
	var computed any
	if c.value != nil {
		var err error
		if computed, err = c.value.compute(values, budget); err != nil {
			return err
		}
	}
	_, err := applyAt(root, c.path, c.op, computed)
	return err
}
