// Package refusal hides what an API server says when it refuses a request that held secrets.
//
// What we send holds tokens, keys and users' passwords. An admission webhook, a policy, the API server's validation or a
// workload cluster may quote it in the answer, and errors end up in conditions, events and logs. So errors of requests that
// write a Secret, or anything else that holds secrets, go through Redacted. What does not belong here: errors of requests that
// hold none, whose text tells people what to do.
package refusal

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// answer is an API server's refusal without its words.
type answer struct {
	err  error
	code int32
}

// Error implements error.
func (a answer) Error() string {
	return fmt.Sprintf("the API server answered %d %s", a.code, http.StatusText(int(a.code)))
}

// Unwrap keeps the error recognizable as NotFound, Conflict and so on.
func (a answer) Unwrap() error { return a.err }

// Redacted returns the error of a request that sent secrets in a form that may be shown: an API server's answer is reduced to
// its status code. apierrors.IsConflict and the like still recognize it. Errors that no API server sent, and nil, stay as they
// are.
func Redacted(err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err
	}
	return answer{err, status.Status().Code}
}
