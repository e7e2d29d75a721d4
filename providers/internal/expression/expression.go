// Package expression measures regular expressions. Matching takes time linear in the length of the text and in the size of the
// expression. A short expression can be large, because repetitions are expanded.
//
// What belongs here: the size of an expression. What does not: its use.
package expression

import (
	"fmt"
	"math"
	"regexp/syntax"
)

// Max is the maximum size of an expression.
const Max = 20_000

// TooBigError means that an expression is larger than Max.
type TooBigError struct{}

// Error implements error.
func (*TooBigError) Error() string {
	return fmt.Sprintf("a regular expression is too large: with repetitions expanded, it must have at most about %d characters", Max)
}

// Size returns about how many instructions an expression is compiled into. The error is a TooBigError, or the syntax error of
// an invalid expression.
func Size(expression string) (int64, error) {
	if len(expression) > Max {
		return 0, &TooBigError{}
	}
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return 0, err
	}
	if size := instructions(parsed); size <= Max {
		return int64(size), nil
	}
	return 0, &TooBigError{}
}

// instructions returns a float because an integer could overflow.
func instructions(e *syntax.Regexp) float64 {
	size := 1 + float64(len(e.Rune))
	for _, sub := range e.Sub {
		size += instructions(sub)
	}
	if e.Op == syntax.OpRepeat {
		size *= math.Max(1, float64(max(e.Min, e.Max)))
	}
	return size
}
