package recovery

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// force makes the member of the survivor the only one of etcd.
func (c *Controller) force(ctx context.Context, s *scope) (step.Result, error) {
	if s.completed(forceStep) {
		return step.Done(), nil
	}
	now, name := c.Clock.Now(), s.recovery.Spec.Survivor
	survivor := s.machine(name)
	if survivor == nil {
		return c.fail(s, "Machine "+name+" does not exist any more: use a ControlPlaneRestore, from the latest EtcdBackup")
	}
	answer, err := c.ask(ctx, survivor, fleetv1.EtcdCommand{
		UID: string(s.recovery.UID) + ".force", Command: fleetv1.EtcdCommandForceNewCluster,
	})
	switch {
	case apierrors.IsNotFound(err):
		return c.fail(s, "the infrastructure of Machine "+name+" does not exist any more: use a ControlPlaneRestore, from the latest EtcdBackup")
	case err != nil:
		return step.Result{}, err
	case answer == nil:
		return s.waits(forceStep, now, "the infrastructure provider to make the etcd member on Machine %s the only one", name)
	case answer.Error != "":
		return s.waits(forceStep, now, "the infrastructure provider to make the etcd member on Machine %s the only one. It has failed, and is tried again: %s",
			name, answer.Error)
	}
	s.complete(forceStep, now, "the etcd member on Machine %s is the only one", name)
	return step.Done(), nil
}

// fail ends the recovery. The control plane remains held: its controller would replace Machines of an etcd that does not work.
func (c *Controller) fail(s *scope, message string) (step.Result, error) {
	s.recovery.Status.Phase = fleetv1.OperationPhaseFailed
	s.said = verdict{
		reason:  fleetv1.OperationFailedReason,
		message: brief(message + ". The control plane is held until this object is deleted"),
	}
	return step.Stop(), nil
}

// serve waits until the API server responds through the member of the survivor, which is the only one.
func (c *Controller) serve(ctx context.Context, s *scope) (step.Result, error) {
	if s.completed(serveStep) {
		return step.Done(), nil
	}
	now, survivor := c.Clock.Now(), s.survivor()
	if survivor == nil {
		return c.fail(s, "status.members has no Machine "+s.recovery.Spec.Survivor)
	}
	var members []string
	err := c.with(ctx, s, func(ctx context.Context, w Workload) (err error) {
		members, err = w.Members(ctx, survivor.Node)
		return err
	})
	switch {
	case err != nil:
		return s.waits(serveStep, now, "the API server of the workload cluster to respond: %v", err)
	case !slices.Equal(members, []string{survivor.ID}):
		return s.waits(serveStep, now, "etcd to have one member, %s; it has %v", survivor.ID, members)
	}
	s.complete(serveStep, now, "etcd has one member, %s, and the API server responds", survivor.ID)
	return step.Done(), nil
}

// removeNodes deletes the Nodes of the lost machines: their Machines cannot any more if they were deleted while no API server responded.
func (c *Controller) removeNodes(ctx context.Context, s *scope) (step.Result, error) {
	if s.completed(nodesStep) {
		return step.Done(), nil
	}
	now := c.Clock.Now()
	s.begin(nodesStep, now)
	err := c.with(ctx, s, func(ctx context.Context, w Workload) error {
		for _, m := range s.recovery.Status.Members {
			if m.Machine == s.recovery.Spec.Survivor || m.Node == "" {
				continue
			}
			if err := w.DeleteNode(ctx, m.Node); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return s.waits(nodesStep, now, "the Nodes of lost machines to be deleted: %v", err)
	}
	s.complete(nodesStep, now, "the Nodes of lost machines are deleted")
	return step.Done(), nil
}

// with does something in the workload cluster.
func (c *Controller) with(ctx context.Context, s *scope, do func(context.Context, Workload) error) error {
	ctx, cancel := context.WithTimeout(ctx, workloadTimeout)
	defer cancel()
	w, err := c.connect(ctx, s.key())
	if err != nil {
		return err
	}
	defer w.Close()
	return do(ctx, w)
}

// release gives the control plane back: its controller scales up.
func (c *Controller) release(ctx context.Context, s *scope) (step.Result, error) {
	now := c.Clock.Now()
	for i := range s.machines {
		if err := c.forget(ctx, &s.machines[i], s.recovery); err != nil {
			return step.Result{}, err
		}
	}
	if err := c.holder.Release(ctx, s.controlPlane, s.operation()); err != nil {
		return step.Result{}, err
	}
	s.complete(releaseAll, now, "KubeadmControlPlane %s continues", s.controlPlane.Name)
	s.recovery.Status.Phase, s.recovery.Status.CompletionTime = fleetv1.OperationPhaseCompleted, &metav1.Time{Time: now}
	s.said = verdict{reason: fleetv1.OperationCompletedReason}
	step.Event(ctx, "RecoveryCompleted", "The control plane of Cluster %s works again, with Machine %s", s.recovery.Spec.ClusterName,
		s.recovery.Spec.Survivor)
	return step.Stop(), nil
}
