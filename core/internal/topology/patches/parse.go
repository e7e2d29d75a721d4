package patches

import (
	"errors"
	"fmt"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/core/internal/topology/gotemplate"
	"sigs.k8s.io/cluster-api/provider/expansion"
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
	var tooBig *expansion.TooBigError
	if err := expansion.Check(rendered, maxRendered); errors.As(err, &tooBig) {
		return nil, &gotemplate.LimitError{What: fmt.Sprintf("the template rendered YAML whose aliases expand to more than %d bytes", tooBig.Limit)}
	} else if err != nil {
		return nil, fmt.Errorf("the template rendered something that is not YAML: %w", err)
	}
	encoded, err := yaml.YAMLToJSON(rendered)
	if err != nil {
		return nil, fmt.Errorf("the template rendered something that is not YAML: %w", err)
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
