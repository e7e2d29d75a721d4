package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/step"
)

// remediate replaces Machines that health checks found unhealthy, one at a time: it deletes the Machine, and scaling up
// makes the replacement. What is under way is on record in an annotation, from before the Machine is touched until its
// replacement exists, so that an interruption is continued and not begun anew.
func (c *Controller) remediate(ctx context.Context, s *scope) (step.Result, error) {
	if err := c.recovered(ctx, s); err != nil {
		return step.Result{}, err
	}
	underWay, err := s.remediation()
	if err != nil {
		return step.Result{}, err
	}
	candidate := s.candidate(underWay)
	switch {
	case candidate == nil:
		return step.Done(), nil
	case candidate.deleting():
		return step.Wait("Machine " + candidate.Name + " to go"), nil
	case underWay == nil:
		record, wait := s.attempt(candidate, c.Clock.Now())
		if wait != nil {
			return c.postpone(ctx, candidate, *wait)
		}
		underWay = &record
	}
	if why := s.mayRemediate(candidate); why != nil {
		return c.postpone(ctx, candidate, *why)
	}
	if stale, err := c.confirm(ctx, s); stale != "" || err != nil {
		return catchUp(stale), err
	}
	if err := s.setRemediation(underWay); err != nil {
		return step.Result{}, err
	}
	return step.Run(ctx, s,
		step.Do("record", func(context.Context, *scope) (step.Result, error) { return step.Checkpoint(), nil }),
		step.Do("replace", func(ctx context.Context, s *scope) (step.Result, error) {
			return c.replace(ctx, s, candidate, underWay)
		}))
}

// postponed says why a Machine is not remediated now.
type postponed struct {
	reason   string
	severity clusterv1.ConditionSeverity
	message  string
	// after is when to look again although nothing has happened; zero for never.
	after time.Duration
}

func waiting(after time.Duration, format string, args ...any) *postponed {
	return &postponed{clusterv1.WaitingForRemediationReason, clusterv1.ConditionSeverityWarning, fmt.Sprintf(format, args...), after}
}

// postpone states on the Machine why it is not remediated now, and lets the other steps go on.
func (c *Controller) postpone(ctx context.Context, m *machine, why postponed) (step.Result, error) {
	before := m.Status.Conditions.DeepCopy()
	condition.Set(m, condition.False(clusterv1.MachineOwnerRemediatedCondition, why.severity, why.reason, "%s", why.message))
	if err := c.SaveConditions(ctx, m.Machine, before); err != nil {
		return step.Result{}, err
	}
	if why.after > 0 {
		return step.Again(why.after), nil
	}
	return step.Done(), nil
}

// recovered takes Machines that are healthy again off the list, and ends a remediation whose replacement exists, or that
// is not needed any more.
func (c *Controller) recovered(ctx context.Context, s *scope) error {
	for _, m := range s.machines {
		if condition.IsFalse(m, clusterv1.MachineOwnerRemediatedCondition) && condition.IsTrue(m, clusterv1.MachineHealthCheckSucceededCondition) {
			before := m.Status.Conditions.DeepCopy()
			condition.Delete(m, clusterv1.MachineOwnerRemediatedCondition)
			if err := c.SaveConditions(ctx, m.Machine, before); err != nil {
				return err
			}
		}
	}
	record, ok := s.kcp.Annotations[controlplanev1.RemediationInProgressAnnotation]
	if !ok {
		return nil
	}
	underWay, err := s.remediation()
	if err != nil {
		return err
	}
	replaced := slices.ContainsFunc(s.machines, func(m *machine) bool { return m.Annotations[controlplanev1.RemediationForAnnotation] == record })
	failed := s.named(underWay.Machine)
	if replaced || failed == nil && len(s.machines) >= s.desired() || failed != nil && failed.unharmed() {
		// Another leader may have recorded the next remediation; that of an old view must not take it away.
		stale, err := c.confirmControlPlane(ctx, s)
		if stale != "" || err != nil {
			return err
		}
		delete(s.kcp.Annotations, controlplanev1.RemediationInProgressAnnotation)
	}
	return nil
}

// unharmed: the Machine recovered before it was deleted, and is a member of etcd, so it may stay.
func (m *machine) unharmed() bool {
	return !m.deleting() && !m.failed() && condition.IsTrue(m, controlplanev1.MachineEtcdMemberHealthyCondition)
}

// failed: a health check asks for remediation.
func (m *machine) failed() bool {
	return condition.IsFalse(m, clusterv1.MachineHealthCheckSucceededCondition) && condition.IsFalse(m, clusterv1.MachineOwnerRemediatedCondition)
}

// candidate is the Machine to remediate: the one whose remediation is under way and no other, else one without Node
// before others, and the oldest of them. Nil: none.
func (s *scope) candidate(underWay *controlplanev1.LastRemediationStatus) *machine {
	if underWay != nil {
		m := s.named(underWay.Machine)
		if m == nil || m.deleting() {
			return nil // its replacement comes first
		}
		return m
	}
	var first *machine
	for _, m := range s.machines {
		if !m.failed() {
			continue
		}
		if first == nil || m.node() == "" && first.node() != "" {
			first = m
		}
	}
	return first
}

