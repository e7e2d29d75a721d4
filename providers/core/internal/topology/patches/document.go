package patches

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"sigs.k8s.io/cluster-api/providers/internal/gotemplate"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

const (
	// answerWork is the budget of the patches that an extension returns for one Cluster, a second at most, in addition to
	// perTemplateByte for each byte of the templates.
	answerWork, perTemplateByte = 64 << 20, 16
	// perOperation is charged for each operation, and perByte for each byte that is decoded.
	perOperation, perByte = 64, 4
)

// AnswerBudget returns the budget for the patches of one answer.
func AnswerBudget(items []Item) *gotemplate.Budget {
	units := int64(answerWork)
	for i := range items {
		units += perTemplateByte * int64(len(items[i].Object))
	}
	return gotemplate.NewBudget(units)
}

// PatchError is the error of one patch.
type PatchError struct {
	// Patch is its index.
	Patch int
	Err   error
}

// Error implements error.
func (e *PatchError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *PatchError) Unwrap() error { return e.Err }

// ApplyAll applies patches, each to the template of its item, and returns the patched templates; those without patches are nil. Each
// template is decoded once. Work is deducted from the budget, because extensions determine the number and size of patches. An error is
// that of the context, or a *PatchError.
func ApplyAll(ctx context.Context, items []Item, all []Patch, budget *gotemplate.Budget) ([]any, error) {
	documents := make([]*document, len(items))
	for n := range all {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := applyOne(documents, items, &all[n], budget); err != nil {
			return nil, &PatchError{Patch: n, Err: limited(err)}
		}
	}
	out := make([]any, len(items))
	for n := range documents {
		if documents[n] == nil {
			continue
		}
		out[n] = documents[n].root
		if err := budget.SpendOn(out[n]); err != nil {
			return nil, &PatchError{Patch: len(all) - 1, Err: limited(err)}
		}
	}
	return out, nil
}

func applyOne(documents []*document, items []Item, patch *Patch, budget *gotemplate.Budget) error {
	if patch.Item < 0 || patch.Item >= len(items) {
		return errUnknownItem
	}
	d := documents[patch.Item]
	if d == nil {
		d = &document{budget: budget}
		root, err := d.decode(items[patch.Item].Object)
		if err != nil {
			return err
		}
		d.root, documents[patch.Item] = root, d
	}
	switch patch.Type {
	case JSONPatch:
		return d.operations(patch.Patch)
	case JSONMergePatch:
		merged, err := d.decode(patch.Patch)
		if err == nil {
			d.root = merge(d.root, merged)
		}
		return err
	}
	return fmt.Errorf("patch type %q is not supported: it must be %s or %s",
		condition.Truncate(string(patch.Type), maxQuoted), JSONPatch, JSONMergePatch)
}

var errUnknownItem = errors.New("the patch is for a template that was not in the request")

// limited replaces the message of a limit, which is about templates.
func limited(err error) error {
	if _, ok := errors.AsType[*gotemplate.LimitError](err); ok {
		return &gotemplate.LimitError{What: "the patches exceed the limit of work and data: there must be fewer or smaller ones"}
	}
	return err
}

// document is a decoded template that patches are applied to.
type document struct {
	root   any
	budget *gotemplate.Budget
}

func (d *document) decode(encoded []byte) (any, error) {
	if err := d.budget.Spend(perOperation + perByte*int64(len(encoded))); err != nil {
		return nil, err
	}
	return parseJSON(encoded)
}

// merge is RFC 7396. Parts of the patch become part of the result.
func merge(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return withoutNulls(patch)
	}
	object, ok := target.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	for name, change := range changes {
		if change == nil {
			delete(object, name)
			continue
		}
		object[name] = merge(object[name], change)
	}
	return object
}

// withoutNulls drops the null fields of objects in lists, as other releases do.
func withoutNulls(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, item := range value {
			if item == nil {
				delete(value, name)
				continue
			}
			value[name] = withoutNulls(item)
		}
	case []any:
		for i := range value {
			value[i] = withoutNulls(value[i])
		}
	}
	return value
}

// jsonOperation is an operation of RFC 6902.
type jsonOperation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	From  string          `json:"from"`
	Value json.RawMessage `json:"value"`
}

// maxQuoted limits what errors quote of a patch.
const maxQuoted = 200

func (d *document) operations(patch []byte) error {
	if err := d.budget.Spend(perOperation + perByte*int64(len(patch))); err != nil {
		return err
	}
	var all []jsonOperation
	if err := json.Unmarshal(patch, &all); err != nil {
		return fmt.Errorf("not a JSON patch: %w", err)
	}
	for n := range all {
		o := &all[n]
		if err := d.operate(o); err != nil {
			return fmt.Errorf("operation %d (%s %s): %w", n, condition.Truncate(o.Op, maxQuoted), condition.Truncate(o.Path, maxQuoted), err)
		}
	}
	return nil
}

