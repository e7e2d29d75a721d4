package recovery

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

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
		return c.fail(s, "Machine "+name+" no longer exists: use a ControlPlaneRestore, from the latest EtcdBackup")
	}
	answer, err := c.ask(ctx, survivor, fleetv1.EtcdCommand{
		UID: string(s.recovery.UID) + ".force", Command: fleetv1.EtcdCommandForceNewCluster,
	})
	switch {
	case apierrors.IsNotFound(err):
		return c.fail(s, "the infrastructure of Machine "+name+" no longer exists: use a ControlPlaneRestore, from the latest EtcdBackup")
	case err != nil:
		return step.Result{}, err
	case answer == nil:
		return s.waits(forceStep, now, "the infrastructure provider to make the etcd member on Machine %s the only one", name)
	case answer.Error != "":
		return s.waits(forceStep, now, "the infrastructure provider to make the etcd member on Machine %s the only one. "+
			"It has failed, and is tried again: %s",
			name, answer.Error)
	}
	s.complete(forceStep, now, "the etcd member on Machine %s is the only one", name)
	s.said = verdict{reason: fleetv1.OperationRunningReason, message: "The etcd member on Machine " + name + " is the only one"}
	// From here on, it must not be asked again: members join when the control plane is released.
	return step.WaitAtMost(poll, "the mark of the new cluster to be written"), nil
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
