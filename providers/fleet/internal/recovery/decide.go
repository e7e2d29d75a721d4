package recovery

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/operation"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// verdict is what speaks against a recovery; nothing if reason is empty.
type verdict struct {
	reason, message string
	// after is when it may change with time alone; zero: never.
	after time.Duration
}

// decide ends the reconcile unless the recovery is confirmed and nothing speaks against it.
func (c *Controller) decide(ctx context.Context, s *scope) (step.Result, error) {
	if s.Completed(fleetv1.RecoveryStepCheck) {
		return step.Done(), nil
	}
	against := decide(s.recovery, c.Clock.Now())
	switch against.reason {
	case "":
		return step.Done(), nil
	case fleetv1.OperationRefusedReason:
		return c.refuse(ctx, s, against.message)
	case fleetv1.OperationNotConfirmedReason:
		return s.NotConfirmed(against.message), nil
	}
	after := inspectionInterval
	if against.after > 0 {
		after = min(after, against.after)
	}
	return s.Wait(after, against.message), nil
}

func refused(format string, args ...any) verdict {
	return verdict{reason: fleetv1.OperationRefusedReason, message: fmt.Sprintf(format, args...)}
}

// decide returns what speaks against a recovery, given what the members have answered.
func decide(r *fleetv1.ControlPlaneRecovery, now time.Time) verdict {
	for _, against := range []func(*fleetv1.ControlPlaneRecovery, time.Time) verdict{
		quorum, unreachable, unconfirmed, unfit, behind, others, tooEarly,
	} {
		if v := against(r, now); v.reason != "" {
			return v
		}
	}
	return verdict{}
}

// quorum: etcd works, or may work again without losing anything.
func quorum(r *fleetv1.ControlPlaneRecovery, _ time.Time) verdict {
	responding := reachable(r)
	for _, m := range responding {
		if m.Leader != "" {
			return refused("etcd has a quorum: the member on Machine %s knows leader %s. There is nothing to recover; replace Machines that "+
				"do not respond by deleting them", m.Machine, m.Leader)
		}
	}
	if voters := int(r.Status.Voters); voters > 0 && 2*len(responding) > voters {
		return refused("%d of %d etcd members respond, which is a quorum, but they elect no leader: they probably cannot reach each other. "+
			"Repair the network between Machines %s", len(responding), voters, names(responding))
	}
	return verdict{}
}

// unreachable: there is nothing to recover from.
func unreachable(r *fleetv1.ControlPlaneRecovery, _ time.Time) verdict {
	if len(reachable(r)) > 0 {
		return verdict{}
	}
	var all []string
	for _, m := range r.Status.Members {
		all = append(all, m.Machine+": "+cmp.Or(m.Message, "it does not respond"))
	}
	return refused("no etcd member responds to its infrastructure provider; without one, use a ControlPlaneRestore, from the latest "+
		"EtcdBackup. %s",
		strings.Join(all, "; "))
}

// unconfirmed: the user has not decided, and is told everything that a decision needs.
func unconfirmed(r *fleetv1.ControlPlaneRecovery, _ time.Time) verdict {
	if r.Spec.Confirm != "" {
		return verdict{}
	}
	best, survivor := highest(r), r.Spec.Survivor
	message := fmt.Sprintf("The member on Machine %s has the highest raft index of those that respond, %d", best.Machine, best.RaftIndex)
	if survivor == "" {
		survivor = best.Machine
		message += fmt.Sprintf(": to recover from it, set spec.survivor to %q", survivor)
	} else {
		message += fmt.Sprintf(". To recover from Machine %s, set spec.survivor to %q", survivor, survivor)
	}
	lost := othersThan(r, survivor)
	return verdict{reason: fleetv1.OperationNotConfirmedReason, message: fmt.Sprintf("%s, spec.lostMachines to %s and spec.confirm to %q. "+
		"What this member does not have is lost, and Machines %s are deleted with their disks. If their hardware cannot be deleted, turn it off "+
		"permanently, and set spec.fenced", message, quoted(lost), confirmation(r, survivor), strings.Join(lost, ", "))}
}

