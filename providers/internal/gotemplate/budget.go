package gotemplate

import (
	"fmt"
	"reflect"
)

// LimitError means that a template exceeds a limit.
type LimitError struct {
	// What is the complete message.
	What string
}

// Error implements error.
func (e *LimitError) Error() string { return e.What }

// Budget limits the total work of several executions. A unit is about a byte processed, or a few nanoseconds. The zero value
// allows nothing. It is not safe for concurrent use.
type Budget struct{ left int64 }

// NewBudget returns a Budget of the given number of units.
func NewBudget(units int64) *Budget { return &Budget{left: units} }

// Spend deducts units from the budget. The error is a LimitError.
func (b *Budget) Spend(units int64) error {
	if units < 0 || units > b.left {
		b.left = 0
		return &LimitError{What: "the template exceeds the limit of work and data: make lists, loops and values smaller"}
	}
	b.left -= units
	return nil
}

// SpendOn deducts the size of a value in memory from the budget. The error is a LimitError.
func (b *Budget) SpendOn(value any) error {
	m := measurement{limit: b.left}
	m.add(reflect.ValueOf(value), 0)
	return b.Spend(m.bytes)
}

// maxDepth is the maximum nesting of values.
const maxDepth = 1000

// measurement is the size of values. Repeated values count each time, as they would if printed, copied or compared. Measuring
// stops at the limit, so that a value that contains itself, or a large value many times, costs at most the limit.
type measurement struct {
	limit        int64
	bytes, nodes int64
	depth        int
}

// exceeded reports whether the limit is exceeded.
func (m *measurement) exceeded() bool { return m.bytes > m.limit }

func (m *measurement) add(v reflect.Value, depth int) {
	m.nodes++
	m.bytes += 16
	m.depth = max(m.depth, depth)
	if depth > maxDepth {
		m.bytes = m.limit + 1
	}
	if m.exceeded() || !v.IsValid() {
		return
	}
	switch v.Kind() {
	case reflect.String:
		m.bytes += int64(v.Len())
	case reflect.Interface, reflect.Pointer:
		if !v.IsNil() {
			m.add(v.Elem(), depth+1)
		}
	case reflect.Slice, reflect.Array:
		if kind := v.Type().Elem().Kind(); kind <= reflect.Complex128 && kind != reflect.Invalid {
			m.bytes += int64(v.Len()) * int64(v.Type().Elem().Size())
			m.nodes += int64(v.Len())
			return
		}
		for i := 0; i < v.Len() && !m.exceeded(); i++ {
			m.add(v.Index(i), depth+1)
		}
	case reflect.Map:
		for i := v.MapRange(); !m.exceeded() && i.Next(); {
			m.add(i.Key(), depth+1)
			m.add(i.Value(), depth+1)
		}
	case reflect.Struct:
		for i := 0; i < v.NumField() && !m.exceeded(); i++ {
			m.add(v.Field(i), depth+1)
		}
	}
}

// charge is Spend for functions that templates call. It panics, which text/template turns into the error of the execution.
func (b *Budget) charge(units int64) {
	if err := b.Spend(units); err != nil {
		panic(err)
	}
}

// limitedWriter is an output with a maximum length.
type limitedWriter struct {
	out   []byte
	limit int
}

// Write implements io.Writer.
func (w *limitedWriter) Write(p []byte) (int, error) {
	if len(w.out)+len(p) > w.limit {
		return 0, &LimitError{What: fmt.Sprintf("the template renders more than %d bytes", w.limit)}
	}
	w.out = append(w.out, p...)
	return len(p), nil
}
