package machine

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/bootstrap"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/machines"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/etcd"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// vm starts the machine.
func (c *Controller) vm(ctx context.Context, s *scope) (step.Result, error) {
	controllerutil.AddFinalizer(s.obj.Object, c.kinds.MachineFinalizer)
	if ptr.Deref(s.cluster.Spec.Paused, false) && !s.group.HasMachine(s.obj.Name, s.obj.UID) {
		// After a restore of the management cluster, the machine may have been deleted since the backup.
		return step.Wait("the Cluster to be resumed").KeepCondition(), nil
	}
	var err error
	if s.running, err = c.machine(ctx, s); err != nil {
		return step.Done(), fmt.Errorf("starting the machine: %w", err)
	}
	if s.data, err = bootstrap.Decode(s.running.UserData); err != nil {
		return step.Done(), step.Terminal(err)
	}
	remaining := s.running.RunningAt.Sub(c.Clock.Now())
	if remaining > 0 && !condition.IsTrue(s.obj.Object, inmemoryv1.VMProvisionedCondition) {
		return starting(remaining, "the machine")
	}
	s.obj.SetProviderID(s.running.ProviderID())
	s.obj.SetReady()
	return step.Done(), nil
}

// machine returns the machine in the cloud, and creates it if it does not exist. A machine of an earlier object with
// this name, whose finalizer was removed by others, is removed first.
func (c *Controller) machine(ctx context.Context, s *scope) (machines.Machine, error) {
	found, err := s.group.Machine(s.obj.Name)
	switch {
	case err == nil && found.UID == s.obj.UID:
		return found, nil
	case err == nil:
		if err := c.removeMachine(s.group, client.ObjectKeyFromObject(s.cluster), etcd.Machine{Name: found.Name, UID: found.UID}); err != nil {
			return machines.Machine{}, err
		}
	case !apierrors.IsNotFound(err):
		return machines.Machine{}, err
	}
	spec := machines.Spec{Name: s.obj.Name, UID: s.obj.UID, ControlPlane: s.isControlPlane()}
	if cameUp(s) {
		spec.Restored = true
	} else if spec.UserData, err = c.userData(ctx, s); err != nil {
		return machines.Machine{}, err
	}
	if condition.IsTrue(s.obj.Object, inmemoryv1.VMProvisionedCondition) {
		spec.Created = s.obj.CreationTimestamp.Time // It was running before a restart of this process.
		return s.group.EnsureMachine(spec)
	}
	if spec.Startup, err = startupOf(s.obj, "vm"); err != nil {
		return machines.Machine{}, err
	}
	if starting := condition.Get(s.obj.Object, inmemoryv1.VMProvisionedCondition); starting != nil &&
		starting.Reason == inmemoryv1.WaitingForStartupTimeoutReason {
		spec.Created = starting.LastTransitionTime.Time // A restart of this process does not restart the machine.
	}
	return s.group.EnsureMachine(spec)
}

// cameUp reports whether the machine was running before a restart of this process. An object without status, as after a move
// to another management cluster, still has its provider ID, also if it has been reported meanwhile that it waits for its cluster.
func cameUp(s *scope) bool {
	vm := condition.Get(s.obj.Object, inmemoryv1.VMProvisionedCondition)
	if vm == nil || vm.Status != corev1.ConditionTrue && vm.Reason != inmemoryv1.WaitingForStartupTimeoutReason {
		return s.obj.ProviderID() != ""
	}
	if s.isControlPlane() {
		return condition.IsTrue(s.obj.Object, inmemoryv1.EtcdProvisionedCondition)
	}
	return condition.IsTrue(s.obj.Object, inmemoryv1.NodeProvisionedCondition)
}

// userData reads the bootstrap data for the first start of the machine. It costs a request, because bootstrap data is not
// cached. Later changes of the Secret have no effect.
func (c *Controller) userData(ctx context.Context, s *scope) (string, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: s.machine.Namespace, Name: s.secret}
	if err := c.Client.Get(ctx, key, secret); err != nil {
		return "", fmt.Errorf("reading bootstrap data Secret %s: %w", key, err)
	}
	data, err := bootstrap.Read(secret.Data["value"], string(secret.Data["format"]))
	if err != nil {
		return "", fmt.Errorf("reading key value of Secret %s: %w", key, err)
	}
	return data.Encode()
}
