package gotemplate

import (
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strings"
)

// Numbers of variables are integers if they are whole, and templates print them as such. In other releases of Cluster API they are
// floating-point numbers, and templates were written for these: {{ eq .count 3.0 }}, {{ printf "%.0f" .count }}. So functions that
// care about the type of a number accept both.

// numbers returns the functions of text/template and Sprig that care about the type of a number.
func numbers() map[string]any {
	return map[string]any{
		"eq": equal,
		"ne": func(a, b any) (bool, error) {
			same, err := equal(a, b)
			return !same, err
		},
		"lt":     func(a, b any) (bool, error) { return ordered(a, b, func(order int) bool { return order < 0 }) },
		"le":     func(a, b any) (bool, error) { return ordered(a, b, func(order int) bool { return order <= 0 }) },
		"gt":     func(a, b any) (bool, error) { return ordered(a, b, func(order int) bool { return order > 0 }) },
		"ge":     func(a, b any) (bool, error) { return ordered(a, b, func(order int) bool { return order >= 0 }) },
		"printf": formatted,
	}
}

// sprigNumbers returns those of Sprig.
func sprigNumbers() map[string]any {
	return map[string]any{
		"deepEqual": func(a, b any) bool { return reflect.DeepEqual(uniform(a), uniform(b)) },
		"has":       has, "mustHas": has,
		"without": without, "mustWithout": without,
	}
}

var (
	errNothingToCompare = errors.New("missing argument for comparison")
	errIncompatible     = errors.New("incompatible types for comparison")
)

// equal reports whether first equals one of the others.
func equal(first any, others ...any) (bool, error) {
	if len(others) == 0 {
		return false, errNothingToCompare
	}
	for _, other := range others {
		if same, err := equals(first, other); same || err != nil {
			return same, err
		}
	}
	return false, nil
}

func equals(a, b any) (bool, error) {
	if a == nil || b == nil {
		return a == nil && b == nil, nil
	}
	if order, numeric := compareNumbers(a, b); numeric {
		return order == 0, nil
	}
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	if x.Kind() != y.Kind() {
		return false, errIncompatible
	}
	if !x.Comparable() || !y.Comparable() {
		return false, fmt.Errorf("non-comparable type %T", a)
	}
	return x.Equal(y), nil
}

// ordered compares numbers or strings.
func ordered(a, b any, holds func(order int) bool) (bool, error) {
	if order, numeric := compareNumbers(a, b); numeric {
		return order != unordered && holds(order), nil
	}
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	if x.Kind() != reflect.String || y.Kind() != reflect.String {
		return false, errIncompatible
	}
	return holds(strings.Compare(x.String(), y.String())), nil
}

// unordered is the order of what is not a number and anything.
const unordered = 2

// compareNumbers compares two numbers exactly.
func compareNumbers(a, b any) (order int, numeric bool) {
	x, xIsNumber, xIsNaN := number(a)
	y, yIsNumber, yIsNaN := number(b)
	switch {
	case !xIsNumber || !yIsNumber:
		return 0, false
	case xIsNaN || yIsNaN:
		return unordered, true
	}
	return x.Cmp(y), true
}

func number(value any) (exact *big.Float, isNumber, isNaN bool) {
	v := reflect.ValueOf(value)
	switch {
	case v.CanInt():
		return new(big.Float).SetInt64(v.Int()), true, false
	case v.CanUint():
		return new(big.Float).SetUint64(v.Uint()), true, false
	case v.CanFloat():
		if f := v.Float(); f == f {
			return big.NewFloat(f), true, false
		}
		return nil, true, true
	}
	return nil, false, false
}

// uniform returns a copy of a value with the same type for all numbers of the same value.
func uniform(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(value))
		for name, item := range value {
			out[name] = uniform(item)
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, item := range value {
			out[i] = uniform(item)
		}
		return out
	}
	if exact, isNumber, isNaN := number(value); isNumber && !isNaN {
		return numeral(exact.Text('p', 0))
	}
	return value
}

// numeral is a number in the form that is the same for all types. A string is something else.
type numeral string

// has reports whether a list has an item.
func has(item, list any) (bool, error) {
	items, err := itemsOf(list)
	if err != nil {
		return false, err
	}
	wanted := uniform(item)
	for _, candidate := range items {
		if reflect.DeepEqual(wanted, uniform(candidate)) {
			return true, nil
		}
	}
	return false, nil
}

// without returns the other items of a list.
func without(list any, unwanted ...any) ([]any, error) {
	items, err := itemsOf(list)
	if err != nil {
		return nil, err
	}
	out := []any{}
	for _, item := range items {
		if found, err := has(item, unwanted); !found && err == nil {
			out = append(out, item)
		}
	}
	return out, nil
}

func itemsOf(list any) ([]any, error) {
	if list == nil {
		return nil, nil
	}
	v := reflect.ValueOf(list)
	if v.Kind() != reflect.Slice && v.Kind() != reflect.Array {
		return nil, fmt.Errorf("a list is needed, not a %s", v.Kind())
	}
	out := make([]any, v.Len())
	for i := range out {
		out[i] = v.Index(i).Interface()
	}
	return out, nil
}

// formatted is fmt.Sprintf that prints integers with the verbs of floating-point numbers, and whole numbers with those of integers.
func formatted(format string, args ...any) string {
	if strings.Contains(format, "%T") {
		return fmt.Sprintf(format, args...)
	}
	out := make([]any, len(args))
	for i, arg := range args {
		switch v := reflect.ValueOf(arg); {
		case v.CanInt() && v.Type().PkgPath() == "":
			out[i] = whole(v.Int())
		case v.Kind() == reflect.Float64 && v.Type().PkgPath() == "":
			out[i] = floating(v.Float())
		default:
			out[i] = arg
		}
	}
	return fmt.Sprintf(format, out...)
}

// whole is an integer that every verb for numbers formats. It stays an integer for widths.
type whole int64

// Format implements fmt.Formatter.
func (w whole) Format(s fmt.State, verb rune) {
	if strings.ContainsRune("eEfFgG", verb) {
		fmt.Fprintf(s, fmt.FormatString(s, verb), float64(w))
		return
	}
	fmt.Fprintf(s, fmt.FormatString(s, verb), int64(w))
}

// floating is a floating-point number that every verb for numbers formats, if it is whole.
type floating float64

// Format implements fmt.Formatter.
func (f floating) Format(s fmt.State, verb rune) {
	const limit = 1 << 53
	if strings.ContainsRune("dcoOqU", verb) && f == floating(int64(f)) && -limit <= f && f <= limit {
		fmt.Fprintf(s, fmt.FormatString(s, verb), int64(f))
		return
	}
	fmt.Fprintf(s, fmt.FormatString(s, verb), float64(f))
}
