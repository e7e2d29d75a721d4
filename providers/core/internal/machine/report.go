package machine

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta2 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// findings is what the steps of a reconcile found, besides what they set in the status.
type findings struct {
	// bootstrap and infrastructure are the provider objects.
	bootstrap, infrastructure providedObject
	node                      nodeFinding
	// stage is what the deletion waits for.
	stage deletionStage
	// revision is what the Machine is compared with; nil if nothing decides whether it is up to date.
	revision *revision
	// minReady is how long the Machine must be ready until it is available.
	minReady time.Duration
	// reports are the conditions that follow from all of this.
	reports []metav1.Condition
}

// providedObject is a provider object as a step found it.
type providedObject struct {
	looked bool
	object *contract.Object
	err    error
}

func found(obj contract.Object, exists bool, err error) providedObject {
	p := providedObject{looked: true, err: err}
	if exists {
		p.object = &obj
	}
	return p
}

// report computes the metav1 conditions. The result requeues a Machine that is ready when it becomes available.
func (c *Controller) report(ctx context.Context, s *scope) (step.Result, error) {
	err := c.compare(ctx, s)
	now := c.Clock.Now()
	all := []metav1.Condition{
		report.False(clusterv1beta2.MachineUpdatingCondition, clusterv1beta2.MachineNotUpdatingReason, ""), s.deletingReport(),
	}
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
	t, m := clusterv1beta2.MachineBootstrapConfigReadyCondition, s.machine
	ref := m.Spec.Bootstrap.ConfigRef
	if ref == nil {
		return []metav1.Condition{report.True(t, clusterv1beta2.MachineBootstrapDataSecretProvidedReason, "")}
	}
	return s.mirrored(s.found.bootstrap, reference.Mirror{
		Type: t, Kind: ref.Kind, Complete: m.Status.BootstrapReady,
		Fallback: func(obj contract.Object) (bool, string, error) {
			config := contract.BootstrapOf(obj)
			done, err := config.DataSecretCreated()
			return done, config.DataSecretCreatedField(), err
		},
	})
}

func (s *scope) infrastructureReport() []metav1.Condition {
	m := s.machine
	return s.mirrored(s.found.infrastructure, reference.Mirror{
		Type: clusterv1beta2.InfrastructureReadyCondition, Kind: m.Spec.InfrastructureRef.Kind, Complete: m.Status.InfrastructureReady,
		Fallback: func(obj contract.Object) (bool, string, error) {
			infra := contract.InfrastructureMachineOf(obj)
			done, err := infra.Provisioned()
			return done, infra.ProvisionedField(), err
		},
	})
}

// mirrored returns the condition for a provider object; none if no step looked for it, so that the Machine keeps the one it has.
func (s *scope) mirrored(p providedObject, m reference.Mirror) []metav1.Condition {
	if !p.looked {
		return nil
	}
	m.From, m.Reasons, m.Owner = clusterv1beta2.ReadyCondition, report.ReasonsOf(clusterv1beta2.ReadyReason), "Machine"
	m.Object, m.Err, m.Deleting = p.object, p.err, s.machine.DeletionTimestamp != nil
	return []metav1.Condition{m.Report(report.Get(s.machine, m.Type))}
}
