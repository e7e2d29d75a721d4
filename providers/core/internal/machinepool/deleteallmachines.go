package machinepool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// machinesBackstop bounds the wait for Machines to be deleted, in case the event of the last one is lost.
const machinesBackstop = time.Minute

// deleteAllMachines deletes the Machines that the infrastructure provider left behind, and waits until none exists in the API server.
func (c *Controller) deleteAllMachines(ctx context.Context, s *scope) (step.Result, error) {
	left, err := c.ownMachines(ctx, c.Client, s)
	if err == nil && len(left) == 0 {
		left, err = c.ownMachines(ctx, c.Live, s)
	}
	if err != nil || len(left) == 0 {
		return step.Done(), err
	}
	var errs []error
	for _, m := range left {
		if !m.DeletionTimestamp.IsZero() {
			continue
		}
		if err := c.DeleteAny(ctx, m); err != nil {
			errs = append(errs, fmt.Errorf("deleting Machine %s: %w", m.Name, err))
		}
	}
	return step.WaitAtMost(machinesBackstop, fmt.Sprintf("%d Machines to be deleted", len(left))), errors.Join(errs...)
}

// ownMachines lists the Machines that the pool controls.
func (c *Controller) ownMachines(ctx context.Context, from client.Reader, s *scope) ([]*clusterv1.Machine, error) {
	all, err := machines(ctx, from, s.pool)
	return slices.DeleteFunc(all, func(m *clusterv1.Machine) bool { return !metav1.IsControlledBy(m, s.pool) }), err
}