func (d *document) operate(o *jsonOperation) error {
	if err := d.budget.Spend(perOperation); err != nil {
		return err
	}
	switch o.Op {
	case "add", "replace":
		value, err := d.valueOf(o)
		if err != nil {
			return err
		}
		return d.set(o.Path, value, o.Op == "add")
	case "remove":
		return d.remove(o.Path)
	case "move":
		value, err := d.get(o.From)
		if err != nil {
			return err
		}
		if err := d.remove(o.From); err != nil {
			return err
		}
		return d.set(o.Path, value, true)
	case "copy":
		value, err := d.get(o.From)
		if err == nil {
			err = d.budget.SpendOn(value)
		}
		if err != nil {
			return err
		}
		return d.set(o.Path, runtime.DeepCopyJSONValue(value), true)
	case "test":
		return d.test(o)
	}
	return errors.New("the operation must be one of add, copy, move, remove, replace and test")
}

func (d *document) valueOf(o *jsonOperation) (any, error) {
	if len(o.Value) == 0 {
		return nil, nil
	}
	return d.decode(o.Value)
}

func (d *document) test(o *jsonOperation) error {
	wanted, err := d.valueOf(o)
	if err != nil {
		return err
	}
	found, err := d.get(o.Path)
	if err != nil && !errors.Is(err, errMissing) {
		return err
	}
	if err := d.budget.SpendOn(found); err != nil {
		return err
	}
	if !reflect.DeepEqual(found, wanted) {
		return errors.New("the value is another one")
	}
	return nil
}

var errMissing = errors.New("the path does not exist")

// steps returns the parts of a path. The path of the whole document has none.
func (d *document) steps(path string) (pointer, error) {
	if err := d.budget.Spend(int64(len(path))); err != nil {
		return nil, err
	}
	switch {
	case path == "":
		return nil, nil
	case !strings.HasPrefix(path, "/"):
		return nil, errors.New(`the path must begin with "/"`)
	}
	return parsePointer(path), nil
}

func (d *document) get(path string) (any, error) {
	steps, err := d.steps(path)
	if err != nil {
		return nil, err
	}
	node := d.root
	for _, step := range steps {
		switch container := node.(type) {
		case map[string]any:
			child, found := container[step]
			if !found {
				return nil, errMissing
			}
			node = child
		case []any:
			i, err := position(step, len(container))
			if err != nil {
				return nil, err
			}
			node = container[i]
		default:
			return nil, errMissing
		}
	}
	return node, nil
}

func (d *document) set(path string, value any, insert bool) error {
	return d.edit(path, func() error { d.root = value; return nil }, func(container any, key string) (any, error) {
		switch container := container.(type) {
		case map[string]any:
			if _, found := container[key]; !found && !insert {
				return nil, errMissing
			}
			container[key] = value
			return container, nil
		case []any:
			return d.setItem(container, key, value, insert)
		}
		return nil, errMissing
	})
}

func (d *document) setItem(list []any, key string, value any, insert bool) (any, error) {
	if !insert {
		i, err := position(key, len(list))
		if err == nil {
			list[i] = value
		}
		return list, err
	}
	if key == appendIndex {
		return append(list, value), nil
	}
	i, err := position(key, len(list)+1)
	if err == nil {
		err = d.budget.Spend(int64(len(list)))
	}
	if err != nil {
		return nil, err
	}
	return slices.Insert(list, i, value), nil
}

func (d *document) remove(path string) error {
	whole := func() error { return errors.New("the whole template cannot be removed") }
	return d.edit(path, whole, func(container any, key string) (any, error) {
		switch container := container.(type) {
		case map[string]any:
			if _, found := container[key]; !found {
				return nil, errMissing
			}
			delete(container, key)
			return container, nil
		case []any:
			i, err := position(key, len(container))
			if err == nil {
				err = d.budget.Spend(int64(len(container)))
			}
			if err != nil {
				return nil, err
			}
			return slices.Delete(container, i, i+1), nil
		}
		return nil, errMissing
	})
}

// edit calls whole for the path of the document itself, and otherwise change for the object or list that holds the last part of the
// path, and replaces it with the result.
func (d *document) edit(path string, whole func() error, change func(container any, key string) (any, error)) error {
	steps, err := d.steps(path)
	if err != nil {
		return err
	}
	if len(steps) == 0 {
		return whole()
	}
	put := func(value any) { d.root = value }
	node := d.root
	for _, step := range steps[:len(steps)-1] {
		switch container := node.(type) {
		case map[string]any:
			child, found := container[step]
			if !found {
				return errMissing
			}
			node, put = child, func(value any) { container[step] = value }
		case []any:
			i, err := position(step, len(container))
			if err != nil {
				return err
			}
			node, put = container[i], func(value any) { container[i] = value }
		default:
			return errMissing
		}
	}
	changed, err := change(node, steps[len(steps)-1])
	if err == nil {
		put(changed)
	}
	return err
}

// position returns an index below length. Negative ones count from the end, and signs and leading zeros are accepted, as in other
// releases.
func position(part string, length int) (int, error) {
	i, err := strconv.Atoi(part)
	if err != nil {
		return 0, fmt.Errorf("%q is not an index of a list", condition.Truncate(part, maxQuoted))
	}
	if i < 0 {
		i += length
	}
	if i < 0 || i >= length {
		return 0, errMissing
	}
	return i, nil
}
