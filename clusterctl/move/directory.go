package move

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/clusterctl/move/graph"
	"sigs.k8s.io/cluster-api/packages"
)

const (
	extension = ".yaml"
	// stale is added to the names of files of an earlier backup whose objects are not in the present one.
	stale = ".stale"
	// longest is how long names of files are, in bytes; file systems allow 255.
	longest = 240
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
func writeObject(root *os.Root, name string, o *unstructured.Unstructured) error {
	content, err := json.Marshal(o.Object)
	if err != nil {
		return fmt.Errorf("cannot encode %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	temporary := ".clusterctl-" + rand.String(10)
	file, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("cannot write %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	_, err = file.Write(append(content, '\n'))
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = root.Rename(temporary, name)
	}
	if err != nil {
		_ = root.Remove(temporary)
		return fmt.Errorf("cannot write %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}

// fileName returns the name of an object's file: Kind_namespace_name.yaml, or Kind.group_namespace_name.yaml if another kind of the same
// name has an object of the same name. taken has the keys by name. File systems may ignore case.
func fileName(o graph.Object, taken map[string]graph.Key) (string, error) {
	key := o.Key()
	kind := key.Kind
	for range 2 {
		name := fmt.Sprintf("%s_%s_%s", kind, key.Namespace, key.Name)
		if strings.ContainsAny(name, "/\\\x00") || strings.HasPrefix(name, ".") {
			return "", fmt.Errorf("cannot write %q to a file: it is no name of an object", key.String())
		}
		if len(name) > longest {
			name = shorten(name)
		}
		if other, ok := taken[strings.ToLower(name)]; !ok || other == key {
			taken[strings.ToLower(name)] = key
			return name + extension, nil
		}
		kind = key.Kind + "." + key.Group
	}
	return "", fmt.Errorf("cannot write %s to a file: another object has the same name", key)
}

// ReadDirectory returns the objects of all files of a directory, sorted by the names of the files. Hidden files, such as those of an
// interrupted Write, are ignored. Symbolic links that lead out of the directory are an error.
func ReadDirectory(path string) ([]*unstructured.Unstructured, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the directory: %w", err)
	}
	defer func() { _ = root.Close() }()
	names, err := fileNames(root)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, name := range names {
		content, err := readFile(root, name)
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
			return nil, fmt.Errorf("invalid object in %s of %s: it must be one Kubernetes object as YAML or JSON", name, path)
		}
		objects = append(objects, o)
	}
	return objects, nil
}

// readFile returns what is not larger than a document may be.
func readFile(root *os.Root, name string) ([]byte, error) {
	file, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, packages.MaxDocument+1))
	if err != nil {
		return nil, err
	}
	return content, packages.CheckYAML("file "+name, content, packages.MaxDocument)
}

// fileNames returns the sorted names of the files with objects.
func fileNames(root *os.Root) ([]string, error) {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("cannot read directory %s: %w", root.Name(), err)
	}
	var names []string
	for _, entry := range entries {
		if name := entry.Name(); strings.HasSuffix(name, extension) && !strings.HasPrefix(name, ".") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}
