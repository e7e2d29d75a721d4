package restore

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/operation"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// callLimit is how long a request to the workload cluster may take, with connecting to it.
const callLimit = 15 * time.Second

// create lets the controller of the control plane create the first Machine, and waits until it runs the API server.
func (c *Controller) create(ctx context.Context, s *scope) (operation.Outcome, error) {
	machines, err := c.controlPlaneMachines(ctx, s.clusterKey())
	if err != nil {
		return operation.Outcome{}, err
	}
	if len(machines) == 0 {
		if err := c.renew(ctx, s); err != nil {
			return operation.Outcome{}, fmt.Errorf("renewing the address of the data: %w", err)
		}
	}
	observed, err := c.set(ctx, s, fleetv1.OperationModeRestore)
	switch {
	case err != nil:
		return operation.Outcome{}, err
	case len(machines) == 0 && !observed:
		return operation.Waits("the controller of KubeadmControlPlane " + s.kcp.Name + " to begin the restore"), nil
	case len(machines) == 0:
		return operation.Waits("KubeadmControlPlane " + s.kcp.Name + " to create the first Machine"), nil
	case len(machines) > 1:
		return operation.Waits(fmt.Sprintf("all control plane Machines but one to be deleted: there are %d", len(machines))), nil
	}
	m := &machines[0]
	if !m.Status.NodeRef.IsDefined() {
		return operation.Waits("Machine " + m.Name + " to start: " + progress(m) + c.expired(s, m)), nil
	}
	if err := c.answers(ctx, s, m.Status.NodeRef.Name); err != nil {
		return operation.Outcome{}, err
	}
	s.restore.Status.MachineName = m.Name
	return operation.Done("Machine " + m.Name + " runs the control plane"), nil
}

// answers returns an error if the API server does not return a Node.
func (c *Controller) answers(ctx context.Context, s *scope, node string) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	control, err := c.connect(ctx, s.clusterKey())
	if err != nil {
		return err
	}
	defer control.Close()
	if err := control.Workload().Get(ctx, client.ObjectKey{Name: node}, &corev1.Node{}); err != nil {
		return fmt.Errorf("the API server of the restored control plane does not respond: %w", err)
	}
	return nil
}

// progress returns what a Machine waits for.
func progress(m *clusterv1.Machine) string {
	for _, t := range []string{
		clusterv1.MachineBootstrapConfigReadyCondition, clusterv1.MachineInfrastructureReadyCondition, clusterv1.MachineNodeReadyCondition,
	} {
		if r := report.Get(m, t); r != nil && r.Status != "True" {
			return t + ": " + r.Reason + " " + r.Message
		}
	}
	return "it has no Node yet"
}

// expired returns what to do if a Machine can no longer download its data.
func (c *Controller) expired(s *scope, m *clusterv1.Machine) string {
	if s.restore.Status.Data.ExpirationTime.After(c.Clock.Now()) {
		return ""
	}
	return ". It has not started while the address of its data was valid: delete Machine " + m.Name + ", and another one is created"
}
