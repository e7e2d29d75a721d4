// Package expression measures regular expressions. Go matches them in time linear in the text and in their own size, and
// a few characters can make that big: repetitions are written out.
//
// What belongs here: how big an expression is. What does not: what it is used for.
package expression

import (
	"fmt"
	"math"
	"regexp/syntax"
)

// Max is how big an expression may be.
const Max = 20_000

// TooBigError says that an expression is bigger than Max.
type TooBigError struct{}

// Error implements error.
func (*TooBigError) Error() string {
	return fmt.Sprintf("a regular expression is too big: with its repetitions written out it may have about %d characters", Max)
}

// Size is how many instructions an expression is compiled into, about. The error is a TooBigError, or says why the
// expression is not valid.
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

// instructions is a float so that it cannot overflow.
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
