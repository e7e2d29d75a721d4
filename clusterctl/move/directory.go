package move

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// CheckDirectory returns an error if the path is not an existing directory.
func CheckDirectory(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("cannot use the directory: %w: create it", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("cannot use %s: it is not a directory", path)
	}
	return nil
}

// writeObject writes an object to a file of its own, which is replaced atomically, and that only its owner can read: it
// may be a Secret. The content is JSON, which is YAML.
func writeObject(path string, o *unstructured.Unstructured) error {
	content, err := json.Marshal(o.Object)
	if err != nil {
		return fmt.Errorf("cannot encode %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	// CreateTemp creates files with mode 0600.
	file, err := os.CreateTemp(path, ".clusterctl-*")
	if err != nil {
		return fmt.Errorf("cannot write %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	_, err = file.Write(append(content, '\n'))
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), filepath.Join(path, fileName(o)))
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return fmt.Errorf("cannot write %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}

func fileName(o *unstructured.Unstructured) string {
	return fmt.Sprintf("%s_%s_%s.yaml", o.GetKind(), o.GetNamespace(), o.GetName())
}

// ReadDirectory returns the objects of all files of a directory, sorted by the names of the files. Hidden files, such as those of an
// interrupted Write, are ignored.
func ReadDirectory(path string) ([]*unstructured.Unstructured, error) {
	files, err := filepath.Glob(filepath.Join(path, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("cannot read directory %s: %w", path, err)
	}
	slices.Sort(files)
	var objects []*unstructured.Unstructured
	for _, file := range files {
		if strings.HasPrefix(filepath.Base(file), ".") {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("cannot read an object: %w", err)
		}
		o := &unstructured.Unstructured{}
		text, err := yaml.YAMLToJSON(bytes.TrimSpace(content))
		if err == nil {
			err = o.UnmarshalJSON(text)
		}
		if err != nil {
			// Errors of decoders may quote the content, which may be a Secret.
			return nil, fmt.Errorf("invalid object in %s: it must be one Kubernetes object as YAML or JSON", file)
		}
		objects = append(objects, o)
	}
	return objects, nil
}
