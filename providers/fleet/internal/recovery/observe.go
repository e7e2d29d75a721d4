package recovery

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/operation"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// observe asks all members for their state, in rounds, and waits until each has answered, or its time is over.
func (c *Controller) observe(ctx context.Context, s *scope) (step.Result, error) {
	if s.Completed(fleetv1.RecoveryStepCheck) {
		return step.Done(), nil
	}
	status, now := &s.recovery.Status, c.Clock.Now()
	began := status.InspectionTime
	// A confirmed recovery that is refused has ended, so what a new confirmation is judged by must not be older than it.
	changed := status.ObservedGeneration != s.recovery.Generation && !s.Begun(fleetv1.RecoveryStepHold)
	if began == nil || changed || now.Sub(began.Time) >= inspectionInterval || now.Before(began.Add(-inspectionInterval)) {
		began = &metav1.Time{Time: now}
		status.Inspection, status.InspectionTime = status.Inspection+1, began
	}
	slices.SortFunc(s.machines, func(a, b clusterv1.Machine) int { return strings.Compare(a.Name, b.Name) })
	before, voters := status.Members, int32(0)
	status.Members = nil
	var missing []string
	for i := range s.machines {
		m := &s.machines[i]
		answer, failed, err := c.inspect(ctx, s, m)
		if err != nil {
			status.Members = before
			return step.Result{}, err
		}
		member := memberOf(m, answer, failed)
		if answer == nil && failed == "" {
			if now.Sub(began.Time) < answerTimeout {
				missing = append(missing, m.Name)
				member = previous(before, member)
			} else {
				member.Message = fmt.Sprintf("the provider of %s has not answered: it is stopped, or does not know annotation %s",
					member.Infrastructure,
					fleetv1.EtcdCommandAnnotation)
			}
		}
		if answer != nil && answer.Member != nil {
			voters = max(voters, int32(len(answer.Member.Members)))
		}
		status.Members = append(status.Members, member)
	}
	if len(missing) > 0 {
		return step.WaitAtMost(operation.Poll, "the infrastructure providers of Machines "+strings.Join(missing, ", ")+" to answer"), nil
	}
	if status.Voters = voters; voters == 0 {
		status.Voters = int32(len(status.Members))
	}
	loses(s.recovery, began)
	return step.Done(), nil
}

// inspect asks the member of a Machine, and returns its answer, or why there will be none.
func (c *Controller) inspect(ctx context.Context, s *scope, m *clusterv1.Machine) (answer *fleetv1.EtcdAnswer, failed string, err error) {
	uid := fmt.Sprintf("%s.%d", s.recovery.UID, s.recovery.Status.Inspection)
	answer, err = c.ask(ctx, m, fleetv1.EtcdCommand{UID: uid, Command: fleetv1.EtcdCommandInspect})
	if apierrors.IsNotFound(err) {
		return nil, "its infrastructure machine does not exist", nil
	}
	return answer, "", err
}

// memberOf returns what is known about a Machine of the control plane.
func memberOf(m *clusterv1.Machine, answer *fleetv1.EtcdAnswer, failed string) fleetv1.RecoveryMember {
	member := fleetv1.RecoveryMember{
		Machine: m.Name, Node: m.Status.NodeRef.Name, Message: operation.Brief(failed),
		Infrastructure: m.Spec.InfrastructureRef.Kind + "/" + m.Spec.InfrastructureRef.Name,
	}
	switch {
	case answer == nil:
	case answer.Member == nil:
		member.Message = operation.Brief(answer.Error)
	default:
		state := answer.Member
		member.Reachable, member.ID, member.Leader = true, state.ID, state.Leader
		member.Learner = len(state.Members) > 0 && !slices.Contains(state.Members, state.ID)
		member.RaftIndex, member.RaftTerm, member.Revision = state.RaftIndex, state.RaftTerm, state.Revision
	}
	return member
}

// previous returns what the previous round has shown about a member, so that the status does not flicker.
func previous(before []fleetv1.RecoveryMember, member fleetv1.RecoveryMember) fleetv1.RecoveryMember {
	i := slices.IndexFunc(before, func(m fleetv1.RecoveryMember) bool { return m.Machine == member.Machine })
	if i < 0 {
		return member
	}
	return before[i]
}

// loses records since when the quorum is lost. If no member responds, that is unknown.
func loses(r *fleetv1.ControlPlaneRecovery, round *metav1.Time) {
	leads := func(m fleetv1.RecoveryMember) bool { return m.Leader != "" }
	switch responding := reachable(r); {
	case slices.ContainsFunc(responding, leads):
		r.Status.QuorumLostTime = nil
	case len(responding) > 0 && r.Status.QuorumLostTime == nil:
		r.Status.QuorumLostTime = &metav1.Time{Time: round.Truncate(time.Second)}
	}
}
