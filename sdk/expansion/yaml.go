package expansion

import (
	"bytes"
	"fmt"

	goyaml "sigs.k8s.io/yaml/goyaml.v3"
)

// TooBigError is the error for a document that is too big with its aliases expanded.
type TooBigError struct {
	// Limit is the maximum size in bytes.
	Limit int
}

// Error implements error.
func (e *TooBigError) Error() string {
	return fmt.Sprintf("the YAML aliases expand to more than %d bytes", e.Limit)
}

// Check returns an error if the values of the first document have more than limit bytes with aliases expanded.
// The error is a TooBigError, or reports why the text is not valid YAML. Text without aliases is not parsed, so it
// may be of any size and need not be YAML.
func Check(text []byte, limit int) error {
	if bytes.IndexByte(text, '&') < 0 || bytes.IndexByte(text, '*') < 0 {
		return nil
	}
	var document goyaml.Node
	if err := goyaml.Unmarshal(text, &document); err != nil {
		return err
	}
	left := limit
	if !expands(&document, &left, 0) {
		return &TooBigError{Limit: limit}
	}
	return nil
}

// maxDepth is the maximum nesting with aliases expanded, which is also the limit of YAML libraries.
const maxDepth = 10_000

// expands subtracts the size of a node with aliases expanded from left. An alias that contains itself is too deep.
func expands(n *goyaml.Node, left *int, depth int) bool {
	if *left -= len(n.Value) + 1; *left < 0 || depth > maxDepth {
		return false
	}
	if n.Alias != nil && !expands(n.Alias, left, depth+1) {
		return false
	}
	for _, child := range n.Content {
		if !expands(child, left, depth+1) {
			return false
		}
	}
	return true
}
