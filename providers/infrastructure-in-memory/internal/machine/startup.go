package machine

import (
	"fmt"
	"math"
	"strconv"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/machines"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/kinds"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// starting waits for the rest of a simulated startup.
func starting(remaining time.Duration, what string) (step.Result, error) {
	return step.WaitAtMost(remaining, what+" to start").Because(inmemoryv1.WaitingForStartupTimeoutReason), nil
}

// remaining returns the rest of a stage's startup, which begins at the end of an earlier stage.
func (c *Controller) remaining(s *scope, stage string, t, after clusterv1.ConditionType) (time.Duration, error) {
	if condition.IsTrue(s.obj.Object, t) {
		return 0, nil
	}
	startup, err := startupOf(s.obj, stage)
	if err != nil || startup == 0 {
		return 0, err
	}
	since := condition.Get(s.obj.Object, after).LastTransitionTime.Time
	if since.IsZero() {
		since = c.Clock.Now() // The earlier stage ended in this reconcile.
	}
	return since.Add(startup).Sub(c.Clock.Now()), nil
}

// startupOf returns the duration of a stage, with its jitter, which is stable.
func startupOf(obj kinds.Machine, stage string) (time.Duration, error) {
	settings := settingsOf(obj.Behaviour(), stage)
	if settings.StartupDuration.Duration < 0 {
		return 0, step.Terminal(fmt.Errorf("%s.%s.provisioning.startupDuration is %s: it must not be negative", obj.BehaviourPath(), stage,
			settings.StartupDuration.Duration))
	}
	startup := machines.Startup{Duration: settings.StartupDuration.Duration}
	if settings.StartupJitter != "" {
		jitter, err := strconv.ParseFloat(settings.StartupJitter, 64)
		if err != nil || !(jitter >= 0) || math.IsInf(jitter, 0) {
			return 0, step.Terminal(fmt.Errorf("%s.%s.provisioning.startupJitter is %q: it must be a non-negative number such as 0.2",
				obj.BehaviourPath(), stage, settings.StartupJitter))
		}
		startup.Jitter = jitter
	}
	return startup.Delay(string(obj.UID), stage), nil
}

func settingsOf(b *inmemoryv1.InMemoryMachineBehaviour, stage string) inmemoryv1.CommonProvisioningSettings {
	switch {
	case b == nil:
	case stage == "vm" && b.VM != nil:
		return b.VM.Provisioning
	case stage == "node" && b.Node != nil:
		return b.Node.Provisioning
	case stage == "etcd" && b.Etcd != nil:
		return b.Etcd.Provisioning
	case stage == "apiServer" && b.APIServer != nil:
		return b.APIServer.Provisioning
	}
	return inmemoryv1.CommonProvisioningSettings{}
}
