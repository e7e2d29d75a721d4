package machine

import (
	"context"
	"fmt"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/etcdhost"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// etcdCommand has the Host do what a ControlPlaneRecovery asks of its etcd member, and answers. It takes minutes, so the command runs
// detached, as bootstrap data does; repeating it is harmless.
func (c *Controller) etcdCommand(ctx context.Context, s *scope) (step.Result, error) {
	asked, err := fleetv1.EtcdCommandOf(s.obj)
	if err != nil {
		step.WarningTransition(ctx, "InvalidEtcdCommand", "%v", err)
	}
	if asked == nil {
		return step.Done(), nil
	}
	answer := fleetv1.EtcdAnswer{UID: asked.UID, Command: asked.Command}
	output, err := c.login(ctx, s.host, "etcd", map[string]string{
		"command": etcdhost.Script(*asked), "uid": asked.UID, "limit": fmt.Sprint(int(etcdhost.Timeout.Seconds())),
	}, nil)
	switch {
	case err != nil:
		answer.Error = err.Error()
	case output == "running" || output == "busy":
		return step.Again(pollInterval), nil
	case output == "none" || output == "conflict":
		answer.Error = "Host " + s.host.Name + " was not bootstrapped for this machine"
	default:
		answer = etcdhost.Answer(*asked, output)
	}
	result := step.Done()
	if asked.Command == fleetv1.EtcdCommandForceNewCluster && answer.Error != "" {
		result = step.Again(retryInterval)
	} else if asked.Command == fleetv1.EtcdCommandForceNewCluster {
		step.Event(ctx, "ForcedNewEtcdCluster", "The etcd member on Host %s is the only one of its cluster now", s.host.Name)
	}
	return result, fleetv1.SetEtcdAnswer(s.obj, answer)
}
