package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/job"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/etcdhost"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// etcdCommand does what a ControlPlaneRecovery asks of the etcd member in the container, in the background, and answers. It does not depend
// on the other steps: the machine is not healthy then.
func (c *Controller) etcdCommand(ctx context.Context, s *scope) (step.Result, error) {
	asked, err := fleetv1.EtcdCommandOf(s.obj.Object)
	if err != nil {
		step.WarningTransition(ctx, "InvalidEtcdCommand", "%v", err)
		return step.Done(), nil
	}
	if asked == nil {
		return step.Done(), nil
	}
	key := s.jobKey("etcd " + asked.UID)
	state, err := c.engine.Inspect(ctx, s.Container())
	switch {
	case engine.IsNotFound(err):
		return step.Done(), fleetv1.SetEtcdAnswer(s.obj.Object, refusal(asked, "there is no container "+s.Container()))
	case err != nil:
		return step.Done(), failed(err)
	case s.Claim().Check(s.Container(), state.Labels) != nil:
		return step.Done(), fleetv1.SetEtcdAnswer(s.obj.Object, refusal(asked, "container "+s.Container()+" belongs to another machine"))
	case !state.Running || state.Paused:
		return step.Done(), fleetv1.SetEtcdAnswer(s.obj.Object, refusal(asked, "container "+s.Container()+" does not run"))
	}
	done := c.runEtcdCommand(s, *asked)
	switch {
	case done.Running:
		return step.Done(), nil // Its end is an event.
	case done.Err != nil:
		answer := refusal(asked, done.Err.Error())
		return step.Again(done.RetryIn), fleetv1.SetEtcdAnswer(s.obj.Object, answer)
	}
	c.jobs.Forget(key)
	if asked.Command == fleetv1.EtcdCommandForceNewCluster {
		step.Event(ctx, "ForcedNewEtcdCluster", "The etcd member in container %s is the only one of its cluster now", s.Container())
	}
	return step.Done(), fleetv1.SetEtcdAnswer(s.obj.Object, done.Result)
}

// runEtcdCommand starts the job, unless there is one. A command that changes something and has failed is an error, so that it is repeated.
func (c *Controller) runEtcdCommand(s *scope, asked fleetv1.EtcdCommand) job.State[fleetv1.EtcdAnswer] {
	container := s.Container()
	return job.Run(c.jobs, s.jobKey("etcd "+asked.UID), func(ctx context.Context) (fleetv1.EtcdAnswer, error) {
		ctx, cancel := context.WithTimeout(ctx, etcdhost.Timeout)
		defer cancel()
		out := &bounded{left: etcdhost.OutputLimit}
		err := c.engine.Exec(ctx, container, engine.Command{
			Args: []string{"/bin/sh", "-s"}, Stdin: strings.NewReader(etcdhost.Script(asked)), Stdout: out,
		})
		if err != nil {
			return fleetv1.EtcdAnswer{}, fmt.Errorf("running the command in container %s: %w", container, err)
		}
		answer := etcdhost.Answer(asked, out.String())
		if answer.Error != "" && asked.Command == fleetv1.EtcdCommandForceNewCluster {
			return answer, errors.New(answer.Error)
		}
		return answer, nil
	})
}

func refusal(to *fleetv1.EtcdCommand, reason string) fleetv1.EtcdAnswer {
	return fleetv1.EtcdAnswer{UID: to.UID, Command: to.Command, Error: condition.Truncate(reason, maxMessage)}
}

// bounded keeps what is written first, and drops the rest.
type bounded struct {
	bytes.Buffer
	left int
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	b.left -= n
	b.Buffer.Write(p[:n])
	return len(p), nil
}
