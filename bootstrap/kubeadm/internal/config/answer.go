package config

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// answer is an API server's refusal without its words. What we send holds tokens, keys and users' passwords; a workload
// cluster, an admission webhook or a policy could repeat it, and errors end up in conditions and logs.
type answer struct{ err error }

// Error implements error.
func (a answer) Error() string {
	var status apierrors.APIStatus
	if !errors.As(a.err, &status) {
		return "the API server could not be asked"
	}
	return fmt.Sprintf("the API server answered %d %s", status.Status().Code, apierrors.ReasonForError(a.err))
}

// Unwrap lets the error be told apart.
func (a answer) Unwrap() error { return a.err }

// answered is an error of a request that sent secrets, safe to be shown. Errors of other origin stay as they are.
func answered(err error) error {
	var status apierrors.APIStatus
	if err == nil || !errors.As(err, &status) {
		return err
	}
	return answer{err}
}
