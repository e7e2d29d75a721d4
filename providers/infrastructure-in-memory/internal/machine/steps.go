package machine

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/bootstrap"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/etcd"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/lab"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// prepare waits for the prerequisites of a machine, and opens the workload cluster. A new machine does not report the wait at once: see
// step.Progress.
func (c *Controller) prepare(ctx context.Context, s *scope) (step.Result, error) {
	switch {
	case !s.cluster.Status.InfrastructureReady || s.cluster.Spec.InfrastructureRef == nil:
		return step.Wait("the infrastructure of Cluster " + s.cluster.Name).Because(inmemoryv1.WaitingForClusterInfrastructureReason), nil
	case s.secret != "":
	case !s.isControlPlane() && !condition.IsTrue(s.cluster, clusterv1.ControlPlaneInitializedCondition):
		return step.Wait("the control plane to be initialized").Because(inmemoryv1.WaitingControlPlaneInitializedReason), nil
	default:
		return step.Wait("the bootstrap data of Machine " + s.machine.Name).Because(inmemoryv1.WaitingForBootstrapDataReason), nil
	}
	infrastructure := &inmemoryv1.InMemoryCluster{}
	if err := c.Client.Get(ctx, client.ObjectKey{Namespace: s.cluster.Namespace, Name: s.cluster.Spec.InfrastructureRef.Name}, infrastructure); err != nil {
		return step.Done(), fmt.Errorf("reading InMemoryCluster %s: %w", s.cluster.Spec.InfrastructureRef.Name, err)
	}
	if !infrastructure.DeletionTimestamp.IsZero() {
		// Opening the workload cluster now would recreate it, and nothing would close it.
		return step.Wait("deletion: InMemoryCluster " + infrastructure.Name + " is being deleted"), nil
	}
	// The cloud may not have the faults of the annotation yet. The controller of the InMemoryCluster reports invalid ones.
	faults, err := lab.Faults(infrastructure)
	s.dead = err == nil && slices.Contains(faults.DeadMachines, s.obj.Name)
	c.lab.Inherit(infrastructure, s.cluster) // The controller of InMemoryClusters ignores externally managed ones.
	s.group, s.endpoint, err = c.lab.Open(ctx, infrastructure, client.ObjectKeyFromObject(s.cluster))
	return step.Done().KeepCondition(), err
}

// vm starts the machine.
func (c *Controller) vm(ctx context.Context, s *scope) (step.Result, error) {
	controllerutil.AddFinalizer(s.obj, inmemoryv1.MachineFinalizer)
	var err error
	if s.running, err = c.machine(ctx, s); err != nil {
		return step.Done(), fmt.Errorf("starting the machine: %w", err)
	}
	if s.data, err = bootstrap.Decode(s.running.UserData); err != nil {
		return step.Done(), step.Terminal(err)
	}
	if remaining := s.running.RunningAt.Sub(c.Clock.Now()); remaining > 0 && !condition.IsTrue(s.obj, inmemoryv1.VMProvisionedCondition) {
		return starting(remaining, "the machine")
	}
	s.obj.Spec.ProviderID = ptr.To(s.running.ProviderID())
	s.obj.Status.Ready = true
	return step.Done(), nil
}

// machine returns the machine in the cloud, and creates it if it does not exist. A machine of an earlier InMemoryMachine with
// this name, whose finalizer was removed by others, is removed first.
func (c *Controller) machine(ctx context.Context, s *scope) (cloud.Machine, error) {
	found, err := s.group.Machine(s.obj.Name)
	switch {
	case err == nil && found.UID == s.obj.UID:
		return found, nil
	case err == nil:
		if err := c.removeMachine(s.group, client.ObjectKeyFromObject(s.cluster), etcd.Machine{Name: found.Name, UID: found.UID}); err != nil {
			return cloud.Machine{}, err
		}
	case !apierrors.IsNotFound(err):
		return cloud.Machine{}, err
	}
	spec := cloud.MachineSpec{Name: s.obj.Name, UID: s.obj.UID, ControlPlane: s.isControlPlane()}
	if cameUp(s) {
		spec.Restored = true
	} else if spec.UserData, err = c.userData(ctx, s); err != nil {
		return cloud.Machine{}, err
	}
	if condition.IsTrue(s.obj, inmemoryv1.VMProvisionedCondition) {
		spec.Created = s.obj.CreationTimestamp.Time // It was running before a restart of this process.
		return s.group.EnsureMachine(spec)
	}
	if spec.Startup, err = startupOf(s.obj, "vm"); err != nil {
		return cloud.Machine{}, err
	}
	if starting := condition.Get(s.obj, inmemoryv1.VMProvisionedCondition); starting != nil && starting.Reason == inmemoryv1.WaitingForStartupTimeoutReason {
		spec.Created = starting.LastTransitionTime.Time // A restart of this process does not restart the machine.
	}
	return s.group.EnsureMachine(spec)
}

