package machine

import (
	"context"
	"strconv"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/etcd"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// command does what a ControlPlaneRecovery asks of the machine's etcd member, and answers. A machine without power answers, too: that is
// what a provider would find.
func (c *Controller) command(ctx context.Context, s *scope) (step.Result, error) {
	asked, err := fleetv1.EtcdCommandOf(s.obj.Object)
	if err != nil || asked == nil {
		if err != nil {
			step.WarningTransition(ctx, "InvalidEtcdCommand", "%v", err)
		}
		return step.Done().KeepCondition(), nil
	}
	machine := etcd.Machine{Name: s.obj.Name, UID: s.obj.UID}
	answer := fleetv1.EtcdAnswer{UID: asked.UID, Command: asked.Command}
	if asked.Command == fleetv1.EtcdCommandForceNewCluster {
		if err := etcd.ForceNew(s.group, machine, asked.UID); err != nil {
			answer.Error = err.Error()
			return step.Done().KeepCondition(), fleetv1.SetEtcdAnswer(s.obj.Object, answer)
		}
		step.Event(ctx, "ForcedNewEtcdCluster", "The etcd member on this machine is the only one of its cluster now")
	}
	cluster, self, err := etcd.Self(s.group, machine)
	if err != nil {
		answer.Error = err.Error()
		return step.Done().KeepCondition(), fleetv1.SetEtcdAnswer(s.obj.Object, answer)
	}
	revision := etcd.Revision(s.group)
	answer.Member = &fleetv1.EtcdMemberState{
		ID: hexadecimal(self), ClusterID: hexadecimal(cluster.ID), RaftIndex: revision, Revision: revision,
		RaftTerm: int64(cluster.Term),
	}
	if cluster.Leader != 0 {
		answer.Member.Leader = hexadecimal(cluster.Leader)
	}
	for _, m := range cluster.Members {
		answer.Member.Members = append(answer.Member.Members, hexadecimal(m.ID))
	}
	return step.Done().KeepCondition(), fleetv1.SetEtcdAnswer(s.obj.Object, answer)
}

func hexadecimal(id uint64) string { return strconv.FormatUint(id, 16) }
