// Package selectors adds the objectSelector of webhooks to their manifests, which controller-gen writes without. Markers declare it, next
// to those of controller-gen: the webhook is called only for objects with a label.
//
//	// +capi:webhook:objectSelector:name=<name of the webhook>,exists=<label>
package selectors

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// marker matches a marker.
var marker = regexp.MustCompile(`(?m)^// \+capi:webhook:objectSelector:name=([^,\s]+),exists=(\S+)$`)

// Write adds the selectors to the manifests of all providers below root.
func Write(root string) error {
	folders, err := filepath.Glob(filepath.Join(root, "providers", "*", "internal", "webhook"))
	if err != nil {
		return err
	}
	for _, folder := range folders {
		declared, err := declarations(folder)
		if err != nil {
			return err
		}
		path := filepath.Join(folder, "..", "..", "config", "webhook", "manifests.yaml")
		if err := add(path, declared); err != nil {
			return err
		}
	}
	return nil
}

// declarations returns the labels by the names of webhooks.
func declarations(folder string) (map[string]string, error) {
	sources, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	declared := map[string]string{}
	for _, path := range sources {
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read markers: %w", err)
		}
		for _, match := range marker.FindAllStringSubmatch(string(source), -1) {
			declared[match[1]] = match[2]
		}
	}
	return declared, nil
}

func add(path string, declared map[string]string) error {
	if len(declared) == 0 {
		return nil
	}
	manifest, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the manifests that get selectors: %w", err)
	}
	for name, label := range declared {
		if manifest, err = Add(manifest, name, label); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return os.WriteFile(path, manifest, 0o644)
}

// Add adds a selector of objects with a label to a webhook. The manifest is as controller-gen writes it: one field per line, sorted.
func Add(manifest []byte, name, label string) ([]byte, error) {
	line := []byte("\n  name: " + name + "\n")
	if bytes.Count(manifest, line) != 1 {
		return nil, fmt.Errorf("there must be one webhook with the name %s", name)
	}
	selector := strings.Join([]string{"  objectSelector:", "    matchExpressions:", "    - key: " + label, "      operator: Exists", ""}, "\n")
	return bytes.Replace(manifest, line, append(line, selector...), 1), nil
}
