package controlplane

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/connection"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/deletion"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/health"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/scale"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// The steps that are functions of other packages: they get their input from the scope and leave their results there.

// patient makes a step wait while the workload cluster, which did not respond in time, is not called.
func patient(do func(context.Context, *scope) (step.Result, error)) func(context.Context, *scope) (step.Result, error) {
	return func(ctx context.Context, s *scope) (step.Result, error) { return connection.Await(do(ctx, s)) }
}

// hasCluster waits for the Cluster to own the control plane.
func hasCluster(_ context.Context, s *scope) (step.Result, error) {
	if s.Cluster == nil {
		return step.Wait("the Cluster to own it"), nil
	}
	return step.Done(), nil
}

// infrastructure waits for the infrastructure of the Cluster, which Machines need.
func infrastructure(_ context.Context, s *scope) (step.Result, error) {
	if !s.Cluster.Status.InfrastructureReady {
		return step.Wait("the infrastructure of Cluster " + s.Key().String()), nil
	}
	return step.Done(), nil
}

func (c *Controller) complete(ctx context.Context, s *scope) (step.Result, error) {
	return c.machines().Complete(ctx, s.ControlPlane)
}

func (c *Controller) propagate(ctx context.Context, s *scope) (step.Result, error) {
	return c.machines().Propagate(ctx, s.ControlPlane)
}

func (c *Controller) connect(ctx context.Context, s *scope) (result step.Result, err error) {
	s.connection, result, err = c.Connector.Connect(ctx, s.ControlPlane)
	return result, err
}

func initialized(ctx context.Context, s *scope) (step.Result, error) {
	return connection.Initialized(ctx, s.ControlPlane, s.connection.Workload)
}

func stranded(ctx context.Context, s *scope) (result step.Result, err error) {
	s.connection, result = connection.Stranded(ctx, s.ControlPlane, s.connection)
	return result, nil
}

func (c *Controller) inspect(ctx context.Context, s *scope) (result step.Result, err error) {
	s.inspection, result, err = c.inspector().Inspect(ctx, s.ControlPlane, s.connection.Workload, s.connection.Lost)
	return result, err
}

// observe observes the workload cluster, if there is a connection. It sets no conditions.
func observe(ctx context.Context, s *scope) (_ step.Result, err error) {
	if s.connection.Workload != nil {
		s.inspection.Observed, err = health.Observe(ctx, s.ControlPlane, s.connection.Workload)
	}
	return step.Done(), err
}

func (c *Controller) preTerminate(ctx context.Context, s *scope) (step.Result, error) {
	return c.members().PreTerminate(ctx, s.membership())
}

func (c *Controller) removeOrphaned(ctx context.Context, s *scope) (step.Result, error) {
	return c.members().RemoveOrphanedMembers(ctx, s.membership())
}

func (c *Controller) certificates(ctx context.Context, s *scope) (result step.Result, err error) {
	s.newCA, result, err = c.Credentials.Certificates(ctx, s.ControlPlane)
	return result, err
}

// endpoint waits for the address of the API server, which the kubeconfig and Machines need.
func endpoint(_ context.Context, s *scope) (step.Result, error) {
	if !s.Cluster.Spec.ControlPlaneEndpoint.IsValid() {
		return step.Wait("the control plane endpoint of Cluster " + s.Key().String()), nil
	}
	return step.Done(), nil
}

func (c *Controller) kubeconfig(ctx context.Context, s *scope) (step.Result, error) {
	return c.Credentials.Kubeconfig(ctx, s.ControlPlane)
}

// adopt is the last step that creating Machines depends on.
func (c *Controller) adopt(ctx context.Context, s *scope) (step.Result, error) {
	result, err := c.machines().Adopt(ctx, s.ControlPlane)
	s.provided = err == nil && !result.Ends()
	return result, err
}

func (c *Controller) remediate(ctx context.Context, s *scope) (step.Result, error) {
	return c.remediator().Remediate(ctx, s.membership())
}

func decide(_ context.Context, s *scope) (result step.Result, err error) {
	s.action, result = scale.Plan(s.membership(), s.connection.Reason)
	return result, nil
}

func (c *Controller) scale(ctx context.Context, s *scope) (step.Result, error) {
	return c.scaler().Scale(ctx, s.membership(), s.connection.Workload, s.action, s.newCA)
}

// hasFinalizer stops if the finalizer has been removed.
func hasFinalizer(_ context.Context, s *scope) (step.Result, error) {
	if !controllerutil.ContainsFinalizer(s.KCP, controlplanev1.KubeadmControlPlaneFinalizer) {
		return step.Stop(), nil
	}
	return step.Done(), nil
}

// awaitWorkers waits until all workers are deleted.
func awaitWorkers(_ context.Context, s *scope) (step.Result, error) {
	return step.Wait(fmt.Sprintf("the workers of Cluster %s to be deleted (%d)", s.Key(), s.workers)).WithConditions(deletion.Deleting()), nil
}

func (c *Controller) deleteMachines(ctx context.Context, s *scope) (step.Result, error) {
	return c.deleter().Machines(ctx, s.ControlPlane)
}

// release removes the finalizer, and drops the memory of the control plane.
func (c *Controller) release(ctx context.Context, s *scope) (step.Result, error) {
	result, err := c.deleter().Release(ctx, s.ControlPlane)
	if !controllerutil.ContainsFinalizer(s.KCP, controlplanev1.KubeadmControlPlaneFinalizer) {
		c.Connector.Forget(s.KCP.UID)
		c.Credentials.Forget(s.KCP.UID)
		c.maintained.Delete(s.KCP.UID)
	}
	return result, err
}
