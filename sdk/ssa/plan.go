package ssa

import (
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Diff is what an apply would change. The zero value means nothing.
type Diff struct {
	// Create means that the object does not exist; the other fields are then empty.
	Create bool
	// Spec are the changed fields outside metadata, such as ".spec.nodes[name=\"a\"].size", sorted. A list or map that
	// is replaced as a whole counts as one field.
	Spec []string
	// Metadata are the changed fields within metadata, sorted.
	Metadata []string
	// Ownership means that managedFields change, possibly without any other change.
	Ownership bool
}

// Changed reports whether an apply would change anything.
func (d Diff) Changed() bool {
	return d.Create || len(d.Spec) > 0 || len(d.Metadata) > 0 || d.Ownership
}

// SpecChanged reports whether an apply would change an existing object outside its metadata. An object whose spec is
// immutable must then be replaced by a new one.
func (d Diff) SpecChanged() bool { return len(d.Spec) > 0 }

// Option changes how an object is applied.
type Option func(*options)

type options struct {
	leaveZero  [][]string
	references [][]string
	exact      bool
}

// KeepReferences leaves the references at paths as they are in the live object if they have all that desired has. In v1beta1, they may
// have more, such as a uid, and an apply replaces them as a whole.
func KeepReferences(paths ...[]string) Option {
	return func(o *options) { o.references = append(o.references, paths...) }
}

// Exact makes any write since the object was read a conflict. It is for values
// that were computed from the live object.
func Exact() Option {
	return func(o *options) { o.exact = true }
}

// LeaveZero leaves the fields at paths to other clients as long as they are zero in desired: they are
// set when the object is created, and neither changed nor removed afterwards. Fields within lists are not supported.
func LeaveZero(paths ...[]string) Option {
	return func(o *options) { o.leaveZero = append(o.leaveZero, paths...) }
}

// plan returns what a server-side apply by the manager, with force, would change. The error reports why the objects cannot be compared.
func (c *comparison) plan() (Diff, error) {
	if c.live == nil {
		return Diff{Create: true}, nil
	}
	if same, err := c.unchanged(); same || err != nil {
		return Diff{}, err
	}
	return c.diff()
}

// comparison is a live object and what to apply to it.
type comparison struct {
	schema *kindSchema
	live   *unstructured.Unstructured // nil if the object does not exist
	config *unstructured.Unstructured
	// exact means that config must not be applied to an object newer than live.
	exact bool

	manager string
	// last is what the manager owns in live, at version lastVersion; empty if it has never applied.
	last        *fieldpath.Set
	lastVersion fieldpath.APIVersion

	before    *typed.TypedValue // of live
	beforeErr error             // why before is nil
	applied   *typed.TypedValue // of config
	owned     *fieldpath.Set    // what the manager will own
}

func newComparison(s *kindSchema, live, desired *unstructured.Unstructured, manager string, opts []Option) (*comparison, error) {
	if err := sameObject(s, live, desired); err != nil {
		return nil, err
	}
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	c := &comparison{schema: s, live: live, manager: manager, last: fieldpath.NewSet()}
	var err error
	if c.config, err = configuration(s, desired); err != nil {
		return nil, describe(desired, "cannot be applied", err)
	}
	if live != nil {
		if err := c.readLive(); err != nil {
			c.beforeErr = describe(live, "cannot be compared", err)
		}
		keepReferences(c.config, live, o.references)
		c.exact = leaveZero(c.config, o.leaveZero, c.last) || o.exact
	}
	if c.applied, err = s.mergeable.FromUnstructured(c.config.Object); err != nil {
		return nil, describe(desired, "does not fit its schema", err)
	}
	set, err := c.applied.ToFieldSet()
	if err != nil {
		return nil, describe(desired, "does not fit its schema", err)
	}
	c.owned = set.Difference(s.unowned)
	return c, nil
}

func (c *comparison) readLive() error {
	for _, e := range entries(c.live) {
		if !e.isApply(c.manager) {
			continue
		}
		set, err := e.set()
		if err != nil {
			return err
		}
		c.last, c.lastVersion = set, e.apiVersion
	}
	var err error
	c.before, err = c.schema.mergeable.FromUnstructured(compared(c.schema, c.live), typed.AllowDuplicates)
	return err
}

// unchanged reports whether an apply would do nothing. It does not compute the differences, because it is called most often
// and must be cheap.
func (c *comparison) unchanged() (bool, error) {
	if c.beforeErr != nil {
		return false, c.beforeErr
	}
	if c.ownershipChanges() {
		return false, nil
	}
	merged, err := c.before.Merge(c.applied)
	if err != nil {
		return false, describe(c.live, "cannot be compared", err)
	}
	if value.Equals(c.before.AsValue(), merged.AsValue()) {
		return true, nil
	}
	// The difference may vanish in the API server: for example, a default within a list that is replaced as a whole.
	diff, err := c.diff()
	return err == nil && !diff.Changed(), err
}

// ownershipChanges reports whether the manager's fields change so that it matters. Owning fields besides other managers, with the same
// values, does not: they stay when the manager no longer applies them, with its ownership or without. That holds for what an object has
// from another version of its manager, which applied less, so that taking it over is not a write. A manager that has never applied owns
// what it applies, for removing it later.
func (c *comparison) ownershipChanges() bool {
	if hasEmptied(c.live, c.manager) || !c.owned.Empty() && string(c.lastVersion) != c.config.GetAPIVersion() {
		return true
	}
	if c.owned.Equals(c.last) {
		return false
	}
	return c.last.Empty() || !c.last.Difference(c.owned).Empty() || !c.ownedByOthers(c.owned.Difference(c.last))
}

// ownedByOthers reports whether other managers own all fields of a set.
func (c *comparison) ownedByOthers(fields *fieldpath.Set) bool {
	for _, e := range entries(c.live) {
		if e.isApply(c.manager) || e.subresource != "" {
			continue
		}
		set, err := e.set()
		if err != nil {
			return false
		}
		fields = fields.Difference(set)
	}
	return fields.Empty()
}

// merged merges like Apply. It returns the object, without managedFields, and the owners of its fields.
func (c *comparison) merged(before fieldpath.ManagedFields) (content map[string]any, after fieldpath.ManagedFields, err error) {
	result, err := c.merge(before)
	if err != nil {
		return nil, nil, err
	}
	c.complete(result.content)
	return result.content, result.owners, nil
}

// applyTo merges config like the API server, without defaults.
func (c *comparison) applyTo(
	before *typed.TypedValue, managers fieldpath.ManagedFields,
) (content map[string]any, after fieldpath.ManagedFields, err error) {
	updater := merge.UpdaterBuilder{Converter: oneVersion{}, ReturnInputOnNoop: true}
	result, after, err := updater.BuildUpdater().Apply(
		before, c.applied, fieldpath.APIVersion(c.config.GetAPIVersion()), managers.Copy(), c.self(), true)
	if err != nil {
		return nil, nil, describe(c.live, "cannot be compared", err)
	}
	content, ok := result.AsValue().Unstructured().(map[string]any)
	if !ok {
		return nil, nil, describe(c.live, "cannot be compared", fmt.Errorf("merging results in a %T", result.AsValue().Unstructured()))
	}
	return runtime.DeepCopyJSON(content), after, nil
}

// complete drops nulls and adds defaults.
func (c *comparison) complete(content map[string]any) {
	defaulting.PruneNonNullableNullsWithoutDefaults(content, c.schema.structural)
	defaulting.Default(content, c.schema.structural)
}

// diff computes the differences like the API server.
func (c *comparison) diff() (Diff, error) {
	before, err := c.managers()
	if err != nil {
		return Diff{}, describe(c.live, "cannot be compared", err)
	}
	content, after, err := c.merged(before)
	if err != nil {
		return Diff{}, err
	}
	result, err := c.schema.mergeable.FromUnstructured(content, typed.AllowDuplicates)
	if err != nil {
		return Diff{}, describe(c.live, "cannot be compared", err)
	}
	changes, err := c.before.Compare(result)
	if err != nil {
		return Diff{}, describe(c.live, "cannot be compared", err)
	}
	diff := Diff{Ownership: c.ownershipChanges() || !othersEqual(before, after, c.self())}
	for name, same := range equalParts(compared(c.schema, c.live), content) {
		switch {
		case same:
		case name == "metadata":
			diff.Metadata = paths(changes, name)
		default:
			diff.Spec = append(diff.Spec, paths(changes, name)...)
		}
	}
	slices.Sort(diff.Spec)
	return diff, nil
}

// managers returns the owners of the fields of live.
func (c *comparison) managers() (fieldpath.ManagedFields, error) {
	all := fieldpath.ManagedFields{}
	for _, e := range entries(c.live) {
		set, err := e.set()
		if err != nil {
			return nil, err
		}
		all[e.key()] = fieldpath.NewVersionedSet(set, e.apiVersion, e.operation == "Apply")
	}
	return all, nil
}

func (c *comparison) self() string { return entry{manager: c.manager, operation: "Apply"}.key() }

// othersEqual reports whether all field managers other than self own the same fields before and after.
func othersEqual(before, after fieldpath.ManagedFields, self string) bool {
	for _, pair := range [][2]fieldpath.ManagedFields{{before, after}, {after, before}} {
		for name, set := range pair[0] {
			other, ok := pair[1][name]
			if name != self && (!ok || !set.Set().Equals(other.Set())) {
				return false
			}
		}
	}
	return true
}

// equalParts returns, for each top-level field, whether it is equal in before and after.
func equalParts(before, after map[string]any) map[string]bool {
	equal := map[string]bool{}
	for _, fields := range []map[string]any{before, after} {
		for name := range fields {
			equal[name] = value.Equals(value.NewValueInterface(before[name]), value.NewValueInterface(after[name]))
		}
	}
	return equal
}

// paths returns the changed fields within a top-level field, sorted. If only the order of a list changed, there are none,
// and the result is the top-level field.
func paths(changes *typed.Comparison, name string) []string {
	var changed []string
	changes.Added.Union(changes.Modified).Union(changes.Removed).Leaves().Iterate(func(path fieldpath.Path) {
		if first := path[0].FieldName; first != nil && *first == name {
			changed = append(changed, path.String())
		}
	})
	if len(changed) == 0 {
		changed = []string{"." + name}
	}
	slices.Sort(changed)
	return changed
}

// oneVersion does not convert between versions. Entries of managedFields in other versions
// count for the fields of the same name; only the API server can convert.
type oneVersion struct{}

// Convert implements merge.Converter.
func (oneVersion) Convert(object *typed.TypedValue, _ fieldpath.APIVersion) (*typed.TypedValue, error) {
	return object, nil
}

// IsMissingVersionError implements merge.Converter.
func (oneVersion) IsMissingVersionError(error) bool { return false }

func sameObject(s *kindSchema, live, desired *unstructured.Unstructured) error {
	if kind := desired.GroupVersionKind(); kind != s.kind {
		return describe(desired, "cannot be applied", fmt.Errorf("it is a %s, but the schema is for %s", kind, s.kind))
	}
	if live == nil {
		return nil
	}
	if kind := live.GroupVersionKind(); kind != s.kind {
		return describe(live, "cannot be compared",
			fmt.Errorf("it was read as %s, but must be applied as %s: read it in that version", kind, s.kind))
	}
	if live.GetName() != desired.GetName() || live.GetNamespace() != desired.GetNamespace() {
		return describe(live, "cannot be compared", fmt.Errorf("the object to apply is %s/%s", desired.GetNamespace(), desired.GetName()))
	}
	return nil
}

func describe(u *unstructured.Unstructured, problem string, err error) error {
	return fmt.Errorf("%s %s/%s %s: %w", u.GetKind(), u.GetNamespace(), u.GetName(), problem, err)
}
