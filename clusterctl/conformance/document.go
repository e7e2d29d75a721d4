package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/packages/template"
)

// document is an object in a file.
type document struct {
	unstructured.Unstructured
	file string
	node *yaml.Node
}

// line returns the line of a field, or of its closest parent that exists. Elements of the path are keys and indexes.
func (d *document) line(path ...any) int {
	node := d.node
	for _, element := range path {
		next := child(node, element)
		if next == nil {
			break
		}
		node = next
	}
	return node.Line
}

func child(node *yaml.Node, element any) *yaml.Node {
	switch key := element.(type) {
	case int:
		if node.Kind == yaml.SequenceNode && key < len(node.Content) {
			return node.Content[key]
		}
	case string:
		for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value != key {
				continue
			}
			// The line of a block is that of its first entry: the key's is the one to look at.
			value := *node.Content[i+1]
			value.Line = node.Content[i].Line
			return &value
		}
	}
	return nil
}

// items returns the maps in a list at a path.
func (d *document) items(path ...string) []map[string]any {
	list, _, _ := unstructured.NestedSlice(d.Object, path...)
	var maps []map[string]any
	for _, item := range list {
		m, _ := item.(map[string]any)
		maps = append(maps, m)
	}
	return maps
}

// documents reads the objects of a file after the substitution of its variables, which has to keep the lines. What cannot
// be read is a finding.
func (c *checker) documents(name, rule string) (list []*document, variables []template.Variable, err error) {
	raw, err := c.read(name)
	if err != nil {
		return nil, nil, err
	}
	t, problem := template.Parse(raw)
	if problem != nil {
		c.add(Error, name, 0, rule, "the variables cannot be read: %v", problem)
		return nil, nil, nil
	}
	variables = t.Variables()
	text, problem := t.Execute(placeholder(variables))
	if problem != nil {
		c.add(Error, name, 0, rule, "the variables cannot be substituted: %v", problem)
		return nil, variables, nil
	}
	if problem := manifest.Check(text); problem != nil {
		c.add(Error, name, 0, rule, "not valid YAML: %v", problem)
		return nil, variables, nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		root := &yaml.Node{}
		problem := decoder.Decode(root)
		if errors.Is(problem, io.EOF) {
			return list, variables, nil
		}
		if problem != nil {
			c.add(Error, name, 0, rule, "not valid YAML: %v", problem)
			return list, variables, nil
		}
		if d := c.document(name, rule, root); d != nil {
			list = append(list, d)
		}
	}
}

// document returns an object; an empty document is none, and what is not an object is a finding.
func (c *checker) document(name, rule string, root *yaml.Node) *document {
	if len(root.Content) == 0 || root.Content[0].Tag == "!!null" {
		return nil
	}
	d := &document{file: name, node: root.Content[0]}
	var value any
	if err := root.Decode(&value); err != nil {
		c.add(Error, name, d.node.Line, rule, "not valid YAML: %v", err)
		return nil
	}
	asJSON, err := json.Marshal(value)
	if err == nil {
		err = d.UnmarshalJSON(asJSON)
	}
	switch {
	case err != nil:
		c.add(Error, name, d.node.Line, rule, "not a Kubernetes object: %v", err)
		return nil
	case d.GetAPIVersion() == "" || d.GetName() == "":
		c.add(Error, name, d.node.Line, rule, "%s has no apiVersion or no metadata.name", d.GetKind())
		return nil
	}
	return d
}

// placeholder returns values of variables that keep the YAML valid and in its lines.
func placeholder(variables []template.Variable) template.Lookup {
	values := map[string]string{
		"NAMESPACE": "default", "CLUSTER_NAME": "cluster", "KUBERNETES_VERSION": "v1.30.0",
		"CONTROL_PLANE_MACHINE_COUNT": "1", "WORKER_MACHINE_COUNT": "1",
	}
	for _, v := range variables {
		if _, known := values[v.Name]; !known && v.Default == nil {
			values[v.Name] = strings.ToLower(strings.ReplaceAll(v.Name, "_", "-"))
		}
	}
	return func(name string) (string, bool) {
		value, set := values[name]
		return value, set
	}
}
