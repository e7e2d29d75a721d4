package rules

import (
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// Replicas returns the default of spec.replicas. It keeps a requested number. Otherwise, if annotations set both limits of the
// cluster autoscaler, it keeps the old number within these limits, and starts a new object at the lower limit. In all other cases
// it returns 1. Old is nil if there is no old number.
func Replicas(requested, old *int32, annotations map[string]string) (int32, error) {
	if requested != nil {
		return *requested, nil
	}
	least, hasLeast := annotations[clusterv1.AutoscalerMinSizeAnnotation]
	most, hasMost := annotations[clusterv1.AutoscalerMaxSizeAnnotation]
	if !hasLeast || !hasMost {
		return 1, nil
	}
	lower, err := size(clusterv1.AutoscalerMinSizeAnnotation, least)
	if err != nil {
		return 0, err
	}
	upper, err := size(clusterv1.AutoscalerMaxSizeAnnotation, most)
	if err != nil {
		return 0, err
	}
	switch {
	case old == nil || *old < lower:
		return lower, nil
	case *old > upper:
		return upper, nil
	}
	return *old, nil
}

func size(annotation, value string) (int32, error) {
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("cannot default spec.replicas: annotation %s is %q, must be an integer", annotation, value))
	}
	return int32(n), nil
}
