package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// yamlFile is what a YAML file has beyond its JSON form. Later versions of YAML, and v1.7 of clusterctl, read yes, no, on and off as
// text, and reject keys that are set twice.
type yamlFile struct {
	// texts are the texts of the file's variables, by key.
	texts map[string]string
}

// readYAML reads a file that has been checked for its size. A file with a syntax error is left to the caller.
func readYAML(raw []byte) (y yamlFile, err error) {
	var document yaml.Node
	if err := yaml.Unmarshal(raw, &document); err != nil || len(document.Content) == 0 {
		return y, nil // The other library has a better error.
	}
	root := document.Content[0]
	if err := checkKeys(root); err != nil {
		return y, err
	}
	y.texts = map[string]string{}
	if root.Kind != yaml.MappingNode {
		return y, nil
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		value := root.Content[i+1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		if value.Kind == yaml.ScalarNode && value.ShortTag() == "!!str" {
			y.texts[root.Content[i].Value] = value.Value
		}
	}
	return y, nil
}

// checkKeys rejects keys that are set twice. Aliases are not followed: what they refer to is checked where it is.
func checkKeys(n *yaml.Node) error {
	lines := map[string]int{}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && child.Kind == yaml.ScalarNode && child.Value != "<<" {
			if first := lines[child.Value]; first > 0 {
				return fmt.Errorf("line %d: %s is set already in line %d: remove one of the two", child.Line, child.Value, first)
			}
			lines[child.Value] = child.Line
		}
		if err := checkKeys(child); err != nil {
			return err
		}
	}
	return nil
}

// unknownKeys returns the keys of a value that have no meaning. Items of lists have the same ones.
func unknownKeys(path string, value json.RawMessage, known ...string) []string {
	var list []json.RawMessage
	if json.Unmarshal(value, &list) == nil {
		var found []string
		for i, item := range list {
			found = append(found, unknownKeys(fmt.Sprintf("%s[%d]", path, i), item, known...)...)
		}
		return found
	}
	all := map[string]json.RawMessage{}
	if json.Unmarshal(value, &all) != nil {
		return nil
	}
	var found []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if !slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, key) }) {
			found = append(found, fmt.Sprintf("%s.%s is ignored: known keys are %s", path, key, strings.Join(known, ", ")))
		}
	}
	return found
}

// unknownKeysOfEach is unknownKeys for the values of a map.
func unknownKeysOfEach(path string, value json.RawMessage, known ...string) []string {
	all := map[string]json.RawMessage{}
	if json.Unmarshal(value, &all) != nil {
		return nil
	}
	var found []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		found = append(found, unknownKeys(path+"."+name, all[name], known...)...)
	}
	return found
}
