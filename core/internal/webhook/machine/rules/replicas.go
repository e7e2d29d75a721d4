package rules

import (
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// Replicas is what spec.replicas becomes. What the request says is kept. If it says nothing and annotations
// give both bounds of the cluster autoscaler, the autoscaler's number stays, brought within the bounds; a new
// object starts at the lower one. In all other cases it is 1. Old is nil when there is no old number.
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
		return 0, apierrors.NewBadRequest(fmt.Sprintf("spec.replicas cannot be defaulted: annotation %s is %q, it must be a number", annotation, value))
	}
	return int32(n), nil
}
