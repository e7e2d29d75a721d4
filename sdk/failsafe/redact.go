package failsafe

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// answer is an error of an API server without its message.
type answer struct {
	err  error
	code int32
}

// Error implements error.
func (a answer) Error() string {
	return fmt.Sprintf("the API server answered %d %s", a.code, http.StatusText(int(a.code)))
}

// Unwrap returns the original error, for apierrors.IsNotFound and the like.
func (a answer) Unwrap() error { return a.err }

// Redacted returns the error of a request with secrets in a form that may be shown: a response of an API server is reduced to
// its status code. apierrors.IsConflict and the like still work. All other errors, and nil, are returned as they
// are.
func Redacted(err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err
	}
	return answer{err, status.Status().Code}
}