// starting waits for the rest of a simulated startup.
func starting(remaining time.Duration, what string) (step.Result, error) {
	return step.WaitAtMost(remaining, what+" to start").Because(inmemoryv1.WaitingForStartupTimeoutReason), nil
}

// remaining returns the rest of a stage's startup, which begins at the end of an earlier stage.
func (c *Controller) remaining(s *scope, stage string, t, after clusterv1.ConditionType) (time.Duration, error) {
	if condition.IsTrue(s.obj, t) {
		return 0, nil
	}
	startup, err := startupOf(s.obj, stage)
	if err != nil || startup == 0 {
		return 0, err
	}
	since := condition.Get(s.obj, after).LastTransitionTime.Time
	if since.IsZero() {
		since = c.Clock.Now() // The earlier stage ended in this reconcile.
	}
	return since.Add(startup).Sub(c.Clock.Now()), nil
}

// node creates the Node.
func (c *Controller) node(_ context.Context, s *scope) (step.Result, error) {
	if gaveUp(s.obj, inmemoryv1.NodeProvisionedCondition) {
		return step.Stop(), nil
	}
	remaining, err := c.remaining(s, "node", inmemoryv1.NodeProvisionedCondition, inmemoryv1.VMProvisionedCondition)
	if err != nil {
		return step.Done(), err
	}
	if remaining > 0 {
		return starting(remaining, "the kubelet")
	}
	if s.dead && !condition.IsTrue(s.obj, inmemoryv1.NodeProvisionedCondition) {
		// No kubelet has run yet. Removing the fault triggers a reconcile.
		return step.Wait("removal of the machine from deadMachines in annotation " + inmemoryv1.FaultsAnnotation + " of the InMemoryCluster").
			Because(inmemoryv1.WaitingForStartupTimeoutReason), nil
	}
	if err := c.joins(s); err != nil {
		return c.kubeadmFails(s, inmemoryv1.NodeProvisionedCondition, err)
	}
	since := metav1.NewTime(c.Clock.Now())
	if provisioned := condition.Get(s.obj, inmemoryv1.NodeProvisionedCondition); provisioned != nil && provisioned.Status == corev1.ConditionTrue {
		since = provisioned.LastTransitionTime // It was running before a restart of this process.
	}
	if _, err := cloud.Ensure(s.group, newNode(s, since)); err != nil {
		return step.Done(), fmt.Errorf("creating the Node: %w", err)
	}
	if !s.isControlPlane() {
		return step.Stop().WithConditions(condition.True(inmemoryv1.NodeProvisionedCondition)), nil
	}
	return step.Done(), nil
}

// startupOf returns the duration of a stage, with its jitter, which is stable.
func startupOf(obj *inmemoryv1.InMemoryMachine, stage string) (time.Duration, error) {
	settings := settingsOf(obj.Spec.Behaviour, stage)
	if settings.StartupDuration.Duration < 0 {
		return 0, step.Terminal(fmt.Errorf("spec.behaviour.%s.provisioning.startupDuration is %s: it must not be negative", stage, settings.StartupDuration.Duration))
	}
	startup := cloud.Startup{Duration: settings.StartupDuration.Duration}
	if settings.StartupJitter != "" {
		jitter, err := strconv.ParseFloat(settings.StartupJitter, 64)
		if err != nil || !(jitter >= 0) || math.IsInf(jitter, 0) {
			return 0, step.Terminal(fmt.Errorf("spec.behaviour.%s.provisioning.startupJitter is %q: it must be a non-negative number such as 0.2", stage, settings.StartupJitter))
		}
		startup.Jitter = jitter
	}
	return startup.Delay(string(obj.UID), stage), nil
}

func settingsOf(b *inmemoryv1.InMemoryMachineBehaviour, stage string) inmemoryv1.CommonProvisioningSettings {
	switch {
	case b == nil:
	case stage == "vm" && b.VM != nil:
		return b.VM.Provisioning
	case stage == "node" && b.Node != nil:
		return b.Node.Provisioning
	case stage == "etcd" && b.Etcd != nil:
		return b.Etcd.Provisioning
	case stage == "apiServer" && b.APIServer != nil:
		return b.APIServer.Provisioning
	}
	return inmemoryv1.CommonProvisioningSettings{}
}
