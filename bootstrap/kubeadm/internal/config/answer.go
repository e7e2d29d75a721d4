package config

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// answer is an API server's refusal without its words. What we send holds tokens, keys and users' passwords; a workload
// cluster, an admission webhook or a policy could repeat it, and errors end up in conditions and logs.
type answer struct {
	err  error
	code int32
}

// Error implements error.
func (a answer) Error() string {
	return fmt.Sprintf("the API server answered %d %s", a.code, http.StatusText(int(a.code)))
}

// Unwrap lets the error be told apart.
func (a answer) Unwrap() error { return a.err }

// answered is an error of a request that sent secrets, safe to be shown. Errors that no API server sent stay as they are.
func answered(err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err
	}
	return answer{err, status.Status().Code}
}
