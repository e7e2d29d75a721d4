package controller

import (
	"context"

	"sigs.k8s.io/cluster-api/sdk/step"
)

// observe records that the conditions are about this generation, also if it cannot be applied.
func observe(_ context.Context, s *scope) (step.Result, error) {
	s.GetStatus().ObservedGeneration = s.Object.GetGeneration()
	return step.Done(), nil
}
