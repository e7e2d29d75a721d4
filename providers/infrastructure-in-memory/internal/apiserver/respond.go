package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func writeBytes(w http.ResponseWriter, code int, contentType string, text []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(code)
	_, _ = w.Write(text) // fails if the client is gone
}

// writeError sends an error as a Status.
func writeError(w http.ResponseWriter, err error) {
	status := statusOf(err)
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	text, _ := json.Marshal(status) // never fails
	writeBytes(w, int(status.Code), "application/json", text)
}

func statusOf(err error) *metav1.Status {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	result := status.Status()
	result.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	if result.Code == 0 {
		result.Code = http.StatusInternalServerError
	}
	return &result
}

// mustEncode encodes static data.
func mustEncode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("discovery document %T does not encode: %v", v, err))
	}
	return text
}
