package patches

import (
	"bytes"
	"fmt"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
	goyaml "sigs.k8s.io/yaml/goyaml.v3"

	"sigs.k8s.io/cluster-api/core/internal/topology/gotemplate"
)

const (
	// maxRendered is the most that a template may render, in bytes: what etcd takes for a whole object.
	maxRendered = 1 << 20
	// templateWork is the budget of one template: some hundred milliseconds at worst.
	templateWork = 16 << 20
	// runWork is the budget of all patches of a class for one Cluster: a few seconds at worst.
	runWork = 128 << 20
)

// newParser returns what parses the templates of patches. Variables without a value are allowed in them.
func newParser() *gotemplate.Parser {
	return gotemplate.NewParser(gotemplate.Options{Sprig: true, Output: maxRendered, Work: templateWork})
}

// parseValue reads what a template rendered as YAML, of which JSON is a part. Whole numbers stay whole.
func parseValue(rendered []byte) (any, error) {
	if err := checkAliases(rendered); err != nil {
		return nil, err
	}
	encoded, err := yaml.YAMLToJSON(rendered)
	if err != nil {
		return nil, fmt.Errorf("the template rendered something that is not YAML: %w", err)
	}
	return parseJSON(encoded)
}

// checkAliases refuses YAML that becomes too big when its aliases are written out, as JSON does.
func checkAliases(rendered []byte) error {
	if !bytes.ContainsRune(rendered, '&') || !bytes.ContainsRune(rendered, '*') {
		return nil
	}
	var document goyaml.Node
	if err := goyaml.Unmarshal(rendered, &document); err != nil {
		return fmt.Errorf("the template rendered something that is not YAML: %w", err)
	}
	left := maxRendered
	if !expands(&document, &left) {
		return &gotemplate.LimitError{What: fmt.Sprintf("the template rendered YAML whose aliases expand to more than %d bytes", maxRendered)}
	}
	return nil
}

// expands takes the size of a node, aliases written out, from what is left.
func expands(n *goyaml.Node, left *int) bool {
	if *left -= len(n.Value) + 1; *left < 0 {
		return false
	}
	if n.Alias != nil && !expands(n.Alias, left) {
		return false
	}
	for _, child := range n.Content {
		if !expands(child, left) {
			return false
		}
	}
	return true
}

func parseJSON(encoded []byte) (any, error) {
	var out any
	if err := utiljson.Unmarshal(encoded, &out); err != nil {
		return nil, fmt.Errorf("not valid JSON: %w", err)
	}
	return out, nil
}
