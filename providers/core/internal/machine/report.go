package machine

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/drain"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// findings is what the steps of a reconcile found, besides what they set in the status.
type findings struct {
	// bootstrap and infrastructure are the provider objects.
	bootstrap, infrastructure reference.Found
	node                      nodeFinding
	// update is the condition of a Machine that is being updated in place; nil if it is not.
	update *metav1.Condition
	// stage is what the deletion waits for.
	stage deletionStage
	// pods are the Pods that are left on the Node after an attempt to drain it; nil if there was none, or it failed.
	pods *drain.Left
	// revision is what the Machine is compared with; nil if nothing decides whether it is up to date.
	revision *revision
	// minReady is how long the Machine must be ready until it is available.
	minReady time.Duration
	// reports are the conditions that follow from all of this.
	reports []metav1.Condition
}

// report computes the metav1 conditions. The result requeues a Machine that is ready when it becomes available.
func (c *Controller) report(ctx context.Context, s *scope) (step.Result, error) {
	err := c.compare(ctx, s)
	now := c.Clock.Now()
	all := []metav1.Condition{s.updatingReport(), s.deletingReport()}
	all = append(all, s.bootstrapReport()...)
	all = append(all, s.infrastructureReport()...)
	all = append(all, s.nodeReports(now)...)
	all = append(all, s.upToDateReport()...)
	ready := s.readyReport(all)
	available, left := s.availableReport(ready, now)
	s.found.reports = append(all, ready, available)
	return step.Again(left), err
}

// reports returns what the step report found.
func reports(s *scope) []metav1.Condition { return s.found.reports }

// current returns a condition as this reconcile found it, or as the Machine has it; nil if it has none.
func (s *scope) current(now []metav1.Condition, t string) *metav1.Condition {
	if c := report.Find(now, t); c != nil {
		return c
	}
	return report.Get(s.machine, t)
}

func (s *scope) bootstrapReport() []metav1.Condition {
	t, m := clusterv1.MachineBootstrapConfigReadyCondition, s.machine
	ref := &m.Spec.Bootstrap.ConfigRef
	if !ref.IsDefined() {
		return []metav1.Condition{report.True(t, clusterv1.MachineBootstrapDataSecretProvidedReason, "")}
	}
	return reference.Mirror{
		Type: t, Found: s.found.bootstrap, Kind: ref.Kind, Owner: clusterv1.MachineKind,
		Complete: ptr.Deref(m.Status.Initialization.BootstrapDataSecretCreated, false),
		Fallback: reference.BootstrapData,
	}.Ready(m)
}

func (s *scope) infrastructureReport() []metav1.Condition {
	m := s.machine
	return reference.Mirror{
		Type: clusterv1.InfrastructureReadyCondition, Found: s.found.infrastructure, Kind: m.Spec.InfrastructureRef.Kind,
		Complete: ptr.Deref(m.Status.Initialization.InfrastructureProvisioned, false), Owner: clusterv1.MachineKind,
		Fallback: func(obj contract.Object) (bool, string, error) {
			infra := contract.InfrastructureMachineOf(obj)
			done, err := infra.Provisioned()
			return done, infra.ProvisionedField(), err
		},
	}.Ready(m)
}
