package recovery

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/operation"
)

// force makes the member of the survivor the only one of etcd. Once that is marked, it must not be asked again: members join when the
// control plane is released.
func (c *Controller) force(ctx context.Context, s *scope) (operation.Outcome, error) {
	name := s.recovery.Spec.Survivor
	survivor := s.machine(name)
	if survivor == nil {
		return operation.Outcome{}, failure("Machine " + name + " no longer exists: use a ControlPlaneRestore, from the latest EtcdBackup")
	}
	answer, err := c.ask(ctx, survivor, fleetv1.EtcdCommand{
		UID: string(s.recovery.UID) + ".force", Command: fleetv1.EtcdCommandForceNewCluster,
	})
	wanted := "the infrastructure provider to make the etcd member on Machine " + name + " the only one"
	switch {
	case apierrors.IsNotFound(err):
		return operation.Outcome{}, failure("the infrastructure of Machine " + name + " no longer exists: use a ControlPlaneRestore, from the " +
			"latest EtcdBackup")
	case err != nil:
		return operation.Outcome{}, err
	case answer == nil:
		return operation.Waits(wanted), nil
	case answer.Error != "":
		return operation.Waits(wanted + ". It has failed, and is tried again: " + answer.Error), nil
	}
	return operation.Done("the etcd member on Machine " + name + " is the only one"), nil
}

// failure ends the recovery. The control plane remains held: its controller would replace Machines of an etcd that does not work.
func failure(message string) error {
	return operation.Failure(message + ". The control plane is held until this object is deleted")
}
