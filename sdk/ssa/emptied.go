package ssa

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// A server-side apply cannot empty a map or list: if the field manager owns all items of a map, applying {} removes them, and what
// remains is null, which most schemas reject. So before such an apply, a patch removes the items. It adds no owner of any field,
// and leaves {}, which the apply then keeps and owns.

// emptiedAtOnce limits how many levels of maps that contain each other are emptied.
const emptiedAtOnce = 100

// emptying is what must be written before the apply.
type emptying struct {
	// content has the emptied maps and lists.
	content map[string]any
	// typed and managers are content, and the owners of its fields.
	typed    *typed.TypedValue
	managers fieldpath.ManagedFields
}

// merging is what an apply results in, without defaults.
type merging struct {
	// emptied is nil if the apply leaves no null where the live object has a map or a list.
	emptied *emptying
	content map[string]any
	owners  fieldpath.ManagedFields
}

// merge merges config into the live object, whose fields have the given owners.
func (c *comparison) merge(owners fieldpath.ManagedFields) (merging, error) {
	now := emptying{content: compared(c.schema, c.live), typed: c.before, managers: owners}
	var written *emptying
	for range emptiedAtOnce {
		content, after, err := c.applyTo(now.typed, now.managers)
		if err != nil {
			return merging{}, err
		}
		fields := maps.Clone(now.content)
		delete(fields, "metadata") // The API server drops its nulls.
		emptied, changed := emptiedFields(fields, content, c.config.Object, c.schema.structural)
		if !changed {
			return merging{emptied: written, content: content, owners: after}, nil
		}
		emptied["metadata"] = now.content["metadata"]
		if now, err = c.updated(now, emptied); err != nil {
			return merging{}, describe(c.live, "cannot be compared", err)
		}
		written = &now
	}
	return merging{}, describe(c.live, "cannot be compared", fmt.Errorf("more than %d maps within each other become empty", emptiedAtOnce))
}

// updated returns what the API server makes of an update to content.
func (c *comparison) updated(now emptying, content map[string]any) (emptying, error) {
	next, err := c.schema.mergeable.FromUnstructured(content, typed.AllowDuplicates)
	if err != nil {
		return emptying{}, err
	}
	updater := merge.UpdaterBuilder{Converter: oneVersion{}}
	version := fieldpath.APIVersion(c.config.GetAPIVersion())
	_, managers, err := updater.BuildUpdater().Update(now.typed, next, version, now.managers.Copy(), c.manager)
	return emptying{content: content, typed: next, managers: managers}, err
}

// emptied returns before with the maps and lists empty that are null in after, but not in config, or missing in after although they are
// empty in config.
func emptied(before, after, config any, s *schema.Structural) (result any, changed bool) {
	switch before := before.(type) {
	case map[string]any:
		after, _ := after.(map[string]any)
		config, _ := config.(map[string]any)
		return emptiedFields(before, after, config, s)
	case []any:
		after, _ := after.([]any)
		config, _ := config.([]any)
		return emptiedItems(before, after, config, s)
	}
	return before, false
}

func emptiedFields(before, after, config map[string]any, s *schema.Structural) (result map[string]any, changed bool) {
	out := before
	for name, value := range before {
		left, stays := after[name]
		wanted, applied := config[name]
		if !stays && !isEmpty(wanted) {
			continue
		}
		var replacement any
		if left == nil && (!applied || wanted != nil) {
			replacement = emptyLike(value)
		} else if again, inside := emptied(value, left, wanted, child(s, name)); inside {
			replacement = again
		}
		if replacement == nil {
			continue
		}
		if !changed {
			out, changed = maps.Clone(before), true
		}
		out[name] = replacement
	}
	return out, changed
}

// emptiedItems looks into the items of lists that are merged by keys. Other lists are replaced as a whole.
func emptiedItems(before, after, config []any, s *schema.Structural) (result any, changed bool) {
	if s == nil || s.XListType == nil || *s.XListType != "map" {
		return before, false
	}
	out := before
	for i, item := range before {
		again, inside := emptied(item, sameItem(after, item, s), sameItem(config, item, s), s.Items)
		if !inside {
			continue
		}
		if !changed {
			out, changed = slices.Clone(before), true
		}
		out[i] = again
	}
	return out, changed
}

// sameItem returns the item of a list with the same keys as item, nil if there is none.
func sameItem(list []any, item any, s *schema.Structural) any {
	for _, candidate := range list {
		same := true
		for _, key := range s.XListMapKeys {
			same = same && reflect.DeepEqual(keyOf(candidate, key, s), keyOf(item, key, s))
		}
		if same {
			return candidate
		}
	}
	return nil
}

func keyOf(item any, key string, s *schema.Structural) any {
	fields, _ := item.(map[string]any)
	if value, ok := fields[key]; ok {
		return value
	}
	if property := child(s.Items, key); property != nil {
		return property.Default.Object
	}
	return nil
}

// emptyLike returns an empty map or list like value, nil for scalars and for what is empty.
func emptyLike(value any) any {
	if isEmpty(value) {
		return nil
	}
	switch value.(type) {
	case map[string]any:
		return map[string]any{}
	case []any:
		return []any{}
	}
	return nil
}

// isEmpty reports whether value is a map or a list without items.
func isEmpty(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return false
}

// empties returns what must be written before the apply, nil if nothing must or if the objects cannot be compared: the API server
// decides then.
func (c *comparison) empties() *emptying {
	if c.live == nil || c.beforeErr != nil {
		return nil
	}
	managers, err := c.managers()
	if err != nil {
		return nil
	}
	result, err := c.merge(managers)
	if err != nil {
		return nil
	}
	return result.emptied
}

// empty writes the emptied maps and lists, if there are any, and makes the result the live object. Any write since the object was
// read is a conflict.
func (a *Applier) empty(ctx context.Context, c *comparison) error {
	emptied := c.empties()
	if emptied == nil {
		return nil
	}
	target := c.live.DeepCopy()
	for name, value := range emptied.content {
		if name != "metadata" {
			target.Object[name] = runtime.DeepCopyJSONValue(value)
		}
	}
	patch := client.MergeFromWithOptions(c.live, client.MergeFromWithOptimisticLock{})
	if err := a.client.Patch(ctx, target, patch, client.FieldOwner(a.manager)); err != nil {
		return err
	}
	c.live = target
	return nil
}
