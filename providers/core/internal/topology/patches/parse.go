package patches

import (
	"errors"
	"fmt"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/providers/internal/gotemplate"
	"sigs.k8s.io/cluster-api/sdk/expansion"
)

const (
	// maxRendered is the maximum output of a template, in bytes: larger objects do not fit into etcd.
	maxRendered = 1 << 20
	// templateWork is the budget of one template: a few hundred milliseconds at most.
	templateWork = 16 << 20
	// runWork is the budget of all patches of a class for one Cluster: a few seconds at most.
	runWork = 128 << 20
)

// newParser returns a parser of templates in patches. They may refer to variables without a value.
func newParser() *gotemplate.Parser {
	return gotemplate.NewParser(gotemplate.Options{Sprig: true, Output: maxRendered, Work: templateWork})
}

// parseValue parses the output of a template as YAML, which includes JSON. Integers remain integers.
func parseValue(rendered []byte) (any, error) {
	var tooBig *expansion.TooBigError
	if err := expansion.Check(rendered, maxRendered); errors.As(err, &tooBig) {
		return nil, &gotemplate.LimitError{
			What: fmt.Sprintf("the template rendered YAML with aliases that expand to more than %d bytes", tooBig.Limit),
		}
	} else if err != nil {
		return nil, fmt.Errorf("the template rendered invalid YAML: %w", err)
	}
	encoded, err := yaml.YAMLToJSON(rendered)
	if err != nil {
		return nil, fmt.Errorf("the template rendered invalid YAML: %w", err)
	}
	return parseJSON(encoded)
}

func parseJSON(encoded []byte) (any, error) {
	var out any
	if err := utiljson.Unmarshal(encoded, &out); err != nil {
		return nil, fmt.Errorf("not valid JSON: %w", err)
	}
	return out, nil
}
