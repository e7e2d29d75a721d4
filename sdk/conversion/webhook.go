package conversion

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/failsafe"
)

// Path is where API servers expect the webhook.
const Path = "/convert"

const (
	// maxReview is the maximum size of a request. API servers send one object, or a page of a list; an object has at most 3 MiB.
	maxReview = 32 << 20
	// maxReviews is the number of requests that are converted at the same time. Others wait, so that memory is bounded.
	maxReviews = 8
	// maxMessage is the maximum length of an error, in bytes: it may quote the object.
	maxMessage = 1000
)

// Webhook serves ConversionReviews of API servers for the kinds of the registry. An object that cannot be converted fails its request,
// which names it, because the protocol has no result per object; API servers send one object per request except in some lists.
func (r *Registry) Webhook() http.Handler {
	return &webhook{registry: r, slots: make(chan struct{}, maxReviews)}
}

type webhook struct {
	registry *Registry
	slots    chan struct{}
}

// ServeHTTP implements http.Handler.
func (w *webhook) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	if request.Method != http.MethodPost {
		http.Error(writer, "a ConversionReview must be posted", http.StatusMethodNotAllowed)
		return
	}
	select {
	case w.slots <- struct{}{}:
		defer func() { <-w.slots }()
	case <-request.Context().Done():
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(writer, request.Body, maxReview))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		http.Error(writer, fmt.Sprintf("a request must have at most %d bytes", maxReview), http.StatusRequestEntityTooLarge)
		return
	}
	if err != nil {
		return // The client has gone.
	}
	review := &apiextensionsv1.ConversionReview{}
	if err := json.Unmarshal(body, review); err != nil || review.Request == nil || review.GroupVersionKind() != reviewKind() {
		http.Error(writer, "the body must be a ConversionReview of "+apiextensionsv1.SchemeGroupVersion.String()+" with a request",
			http.StatusBadRequest)
		return
	}
	review.Response = w.registry.review(request.Context(), review.Request)
	review.Request = nil
	writer.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(writer).Encode(review) // It fails only if the client has gone.
}

func reviewKind() schema.GroupVersionKind {
	return apiextensionsv1.SchemeGroupVersion.WithKind("ConversionReview")
}

// review converts the objects of a request.
func (r *Registry) review(ctx context.Context, request *apiextensionsv1.ConversionRequest) *apiextensionsv1.ConversionResponse {
	converted := make([]runtime.RawExtension, 0, len(request.Objects))
	for i, object := range request.Objects {
		raw, err := r.convertJSON(ctx, object.Raw, request.DesiredAPIVersion)
		if err != nil {
			return failed(request.UID, fmt.Errorf("object %d of %d: %w", i+1, len(request.Objects), err))
		}
		converted = append(converted, runtime.RawExtension{Raw: raw})
	}
	return &apiextensionsv1.ConversionResponse{
		UID: request.UID, ConvertedObjects: converted, Result: metav1.Status{Status: metav1.StatusSuccess},
	}
}

func failed(uid types.UID, err error) *apiextensionsv1.ConversionResponse {
	return &apiextensionsv1.ConversionResponse{UID: uid, ConvertedObjects: []runtime.RawExtension{}, Result: metav1.Status{
		Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity,
		Message: condition.Truncate(err.Error(), maxMessage),
	}}
}

// convertJSON converts the JSON of an object.
func (r *Registry) convertJSON(ctx context.Context, raw []byte, apiVersion string) (result []byte, err error) {
	defer failsafe.Recover("converting an object", &err)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	src := &unstructured.Unstructured{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &src.Object); err != nil {
		return nil, fmt.Errorf("parsing the object: %w", err)
	}
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, fmt.Errorf("parsing the desired version: %w", err)
	}
	dst := newTree(version.WithKind(src.GetKind()))
	if err := r.Convert(ctx, src, dst); err != nil {
		return nil, err
	}
	return json.Marshal(dst.Object)
}