// unfit: the survivor cannot be one.
func unfit(r *fleetv1.ControlPlaneRecovery, _ time.Time) verdict {
	survivor := r.Spec.Survivor
	if want := confirmation(r, survivor); r.Spec.Confirm != want {
		return refused("spec.confirm must be %q. Delete this object, and create another one", want)
	}
	i := slices.IndexFunc(r.Status.Members, func(m fleetv1.RecoveryMember) bool { return m.Machine == survivor })
	switch {
	case i < 0:
		return refused("spec.survivor: Machine %q is none of the control plane's: %s", survivor, names(r.Status.Members))
	case !r.Status.Members[i].Reachable:
		return refused("spec.survivor: the etcd member on Machine %s does not respond: %s", survivor, r.Status.Members[i].Message)
	case r.Status.Members[i].Learner:
		return refused("spec.survivor: the etcd member on Machine %s is a learner, whose data may be incomplete", survivor)
	}
	return verdict{}
}

// behind: another member has more data.
func behind(r *fleetv1.ControlPlaneRecovery, _ time.Time) verdict {
	best := highest(r)
	for _, m := range r.Status.Members {
		if m.Machine == r.Spec.Survivor && m.RaftIndex < best.RaftIndex && !r.Spec.AllowLowerRaftIndex {
			return refused("spec.survivor: the member on Machine %s has raft index %d, that on Machine %s has %d: recover from that one, or set "+
				"spec.allowLowerRaftIndex, and lose what only it has", m.Machine, m.RaftIndex, best.Machine, best.RaftIndex)
		}
	}
	return verdict{}
}

// others: the user has to know which Machines are deleted.
func others(r *fleetv1.ControlPlaneRecovery, _ time.Time) verdict {
	want, got := othersThan(r, r.Spec.Survivor), slices.Sorted(slices.Values(r.Spec.LostMachines))
	if slices.Equal(want, got) {
		return verdict{}
	}
	return refused("spec.lostMachines must be all other Machines of the control plane, %s: they are deleted", quoted(want))
}

// tooEarly: the quorum may return by itself.
func tooEarly(r *fleetv1.ControlPlaneRecovery, now time.Time) verdict {
	limit := defaultLoss
	if r.Spec.MinimumLossSeconds != nil {
		limit = time.Duration(*r.Spec.MinimumLossSeconds) * time.Second
	}
	if r.Status.QuorumLostTime == nil {
		return verdict{reason: fleetv1.OperationWaitingReason, message: "Waiting for answers of all infrastructure providers",
			after: operation.Poll}
	}
	if left := r.Status.QuorumLostTime.Add(limit).Sub(now); left > 0 {
		return verdict{reason: fleetv1.OperationWaitingReason, after: left, message: fmt.Sprintf(
			"The quorum must have been lost for %s, spec.minimumLossSeconds: until then, it may return by itself. It is lost since %s", limit,
			r.Status.QuorumLostTime.UTC().Format(time.RFC3339))}
	}
	return verdict{}
}

// confirmation is what spec.confirm must be.
func confirmation(r *fleetv1.ControlPlaneRecovery, survivor string) string {
	return r.Spec.ClusterName + "/" + survivor
}

// reachable returns the members that respond.
func reachable(r *fleetv1.ControlPlaneRecovery) []fleetv1.RecoveryMember {
	return slices.DeleteFunc(slices.Clone(r.Status.Members), func(m fleetv1.RecoveryMember) bool { return !m.Reachable })
}

// highest returns the member with the highest raft index of those that respond, which must exist; learners last.
func highest(r *fleetv1.ControlPlaneRecovery) fleetv1.RecoveryMember {
	return slices.MaxFunc(reachable(r), func(a, b fleetv1.RecoveryMember) int {
		if a.Learner != b.Learner {
			if a.Learner {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.RaftIndex, b.RaftIndex)
	})
}

// othersThan returns the names of all Machines but one, sorted.
func othersThan(r *fleetv1.ControlPlaneRecovery, survivor string) []string {
	all := []string{}
	for _, m := range r.Status.Members {
		if m.Machine != survivor {
			all = append(all, m.Machine)
		}
	}
	slices.Sort(all)
	return all
}

func names(members []fleetv1.RecoveryMember) string {
	var all []string
	for _, m := range members {
		all = append(all, m.Machine)
	}
	return strings.Join(all, ", ")
}

// quoted returns a list as it is written in YAML and JSON.
func quoted(all []string) string {
	words := make([]string, 0, len(all))
	for _, one := range all {
		words = append(words, fmt.Sprintf("%q", one))
	}
	return "[" + strings.Join(words, ", ") + "]"
}
