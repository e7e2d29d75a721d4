// Package expansion measures YAML documents with their aliases written out.
//
// An alias costs a few bytes and stands for as much as its author likes: converting a document of 1 MiB to JSON, as all
// Kubernetes libraries do before they read it, can take many gigabytes. The limits of YAML libraries are for the number
// of values, not for their size. Check comes before everything that reads YAML of people who are not trusted with the
// memory of the process.
//
// What belongs here: how big a document becomes. What does not: reading it.
package expansion

import (
	"bytes"
	"fmt"

	goyaml "sigs.k8s.io/yaml/goyaml.v3"
)

// TooBigError says that a document is too big with its aliases written out.
type TooBigError struct {
	// Limit is how big it may be, in bytes.
	Limit int
}

// Error implements error.
func (e *TooBigError) Error() string {
	return fmt.Sprintf("the YAML aliases expand to more than %d bytes", e.Limit)
}

// Check refuses the first document of a text if its values have more bytes than limit once its aliases are written out.
// The error is then a TooBigError; it says why the text is not YAML otherwise. Text without aliases is not parsed, so it
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

// maxDepth is how deep values may be nested, aliases written out: as deep as YAML libraries read them without.
const maxDepth = 10_000

// expands takes the size of a node, aliases written out, from what is left. An alias that contains itself is too deep.
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
