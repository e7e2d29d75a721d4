package gotemplate

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// prediction returns, before a function is called, how much work or output it causes that is not charged by the size of its
// arguments and results. in is the size of the arguments.
type prediction func(args []any, in measurement) (units int64, err error)

// predictions returns the predictions of functions whose results can be much larger than their arguments, or which process their
// arguments more than once.
func predictions() map[string]prediction {
	pretty := func(_ []any, in measurement) (int64, error) { return product(in.nodes, int64(in.depth)*2+16), nil }
	pairs := func(_ []any, in measurement) (int64, error) { return product(in.nodes, in.bytes) / 64, nil }
	return map[string]prediction{
		"printf": printf,
		"repeat": func(args []any, _ measurement) (int64, error) {
			return product(integer(args[0]), length(args[1])), nil
		},
		"indent": indent, "nindent": indent,
		"until": func(args []any, _ measurement) (int64, error) { return steps(0, integer(args[0]), 1) },
		"untilStep": func(args []any, _ measurement) (int64, error) {
			return steps(integer(args[0]), integer(args[1]), integer(args[2]))
		},
		"seq":     seq,
		"replace": replace,
		"join": func(args []any, in measurement) (int64, error) {
			return product(in.nodes, length(args[0])), nil
		},
		"wrap":     func(args []any, _ measurement) (int64, error) { return 2 * length(args[1]), nil },
		"wrapWith": wrapWith,
		"split":    func(args []any, _ measurement) (int64, error) { return parts(args[0], args[1]) },
		"splitn":   func(args []any, _ measurement) (int64, error) { return parts(args[0], args[2]) },
		"splitList": func(args []any, _ measurement) (int64, error) {
			return parts(args[0], args[1])
		},
		"uniq": pairs, "mustUniq": pairs, "without": pairs, "mustWithout": pairs,
		"toPrettyJson": pretty, "mustToPrettyJson": pretty,
		// Deriving a password is expensive by design: a few hundred milliseconds.
		"derivePassword": func([]any, measurement) (int64, error) { return 2 << 20, nil },

		"regexMatch": matching(0), "mustRegexMatch": matching(0), "regexFind": matching(0), "mustRegexFind": matching(0),
		"regexFindAll": matching(perMatch), "mustRegexFindAll": matching(perMatch),
		"regexSplit": matching(perMatch), "mustRegexSplit": matching(perMatch),
		"regexReplaceAll": replaceAll, "mustRegexReplaceAll": replaceAll,
		"regexReplaceAllLiteral": replaceAll, "mustRegexReplaceAllLiteral": replaceAll,
	}
}

// product multiplies sizes. Negative sizes count as 0; an overflow yields the maximum.
func product(a, b int64) int64 {
	if a <= 0 || b <= 0 {
		return 0
	}
	if a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}

// sum adds sizes. An overflow yields the maximum.
func sum(all ...int64) int64 {
	var total int64
	for _, one := range all {
		if total += one; total < 0 {
			return math.MaxInt64
		}
	}
	return total
}

func length(v any) int64 {
	s, _ := v.(string)
	return int64(len(s))
}

func integer(v any) int64 {
	r := reflect.ValueOf(v)
	if r.IsValid() && r.CanInt() {
		return r.Int()
	}
	return 0
}

func indent(args []any, _ measurement) (int64, error) {
	text, _ := args[1].(string)
	return product(integer(args[0]), int64(strings.Count(text, "\n"))+1), nil
}

// maxNumber is the largest absolute value in lists of numbers: Sprig does not check for overflow.
const maxNumber = 1 << 31

// steps returns the size of a list of numbers.
func steps(start, stop, step int64) (int64, error) {
	for _, n := range []int64{start, stop, step} {
		if n > maxNumber || n < -maxNumber {
			return 0, &LimitError{
				What: fmt.Sprintf("the template creates a list of numbers from, to or by %d: the limit is %d", n, int64(maxNumber)),
			}
		}
	}
	if step == 0 {
		return 0, nil
	}
	return 16 * (1 + max(stop-start, start-stop)/max(step, -step)), nil
}

func seq(args []any, _ measurement) (int64, error) {
	switch len(args) {
	case 1:
		return steps(1, integer(args[0]), 1)
	case 2:
		return steps(integer(args[0]), integer(args[1]), 1)
	case 3:
		return steps(integer(args[0]), integer(args[2]), integer(args[1]))
	}
	return 0, nil
}

func replace(args []any, _ measurement) (int64, error) {
	old, _ := args[0].(string)
	text, _ := args[2].(string)
	return product(int64(strings.Count(text, old)), length(args[1])), nil
}

func wrapWith(args []any, _ measurement) (int64, error) {
	lines := length(args[2])/max(integer(args[0]), 1) + 1
	return sum(2*length(args[2]), product(lines, length(args[1]))), nil
}

// perPart is charged for each part of a text that is split.
const perPart = 64

func parts(separator, text any) (int64, error) {
	by, _ := separator.(string)
	all, _ := text.(string)
	if by == "" {
		return product(int64(utf8.RuneCountInString(all)), perPart), nil
	}
	return product(int64(strings.Count(all, by)), perPart), nil
}

// printf adds the maximum size of padding and repeated arguments. Every verb may print the largest argument, escaped.
func printf(args []any, in measurement) (int64, error) {
	format, _ := args[0].(string)
	verbs := int64(strings.Count(format, "%"))
	total := product(6, in.bytes)
	if strings.Contains(format, "[") {
		total = product(total, verbs)
	}
	for i := 0; i < len(format); i++ {
		if format[i] < '0' || format[i] > '9' {
			continue
		}
		end := i
		for end < len(format) && format[end] >= '0' && format[end] <= '9' {
			end++
		}
		n, err := strconv.ParseInt(format[i:end], 10, 64)
		if err != nil {
			return math.MaxInt64, nil // a width beyond the range of integers exceeds every budget
		}
		total = sum(total, n)
		i = end
	}
	if strings.Contains(format, "*") {
		for _, arg := range args[1:] {
			n := integer(arg)
			total = sum(total, product(verbs, max(n, -n)))
		}
	}
	return total, nil
}