// remediation is what is on record as under way; nil when nothing is.
func (s *scope) remediation() (*controlplanev1.LastRemediationStatus, error) {
	return record(s.kcp.Annotations, controlplanev1.RemediationInProgressAnnotation)
}

func record(annotations map[string]string, key string) (*controlplanev1.LastRemediationStatus, error) {
	raw, ok := annotations[key]
	if !ok {
		return nil, nil
	}
	r := &controlplanev1.LastRemediationStatus{}
	if err := json.Unmarshal([]byte(raw), r); err != nil {
		return nil, step.Terminal(fmt.Errorf("annotation %s cannot be read, remove it: %w", key, err))
	}
	return r, nil
}

func (s *scope) setRemediation(r *controlplanev1.LastRemediationStatus) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("recording a remediation: %w", err)
	}
	if s.kcp.Annotations == nil {
		s.kcp.Annotations = map[string]string{}
	}
	s.kcp.Annotations[controlplanev1.RemediationInProgressAnnotation] = string(raw)
	s.kcp.Status.LastRemediation = r
	return nil
}

// attempt is the record of a new remediation. The failure of a replacement soon after it was made is a retry, and
// those are limited; later it is a new problem.
func (s *scope) attempt(m *machine, now time.Time) (controlplanev1.LastRemediationStatus, *postponed) {
	fresh := controlplanev1.LastRemediationStatus{Machine: m.Name, Timestamp: metav1.NewTime(now.UTC().Truncate(time.Second))}
	last, err := record(m.Annotations, controlplanev1.RemediationForAnnotation)
	if err != nil || last == nil {
		return fresh, nil
	}
	strategy := controlplanev1.RemediationStrategy{}
	if s.kcp.Spec.RemediationStrategy != nil {
		strategy = *s.kcp.Spec.RemediationStrategy
	}
	healthy := controlplanev1.DefaultMinHealthyPeriod
	if strategy.MinHealthyPeriod != nil {
		healthy = strategy.MinHealthyPeriod.Duration
	}
	since := now.Sub(last.Timestamp.Time)
	if since >= healthy {
		return fresh, nil
	}
	if left := strategy.RetryPeriod.Duration - since; left > 0 {
		return fresh, waiting(left, "The previous Machine was replaced less than %s ago", strategy.RetryPeriod.Duration)
	}
	if strategy.MaxRetry != nil && last.RetryCount >= *strategy.MaxRetry {
		return fresh, waiting(healthy-since, "The limit of %d retries is reached", *strategy.MaxRetry)
	}
	fresh.RetryCount = last.RetryCount + 1
	return fresh, nil
}

// mayRemediate says why a Machine cannot be removed now; nil when it can. Before the cluster is initialised there is
// nothing to lose.
func (s *scope) mayRemediate(m *machine) *postponed {
	if !s.begun() {
		return nil
	}
	if len(s.machines) < 2 {
		return waiting(0, "The only Machine of a control plane cannot be replaced")
	}
	for _, other := range s.machines {
		if other.deleting() {
			return waiting(0, "Another Machine is being deleted")
		}
		if other != m && other.node() == "" && !condition.IsFalse(other, clusterv1.MachineHealthCheckSucceededCondition) {
			return waiting(0, "Another Machine is coming up")
		}
	}
	if s.stacked() && s.observed == nil {
		return waiting(0, "The workload cluster cannot be reached")
	}
	return nil
}

// replace removes the Machine. Whatever kept it from being removed is stated on it.
func (c *Controller) replace(ctx context.Context, s *scope, m *machine, underWay *controlplanev1.LastRemediationStatus) (step.Result, error) {
	if s.begun() && s.stacked() {
		why := c.mayLeave(ctx, s, m)
		if why == noSuccessor {
			return c.postpone(ctx, m, postponed{clusterv1.RemediationFailedReason, clusterv1.ConditionSeverityWarning, "There is no healthy etcd member that can lead", etcdBackstop})
		}
		if why != "" {
			return c.postpone(ctx, m, *waiting(etcdBackstop, "etcd needs %s", why))
		}
	}
	if err := c.deleteMachine(ctx, s, m); err != nil {
		if step.IsStale(err) {
			return step.Result{}, err
		}
		_, saveErr := c.postpone(ctx, m, postponed{clusterv1.RemediationFailedReason, clusterv1.ConditionSeverityError, "The Machine cannot be deleted", 0})
		return step.Result{}, errors.Join(err, saveErr)
	}
	_, err := c.postpone(ctx, m, postponed{clusterv1.RemediationInProgressReason, clusterv1.ConditionSeverityWarning, "", 0})
	return step.Wait(fmt.Sprintf("Machine %s to go, which is being remediated (retry %d)", m.Name, underWay.RetryCount)), err
}
