package manifest

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	distribution "sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/expansion"
)

const (
	// maxBytes is the maximum size of all documents together, as JSON with aliases expanded. The values of a ConfigMap or Secret have at
	// most 1 MiB.
	maxBytes = 4 << 20
	// maxObjects is the maximum number of objects, each of which is at least one request per workload cluster.
	maxObjects = 2000
	// maxDepth is the maximum nesting of lists.
	maxDepth = 8
)

// Place is where an object is in a ConfigMap or Secret.
type Place struct {
	Key string
	// Document is the number of the document in the value of the key, from 1. Empty documents do not count.
	Document int
	// Item is the number of the item in a list, from 1; zero if the document is no list.
	Item int
}

// String returns the place for messages.
func (p Place) String() string {
	out := fmt.Sprintf("key %s, document %d", condition.Brief(p.Key), p.Document)
	if p.Item > 0 {
		out += fmt.Sprintf(", item %d", p.Item)
	}
	return out
}

// Object is an object, and where it is.
type Object struct {
	*unstructured.Unstructured
	Place
}

// Describe returns place, kind, namespace and name for messages.
func (o Object) Describe() string {
	return fmt.Sprintf("%s (%s)", o.Place, condition.Brief(distribution.Describe(o.Unstructured)))
}

// UnreadableError is why a document, or the rest of the values, cannot be read. It does not quote the document, which may have secrets.
type UnreadableError struct {
	Place
	What string
}

// Error implements error.
func (p *UnreadableError) Error() string { return fmt.Sprintf("%s: %s", p.Place, p.What) }

// Read returns the objects of all values, in the order in which to apply them, and the problems of documents that have none.
func Read(data map[string][]byte) (objects []Object, problems []error) {
	r := &reader{bytes: maxBytes, objects: maxObjects}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		r.key(key, data[key])
	}
	return r.read, r.problems
}

// reader reads the values of one ConfigMap or Secret.
type reader struct {
	// bytes and objects are how much may still be read.
	bytes, objects int
	// full is set once there were too many objects.
	full     bool
	read     []Object
	problems []error
}

func (r *reader) fail(at Place, format string, args ...any) {
	r.problems = append(r.problems, &UnreadableError{Place: at, What: fmt.Sprintf(format, args...)})
}

func (r *reader) key(key string, value []byte) {
	first := len(r.read)
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(value)))
	for at := (Place{Key: key}); ; {
		document, err := documents.Read()
		if err != nil { // Reading from memory only ends.
			break
		}
		for _, one := range split(document) {
			at.Document++
			r.document(at, one)
		}
	}
	slices.SortStableFunc(r.read[first:], func(a, b Object) int {
		return cmp.Compare(distribution.Rank(a.GetKind()), distribution.Rank(b.GetKind()))
	})
}

// split returns the values of a stream of JSON, or the document as it is if it is not one.
func split(document []byte) [][]byte {
	if !utilyaml.IsJSONBuffer(document) {
		return [][]byte{document}
	}
	var out [][]byte
	stream := json.NewDecoder(bytes.NewReader(document))
	for {
		var one json.RawMessage
		err := stream.Decode(&one)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			return [][]byte{document} // YAML may look like JSON.
		}
		out = append(out, one)
	}
}

func (r *reader) document(at Place, document []byte) {
	asJSON, err := r.convert(document)
	if err != nil {
		r.fail(at, "%s", reason(err))
		return
	}
	var content any
	if err := utiljson.Unmarshal(asJSON, &content); err != nil {
		r.fail(at, "is not valid YAML or JSON")
		return
	}
	if content == nil {
		return
	}
	r.value(at, content, 0)
}

// convert converts a document to JSON, within what may still be read.
func (r *reader) convert(document []byte) ([]byte, error) {
	if err := expansion.Check(document, r.bytes); err != nil {
		return nil, err
	}
	asJSON, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, err
	}
	if r.bytes -= len(asJSON); r.bytes < 0 {
		r.bytes = 0
		return nil, &expansion.TooBigError{}
	}
	return asJSON, nil
}

// reason describes the error of a document, without the text of YAML libraries, which quote the document.
func reason(err error) string {
	if _, big := errors.AsType[*expansion.TooBigError](err); big {
		return fmt.Sprintf("the documents have more than %d bytes with YAML aliases expanded", maxBytes)
	}
	if line := regexp.MustCompile(`yaml: (?:unmarshal errors:\s+)?line (\d{1,7}):`).FindStringSubmatch(err.Error()); line != nil {
		return "is not valid YAML, at line " + line[1] + " of the document"
	}
	return "is not valid YAML"
}

// value adds the object, or the items of the list, of a document.
func (r *reader) value(at Place, content any, depth int) {
	fields, ok := content.(map[string]any)
	if !ok {
		r.fail(at, "must be an object with apiVersion and kind")
		return
	}
	o := Object{Unstructured: &unstructured.Unstructured{Object: fields}, Place: at}
	if items, isList := fields["items"].([]any); isList && strings.HasSuffix(o.GetKind(), "List") {
		if depth == maxDepth {
			r.fail(at, "has lists in more than %d lists", maxDepth)
			return
		}
		for i, item := range items {
			if depth == 0 {
				at.Item = i + 1
			}
			r.value(at, typed(item, o), depth+1)
		}
		return
	}
	r.object(o)
}

// typed gives an item of a typed list, such as a ConfigMapList, the kind that it may lack.
func typed(item any, list Object) any {
	fields, ok := item.(map[string]any)
	if kind := strings.TrimSuffix(list.GetKind(), "List"); ok && kind != "" && fields["kind"] == nil && fields["apiVersion"] == nil {
		fields["kind"], fields["apiVersion"] = kind, list.GetAPIVersion()
	}
	return item
}

func (r *reader) object(o Object) {
	version, err := schema.ParseGroupVersion(o.GetAPIVersion())
	_, hasMetadata := o.Object["metadata"].(map[string]any)
	switch {
	case o.GetKind() == "":
		r.fail(o.Place, "has no kind")
	case err != nil || version.Version == "":
		r.fail(o.Place, "has no valid apiVersion")
	case !hasMetadata || o.GetName() == "":
		r.fail(o.Place, "metadata.name must be a string; metadata.generateName is not supported")
	case r.objects == 0:
		if !r.full {
			r.fail(o.Place, "there are more than %d objects: use several ConfigMaps or Secrets", maxObjects)
		}
		r.full = true
	default:
		r.objects--
		r.read = append(r.read, o)
	}
}
