package gotemplate

import (
	"fmt"
	"reflect"
)

// LimitError says that a template does more than it may.
type LimitError struct {
	// What it does too much of.
	What string
}

// Error implements error.
func (e *LimitError) Error() string { return e.What }

// Budget is the work that several executions may do together. One unit is about a byte handled, and a few nanoseconds.
// The zero value allows nothing; it must not be used concurrently.
type Budget struct{ left int64 }

// NewBudget is a Budget of so many units.
func NewBudget(units int64) *Budget { return &Budget{left: units} }

// Spend takes units from the budget. The error is a LimitError.
func (b *Budget) Spend(units int64) error {
	if units < 0 || units > b.left {
		b.left = 0
		return &LimitError{What: "it does more work, or handles more data, than is allowed: make lists, loops and values smaller"}
	}
	b.left -= units
	return nil
}

// SpendOn takes the size of a value, as it is in memory, from the budget.
func (b *Budget) SpendOn(value any) error {
	m := measured{limit: b.left}
	m.add(reflect.ValueOf(value), 0)
	return b.Spend(m.bytes)
}

// maxDepth is how deep values may be nested.
const maxDepth = 1000

// measured is the size of values. Measuring stops at the limit, so that a value that contains itself, or the same big
// value many times, costs no more than the limit: to whatever prints, copies or compares it, it is that big.
type measured struct {
	limit        int64
	bytes, nodes int64
	depth        int
}

// over says that the limit is reached.
func (m *measured) over() bool { return m.bytes > m.limit }

func (m *measured) add(v reflect.Value, depth int) {
	m.nodes++
	m.bytes += 16
	m.depth = max(m.depth, depth)
	if depth > maxDepth {
		m.bytes = m.limit + 1
	}
	if m.over() || !v.IsValid() {
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
		for i := 0; i < v.Len() && !m.over(); i++ {
			m.add(v.Index(i), depth+1)
		}
	case reflect.Map:
		for i := v.MapRange(); !m.over() && i.Next(); {
			m.add(i.Key(), depth+1)
			m.add(i.Value(), depth+1)
		}
	case reflect.Struct:
		for i := 0; i < v.NumField() && !m.over(); i++ {
			m.add(v.Field(i), depth+1)
		}
	}
}

// charge is Spend for functions that templates call: text/template recovers the panic into the error of the execution.
func (b *Budget) charge(units int64) {
	if err := b.Spend(units); err != nil {
		panic(err)
	}
}

// limited is output that refuses to grow beyond a limit.
type limited struct {
	out   []byte
	limit int
}

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	if len(l.out)+len(p) > l.limit {
		return 0, &LimitError{What: fmt.Sprintf("it renders more than %d bytes", l.limit)}
	}
	l.out = append(l.out, p...)
	return len(p), nil
}
