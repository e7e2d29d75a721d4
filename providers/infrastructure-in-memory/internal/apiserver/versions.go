package apiserver

import (
	"net/http"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/faults"
)

var (
	plainVersion  = regexp.MustCompile(`"resourceVersion":"(\d+)"`)
	markedVersion = regexp.MustCompile(`"resourceVersion":\s*"v(\d+)"`)
)

// versioned makes resource versions non-numeric. Objects and events are written as a whole.
type versioned struct{ http.ResponseWriter }

// WriteHeader implements http.ResponseWriter. The content length changes.
func (v *versioned) WriteHeader(code int) {
	v.Header().Del("Content-Length")
	v.ResponseWriter.WriteHeader(code)
}

// Write implements io.Writer.
func (v *versioned) Write(text []byte) (int, error) {
	if _, err := v.ResponseWriter.Write(plainVersion.ReplaceAll(text, []byte(`"resourceVersion":"v$1"`))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Unwrap lets http.ResponseController reach the connection.
func (v *versioned) Unwrap() http.ResponseWriter { return v.ResponseWriter }

// unmark reverts versioned in a request body.
func unmark(body []byte) []byte {
	return markedVersion.ReplaceAll(body, []byte(`"resourceVersion":"$1"`))
}

// unmarkObject is unmark for an object that was sent in another encoding.
func unmarkObject(o runtime.Object) {
	if with, ok := o.(metav1.Object); ok {
		with.SetResourceVersion(strings.TrimPrefix(with.GetResourceVersion(), "v"))
	}
}

// isLegacy reports whether a cluster emulates an old API server and etcd.
func isLegacy(g *cloud.Group) bool { return g.Faults().Emulate == faults.EmulateV17 }
