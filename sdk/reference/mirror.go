package reference

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Mirror makes a metav1 condition of an object from that of a provider object which it refers to.
type Mirror struct {
	// Type is the condition's type, and From that of the provider object.
	Type, From string
	// Reasons are used where the provider object gives none.
	Reasons report.Reasons
	// Kind is that of the provider object.
	Kind string
	// Found is the provider object.
	Found Found
	// Complete is set if the object has been ready before, so that it must exist. Deleting is set if its owner is being deleted, and
	// Owner is how messages call that.
	Complete, Deleting bool
	Owner              string
	// Fallback returns the state of an object without the condition, and the field that has it.
	Fallback func(contract.Object) (done bool, field string, err error)
}

// Report returns the condition. before is the one that the owner has; nil if it has none.
func (m Mirror) Report(before *metav1.Condition) metav1.Condition {
	switch {
	case m.Found.Err != nil && step.IsStale(m.Found.Err) && before != nil:
		return *before
	case m.Found.Err != nil:
		return report.Unknown(m.Type, clusterv1.InternalErrorReason, "%s", Explained(m.Found.Err))
	case m.Found.Object == nil:
		return m.absent()
	}
	conditions, err := m.Found.Object.Reports()
	if err != nil {
		return report.Unknown(m.Type, clusterv1.InvalidConditionReportedReason, "%s", err.Error())
	}
	if c := report.Find(conditions, m.From); c != nil {
		return m.of(*c)
	}
	done, field, err := m.Fallback(*m.Found.Object)
	switch {
	case err != nil:
		return report.Unknown(m.Type, clusterv1.InvalidConditionReportedReason, "%s", err.Error())
	case done:
		return report.True(m.Type, m.Reasons.True, "")
	}
	return report.False(m.Type, m.Reasons.False, "%s %s is false", m.Kind, field)
}

// Owner is an object that refers to provider objects.
type Owner interface {
	report.Getter
	metav1.Object
}

// Ready returns the condition of owner, whose kind is m.Owner, for the condition Ready of the provider object; none if nothing has looked
// for that, so that the owner keeps the condition that it has.
func (m Mirror) Ready(owner Owner) []metav1.Condition {
	if !m.Found.Looked {
		return nil
	}
	m.From, m.Reasons = clusterv1.ReadyCondition, report.ReasonsOf(clusterv1.ReadyReason)
	m.Deleting = owner.GetDeletionTimestamp() != nil
	return []metav1.Condition{m.Report(report.Get(owner, m.Type))}
}

// BootstrapData is the Fallback for bootstrap configs.
func BootstrapData(obj contract.Object) (done bool, field string, err error) {
	config := contract.BootstrapOf(obj)
	done, err = config.DataSecretCreated()
	return done, config.DataSecretCreatedField(), err
}

// of returns the condition for that of the provider object.
func (m Mirror) of(c metav1.Condition) metav1.Condition {
	if !isValid(c) {
		return report.Unknown(m.Type, clusterv1.InvalidConditionReportedReason,
			"condition %s of %s has status %q and reason %q, which are invalid", m.From, m.Kind,
			condition.Brief(string(c.Status)), condition.Brief(c.Reason))
	}
	if c.Status == metav1.ConditionTrue && c.Reason == clusterv1.NoReasonReportedReason {
		c.Reason = m.Reasons.True
	}
	mirrored := report.Unknown(m.Type, c.Reason, "%s", condition.Truncate(c.Message, maxMessage))
	mirrored.Status = c.Status
	return mirrored
}

// absent is the condition for an object that does not exist.
func (m Mirror) absent() metav1.Condition {
	switch {
	case m.Complete && m.Deleting:
		return report.False(m.Type, clusterv1.ObjectDeletedReason, "%s has been deleted", m.Kind)
	case m.Complete:
		return report.False(m.Type, clusterv1.ObjectDeletedReason, "%s has been deleted while the %s still exists", m.Kind, m.Owner)
	}
	return report.False(m.Type, clusterv1.ObjectDoesNotExistReason, "%s does not exist", m.Kind)
}

// Explained returns the text of an error about a reference; others are in the log.
func Explained(err error) string {
	if of := explain(err); of != nil {
		return of.Error()
	}
	return "Please check controller logs for errors"
}

// maxMessage is how much of a provider's message is mirrored, and maxReason how long a reason can be.
const (
	maxMessage = 4096
	maxReason  = 1024
)

// isValid reports whether an API server would accept status and reason of a condition: the definitions of providers may be less strict.
func isValid(c metav1.Condition) bool {
	for i, r := range c.Reason {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		other := '0' <= r && r <= '9' || r == '_' || (i < len(c.Reason)-1 && (r == ',' || r == ':'))
		if !letter && (i == 0 || !other) {
			return false
		}
	}
	return len(c.Reason) <= maxReason &&
		slices.Contains([]metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}, c.Status)
}
