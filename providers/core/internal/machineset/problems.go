package machineset

import (
	"context"
	"errors"

	"sigs.k8s.io/cluster-api/sdk/step"
)

// problems returns the errors of individual objects.
func problems(_ context.Context, s *scope) (step.Result, error) {
	return step.Done(), errors.Join(s.problems...)
}
