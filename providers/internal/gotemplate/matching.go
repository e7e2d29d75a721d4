package gotemplate

import (
	"errors"
	"strings"

	"sigs.k8s.io/cluster-api/sdk/expansion"
)

const (
	// perMatch is charged for each match that is returned.
	perMatch = 16
	// perInstruction is charged for each instruction that is compiled.
	perInstruction = 100
	// instructionsPerUnit is how many instructions are matched for a unit.
	instructionsPerUnit = 4
)

// matching predicts functions whose first arguments are a regular expression and a text.
func matching(perMatch int64) prediction {
	return func(args []any, _ measurement) (int64, error) {
		source, _ := args[0].(string)
		size, err := expansion.RegexpSize(source)
		if _, ok := errors.AsType[*expansion.RegexpTooBigError](err); ok {
			return 0, &LimitError{What: err.Error()}
		}
		if err != nil {
			return 0, nil // the function itself returns the syntax error
		}
		text := length(args[1])
		return sum(size*perInstruction, product(text+1, size)/instructionsPerUnit, product(text+1, perMatch)), nil
	}
}

// replaceAll adds the size of the replacements: for each match the replacement itself, and the groups that it refers to. Matches
// do not overlap, so each group adds at most the whole text in total.
func replaceAll(args []any, in measurement) (int64, error) {
	units, err := matching(0)(args, in)
	replacement, _ := args[2].(string)
	text := length(args[1])
	return sum(units, product(text+1, length(args[2])), product(text, int64(strings.Count(replacement, "$")))), err
}
