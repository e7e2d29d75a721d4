package expansion

import (
	"fmt"
	"math"
	"regexp/syntax"
)

// MaxRegexp is the maximum size of a regular expression.
const MaxRegexp = 20_000

// RegexpTooBigError means that an expression is larger than MaxRegexp.
type RegexpTooBigError struct{}

// Error implements error.
func (*RegexpTooBigError) Error() string {
	return fmt.Sprintf("a regular expression is too large: with repetitions expanded, it must have at most about %d characters", MaxRegexp)
}

// RegexpSize returns about how many instructions an expression is compiled into. The error is a RegexpTooBigError, or the syntax error of
// an invalid expression.
func RegexpSize(expression string) (int64, error) {
	if len(expression) > MaxRegexp {
		return 0, &RegexpTooBigError{}
	}
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return 0, err
	}
	if size := instructions(parsed); size <= MaxRegexp {
		return int64(size), nil
	}
	return 0, &RegexpTooBigError{}
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
