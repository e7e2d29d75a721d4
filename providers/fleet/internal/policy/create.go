package policy

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/policy/plan"
	"sigs.k8s.io/cluster-api/sdk/naming"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// create creates the backups that are due. One that exists is not in the cache yet.
func (c *Controller) create(ctx context.Context, s *scope) (step.Result, error) {
	var errs []error
	for _, due := range s.plan.Create {
		err := c.Create(ctx, backup(s.policy, due))
		if err != nil && !apierrors.IsAlreadyExists(err) {
			errs = append(errs, fmt.Errorf("creating the EtcdBackup of Cluster %s: %w", due.Cluster, err))
		}
	}
	return step.Done(), errors.Join(errs...)
}

// backup returns the EtcdBackup for what is due. It has no owner: it outlives its policy and its Cluster.
func backup(policy *fleetv1.EtcdBackupPolicy, due plan.Due) *fleetv1.EtcdBackup {
	at := due.At.UTC()
	return &fleetv1.EtcdBackup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: policy.Namespace,
			Name: naming.WithSuffix(due.Cluster,
				at.Format("20060102-150405-")+naming.Suffix(string(policy.UID), string(due.UID), at.Format(time.RFC3339))),
			Labels: map[string]string{
				clusterv1.ClusterNameLabel: naming.LabelValue(due.Cluster), fleetv1.PolicyLabel: policyLabel(policy.Name),
			},
			Annotations: map[string]string{fleetv1.SlotAnnotation: at.Format(time.RFC3339), fleetv1.PolicyLabel: policy.Name},
			Finalizers:  []string{fleetv1.EtcdBackupFinalizer},
		},
		Spec: fleetv1.EtcdBackupSpec{ClusterName: due.Cluster, BackupSettings: policy.Spec.BackupSettings},
	}
}

// policyLabel returns the value of the label PolicyLabel, which may be shorter than the name of a policy.
func policyLabel(name string) string { return naming.LabelValue(name) }

func timeOrNil(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t}
}
