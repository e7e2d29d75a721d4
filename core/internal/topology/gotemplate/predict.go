package gotemplate

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// prediction says, before a function is called, how much work or output it will be, beyond what its arguments and its
// results tell. in is the size of the arguments.
type prediction func(args []any, in measured) (units int64, err error)

// predictions are those of functions that make much of little, or take more than one look at their arguments.
func predictions() map[string]prediction {
	pretty := func(_ []any, in measured) (int64, error) { return product(in.nodes, int64(in.depth)*2+16), nil }
	pairs := func(_ []any, in measured) (int64, error) { return product(in.nodes, in.bytes) / 64, nil }
	return map[string]prediction{
		"printf": printf,
		"repeat": func(args []any, _ measured) (int64, error) {
			return product(whole(args[0]), length(args[1])), nil
		},
		"indent": indent, "nindent": indent,
		"until": func(args []any, _ measured) (int64, error) { return steps(0, whole(args[0]), 1) },
		"untilStep": func(args []any, _ measured) (int64, error) {
			return steps(whole(args[0]), whole(args[1]), whole(args[2]))
		},
		"seq":     seq,
		"replace": replace,
		"join": func(args []any, in measured) (int64, error) {
			return product(in.nodes, length(args[0])), nil
		},
		"wrap":     func(args []any, _ measured) (int64, error) { return 2 * length(args[1]), nil },
		"wrapWith": wrapWith,
		"split":    func(args []any, _ measured) (int64, error) { return parts(args[0], args[1]) },
		"splitn":   func(args []any, _ measured) (int64, error) { return parts(args[0], args[2]) },
		"splitList": func(args []any, _ measured) (int64, error) {
			return parts(args[0], args[1])
		},
		"uniq": pairs, "mustUniq": pairs, "without": pairs, "mustWithout": pairs,
		"toPrettyJson": pretty, "mustToPrettyJson": pretty,
		// A password is meant to be expensive: some hundred milliseconds.
		"derivePassword": func([]any, measured) (int64, error) { return 2 << 20, nil },

		"regexMatch": matching(0), "mustRegexMatch": matching(0), "regexFind": matching(0), "mustRegexFind": matching(0),
		"regexFindAll": matching(perMatch), "mustRegexFindAll": matching(perMatch),
		"regexSplit": matching(perMatch), "mustRegexSplit": matching(perMatch),
		"regexReplaceAll": replaceAll, "mustRegexReplaceAll": replaceAll,
		"regexReplaceAllLiteral": replaceAll, "mustRegexReplaceAllLiteral": replaceAll,
	}
}

// product multiplies sizes; negative ones count as nothing, and what is too big stays too big.
func product(a, b int64) int64 {
	if a <= 0 || b <= 0 {
		return 0
	}
	if a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}

// sum adds sizes.
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

func whole(v any) int64 {
	r := reflect.ValueOf(v)
	if r.IsValid() && r.CanInt() {
		return r.Int()
	}
	return 0
}

func indent(args []any, _ measured) (int64, error) {
	text, _ := args[1].(string)
	return product(whole(args[0]), int64(strings.Count(text, "\n"))+1), nil
}

// farthest is how far from 0 lists of numbers may go: Sprig counts beyond what an int can hold.
const farthest = 1 << 31

// steps is the size of a list of numbers.
func steps(start, stop, step int64) (int64, error) {
	for _, n := range []int64{start, stop, step} {
		if n > farthest || n < -farthest {
			return 0, &LimitError{What: fmt.Sprintf("it makes a list of numbers with %d in it: the limit is %d", n, int64(farthest))}
		}
	}
	if step == 0 {
		return 0, nil
	}
	return 16 * (1 + max(stop-start, start-stop)/max(step, -step)), nil
}

func seq(args []any, _ measured) (int64, error) {
	switch len(args) {
	case 1:
		return steps(1, whole(args[0]), 1)
	case 2:
		return steps(whole(args[0]), whole(args[1]), 1)
	case 3:
		return steps(whole(args[0]), whole(args[2]), whole(args[1]))
	}
	return 0, nil
}

func replace(args []any, _ measured) (int64, error) {
	old, _ := args[0].(string)
	text, _ := args[2].(string)
	return product(int64(strings.Count(text, old)), length(args[1])), nil
}

func wrapWith(args []any, _ measured) (int64, error) {
	lines := length(args[2])/max(whole(args[0]), 1) + 1
	return sum(2*length(args[2]), product(lines, length(args[1]))), nil
}

// perPart is the price of one part of a text that is split.
const perPart = 64

func parts(separator, text any) (int64, error) {
	by, _ := separator.(string)
	whole, _ := text.(string)
	if by == "" {
		return product(int64(utf8.RuneCountInString(whole)), perPart), nil
	}
	return product(int64(strings.Count(whole, by)), perPart), nil
}

// printf adds what padding and repeated use of arguments can make. Every verb may print the biggest argument, escaped.
func printf(args []any, in measured) (int64, error) {
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
			return math.MaxInt64, nil // too big for a number, so too much in any case
		}
		total = sum(total, n)
		i = end
	}
	if strings.Contains(format, "*") {
		for _, arg := range args[1:] {
			n := whole(arg)
			total = sum(total, product(verbs, max(n, -n)))
		}
	}
	return total, nil
}
