package apiserver

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/apiserver/change"
	"sigs.k8s.io/cluster-api/sdk/expansion"
)

// maxBody is the maximum size of a request body, as in a real API server.
const maxBody = 3 << 20

// typedObject is an object of a built-in kind as its Go type.
type typedObject interface {
	runtime.Object
	metav1.Object
}

// readBody returns the request body and its media type.
func (c *call) readBody() (body []byte, mediaType string, err error) {
	body, err = io.ReadAll(http.MaxBytesReader(nil, c.r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, "", apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBody))
	case err != nil:
		return nil, "", apierrors.NewBadRequest(err.Error())
	}
	contentType := c.r.Header.Get("Content-Type")
	if c.legacy && contentType != change.Protobuf {
		body = unmark(body)
	}
	if contentType == "" {
		return body, "application/json", nil
	}
	mediaType, _, err = mime.ParseMediaType(contentType)
	if err != nil {
		return nil, "", apierrors.NewBadRequest(fmt.Sprintf("Content-Type: %v", err))
	}
	return body, mediaType, nil
}

// toJSON converts YAML, including JSON, unless its aliases expand to more than the limit of a body.
func toJSON(body []byte) ([]byte, error) {
	if err := expansion.Check(body, maxBody); err != nil {
		return nil, err
	}
	return yaml.YAMLToJSON(body)
}

// decodeBody decodes the object in the request body, which must be of the expected kind.
func (c *call) decodeBody(expected schema.GroupVersionKind) (runtime.Object, error) {
	body, mediaType, err := c.readBody()
	if err != nil {
		return nil, err
	}
	switch mediaType {
	case "application/json":
		return c.decodeJSON(body, expected)
	case "application/yaml":
		if body, err = toJSON(body); err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("decode YAML: %v", err))
		}
		return c.decodeJSON(body, expected)
	case change.Protobuf:
		o, gvk, err := scheme.Codecs.UniversalDeserializer().Decode(body, &expected, nil)
		if err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("decode Protobuf: %v", err))
		}
		if c.legacy {
			unmarkObject(o)
		}
		return o, checkKind(*gvk, expected)
	}
	return nil, change.UnsupportedMediaType(mediaType)
}

// decodeJSON decodes an object of the expected kind. Depending on the request's field validation, unknown and duplicate
// fields are dropped, dropped with a warning, or an error.
func (c *call) decodeJSON(text []byte, expected schema.GroupVersionKind) (runtime.Object, error) {
	var found metav1.TypeMeta
	if err := json.UnmarshalCaseSensitivePreserveInts(text, &found); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("decode JSON: %v", err))
	}
	if found.Kind != "" || found.APIVersion != "" {
		if err := checkKind(found.GroupVersionKind(), expected); err != nil {
			return nil, err
		}
	}
	into, err := scheme.Scheme.New(expected)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	unknown, err := json.UnmarshalStrict(text, into)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", expected.Kind, expected.Version,
			expected.Kind, err))
	}
	return into, c.reportUnknown(unknown)
}

func (c *call) reportUnknown(unknown []error) error {
	if len(unknown) == 0 {
		return nil
	}
	switch c.query.Get("fieldValidation") {
	case metav1.FieldValidationIgnore:
		return nil
	case metav1.FieldValidationStrict:
		return apierrors.NewBadRequest(runtime.NewStrictDecodingError(unknown).Error())
	}
	for _, err := range unknown {
		c.w.Header().Add("Warning", fmt.Sprintf("299 - %q", err))
	}
	return nil
}

func checkKind(found, expected schema.GroupVersionKind) error {
	if found == expected {
		return nil
	}
	if found.GroupVersion() != expected.GroupVersion() {
		return apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)",
			found.GroupVersion(), expected.GroupVersion()))
	}
	return apierrors.NewBadRequest(fmt.Sprintf("the kind in the data (%s) does not match the expected kind (%s)", found.Kind, expected.Kind))
}

// canonical encodes an object for storage, without unknown fields.
func canonical(o runtime.Object, gvk schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	dropNulls(content)
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	return u, nil
}

// dropNulls removes null fields, which Go types produce for some empty ones.
func dropNulls(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, field := range v {
			if field == nil {
				delete(v, key)
				continue
			}
			dropNulls(field)
		}
	case []any:
		for _, item := range v {
			dropNulls(item)
		}
	}
}
