package ssa

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// A server-side apply cannot empty a map or list: if the field manager owns all items of a map, applying {} removes them, and what
// remains is null, which most schemas reject. Such an object therefore gets its new content by a patch, all at once, so that no other
// controller acts on a part of the change. The patch has a field manager of its own; the apply that follows changes no content, but
// makes the Applier's manager the owner of the fields. Then the entry of the patch is removed from managedFields: as a second owner, it
// would keep fields that are no longer applied. If that is interrupted, the next apply removes it.

// emptier returns the field manager of patches that empty maps and lists for a manager.
func emptier(manager string) string { return manager + "-emptied" }

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

// empties returns the content that the apply results in, without defaults, if it cannot be reached by an apply alone, and otherwise nil.
// It is nil, too, if the objects cannot be compared: the API server decides then.
func (c *comparison) empties() map[string]any {
	if c.live == nil || c.beforeErr != nil {
		return nil
	}
	managers, err := c.managers()
	if err != nil {
		return nil
	}
	result, err := c.merge(managers)
	if err != nil || result.emptied == nil {
		return nil
	}
	return result.content
}

// empty writes the content that the apply results in, if the apply would make a map or a list null, and makes the result the live
// object. Any write since the object was read is a conflict.
func (a *Applier) empty(ctx context.Context, c *comparison) error {
	content := c.empties()
	if content == nil {
		return nil
	}
	patch, err := c.replacement(content, emptier(a.manager))
	if err != nil {
		return err
	}
	target := c.live.DeepCopy()
	if err := a.client.Patch(ctx, target, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(emptier(a.manager))); err != nil {
		return err
	}
	c.live = target
	return nil
}

// operation is an operation of a JSON patch, which, unlike a merge patch, can write nulls.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// replacement returns the patch that replaces the content of live. It has an entry of managedFields for the manager, even if it only
// removes fields: without any entry, the apply would have the API server invent an owner of all fields.
func (c *comparison) replacement(content map[string]any, manager string) ([]byte, error) {
	at := func(name string) string { return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }
	own := map[string]any{}
	operations := []operation{{"replace", "/metadata/resourceVersion", c.live.GetResourceVersion()}}
	for name := range c.live.Object {
		if _, stays := content[name]; !stays && c.isContent(name) {
			operations = append(operations, operation{"remove", at(name), nil})
		}
	}
	for name, value := range content {
		if c.isContent(name) {
			operations = append(operations, operation{"add", at(name), value}) // It replaces what exists.
			own["f:"+name] = map[string]any{}
		}
	}
	fields, err := json.Marshal(own)
	if err != nil {
		return nil, err
	}
	entries := append(withoutManager(c.live, manager), metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: c.live.GetAPIVersion(),
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(fields)),
	})
	return json.Marshal(append(operations, operation{"add", "/metadata/managedFields", entries}))
}

// isContent reports whether a top-level field is part of what an apply changes, apart from metadata.
func (c *comparison) isContent(name string) bool {
	return name != "apiVersion" && name != "kind" && name != "metadata" && (name != "status" || !c.schema.statusApart)
}

// disown removes the entry of a patch that emptied something. Any write since the object was applied is a conflict.
func (a *Applier) disown(ctx context.Context, applied *unstructured.Unstructured) error {
	if !hasEmptied(applied, a.manager) {
		return nil
	}
	before := applied.DeepCopy()
	applied.SetManagedFields(withoutManager(applied, emptier(a.manager)))
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return a.client.Patch(ctx, applied, patch, client.FieldOwner(a.manager))
}

// withoutManager returns the managedFields of an object, without the entries of a manager.
func withoutManager(u *unstructured.Unstructured, manager string) []metav1.ManagedFieldsEntry {
	return slices.DeleteFunc(u.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == manager })
}

// hasEmptied reports whether an object has an entry of a patch that emptied something.
func hasEmptied(u *unstructured.Unstructured, manager string) bool {
	return slices.ContainsFunc(entries(u), func(e entry) bool { return e.manager == emptier(manager) })
}
