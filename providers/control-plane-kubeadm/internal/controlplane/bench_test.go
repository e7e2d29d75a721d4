package controlplane

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/connection"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/health"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/scale"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/step/steptest"
)

// bench is a Controller in a World.
type bench struct {
	*kcptest.World
	controller *Controller
	s          *scope
	// Workloads, Secrets and MachinePools are those of the controller.
	Workloads    connection.Workloads
	Secrets      client.Reader
	MachinePools bool
}

func newBench(t *testing.T, objects ...client.Object) *bench {
	t.Helper()
	w := kcptest.New(t, objects...)
	return benchOf(w)
}

func benchOf(w *kcptest.World) *bench {
	return &bench{World: w, controller: newController(w.Clients, w.External, w.Client, unreachable{}, nil), s: &scope{}, Secrets: w.Client, Workloads: unreachable{}}
}

// declared returns the controller with the current clients and clocks, which tests replace.
func (b *bench) declared() step.Controller[*controlplanev1.KubeadmControlPlane, *scope] {
	c := b.controller
	c.Clients, c.credentials.Clients, c.machines.Clients, c.members.Clients = b.Clients, b.Clients, b.Clients, b.Clients
	c.machinePools, c.watchesPools, c.credentials.Secrets = b.MachinePools, b.MachinePools, b.Secrets
	c.snapshots.Client, c.snapshots.Clock = b.Client, b.Clock
	c.connector.Clock, c.connector.Workloads = b.Clock, b.Workloads
	return c.declared()
}

// take takes the steps with these names in order.
func (b *bench) take(ctx context.Context, names ...string) (step.Result, error) {
	declared := b.declared()
	b.s.ControlPlane = b.ControlPlane
	var steps []step.Step[*scope]
	for _, name := range names {
		steps = append(steps, declared.Step(name))
	}
	return steptest.Run(ctx, b.KCP, b.s, steps...)
}

// remove takes the steps of a control plane that is being deleted.
func (b *bench) remove(ctx context.Context) (step.Result, error) {
	declared := b.declared()
	b.s.ControlPlane = b.ControlPlane
	var err error
	if b.s.workers, err = b.controller.cachedWorkers(ctx, b.ControlPlane); err != nil {
		return step.Done(), err
	}
	return steptest.Run(ctx, b.KCP, b.s, declared.Deletion...)
}

// next returns the next action.
func (b *bench) next() scale.Action {
	b.s.ControlPlane = b.ControlPlane
	action, _ := scale.Plan(b.s.membership(), b.s.connection.Reason)
	return action
}

// workloads connects to one workload cluster.
type workloads struct{ *kcptest.Workload }

func (w workloads) Get(context.Context, client.ObjectKey) (connection.Workload, error) {
	if err := w.Connected(); err != nil {
		return nil, err
	}
	return w.Workload, nil
}

// connected always connects to one workload cluster.
type connected struct{ connection.Workload }

func (c connected) Get(context.Context, client.ObjectKey) (connection.Workload, error) {
	return c.Workload, nil
}

// unreachable never connects.
type unreachable struct{}

func (unreachable) Get(context.Context, client.ObjectKey) (connection.Workload, error) {
	return nil, remote.ErrNotConnected
}

// three returns a bench with kcptest.Three.
func three(t *testing.T) (*bench, *kcptest.Workload) {
	t.Helper()
	w, f := kcptest.Three(t)
	b := benchOf(w)
	reload(t, b, f)
	return b, f
}

// reload reads everything again, as the next reconcile does.
func reload(t *testing.T, b *bench, f *kcptest.Workload) {
	t.Helper()
	b.Reload(t)
	b.s.connection.Workload = f
	observed, err := health.Observe(t.Context(), b.ControlPlane, f)
	if err != nil {
		t.Fatal(err)
	}
	b.s.observed = observed
}

// play takes the steps of the next reconcile that delete, hold and create Machines.
func (b *bench) play(t *testing.T, f *kcptest.Workload) {
	t.Helper()
	reload(t, b, f)
	b.s.ControlPlane = b.ControlPlane
	declared := b.declared()
	steps := step.All(declared.Step("pre-terminate"), step.InOrder(declared.Step("plan"), declared.Step("scale")))
	if _, err := steptest.Run(t.Context(), b.KCP, b.s, steps); err != nil {
		t.Fatal(err)
	}
	reload(t, b, f)
}
