package backup

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/naming"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// protect adds the finalizer and the label of the Cluster to a backup that a user has created.
func protect(_ context.Context, s *scope) (step.Result, error) {
	b := s.backup
	if b.Labels[clusterv1.ClusterNameLabel] == "" {
		if b.Labels == nil {
			b.Labels = map[string]string{}
		}
		b.Labels[clusterv1.ClusterNameLabel] = naming.LabelValue(b.Spec.ClusterName)
	}
	if controllerutil.AddFinalizer(b, fleetv1.EtcdBackupFinalizer) {
		return step.Checkpoint(), nil
	}
	return step.Done(), nil
}
