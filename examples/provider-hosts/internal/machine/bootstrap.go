package machine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hostsv1 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha1"
	"sigs.k8s.io/cluster-api/examples/provider-hosts/internal/ssh"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// answers matches what the script answers. Anything else that a Host sends may contain secrets, and is never repeated.
var answers = regexp.MustCompile(`^(running|ended [0-9]{1,3}|interrupted|state lost|conflict|none|failed|reset)$`)

// bootstrap runs the bootstrap data on the Host. The provider ID records that it succeeded: the Host is not contacted again.
func (c *Controller) bootstrap(ctx context.Context, s *scope) (step.Result, error) {
	id := "hosts://" + s.host.Namespace + "/" + s.host.Name
	if s.obj.Spec.ProviderID == nil {
		if s.machine.Spec.Bootstrap.DataSecretName == nil {
			return step.Wait("the bootstrap data of Machine " + s.machine.Name).Because(hostsv1.WaitingForDataReason), nil
		}
		state, err := c.bootstrapped(ctx, s, id)
		switch {
		case err != nil:
			return step.Done(), err
		case state == "running":
			return step.WaitAtMost(pollInterval, "the bootstrap data to run on Host "+s.host.Name).Because(hostsv1.BootstrappingReason), nil
		case state == "conflict":
			return step.Done(), hostFailed(s.host, errors.New("it has state of another claim: reset it, or delete the Machine"))
		case state != "ended 0":
			return fail(ctx, s, state), nil
		}
		step.Event(ctx, "Bootstrapped", "Bootstrapped Host %s", s.host.Name)
	}
	s.obj.Spec.ProviderID = &id
	if zone, ok := s.host.Labels[hostsv1.ZoneLabel]; ok && s.obj.Spec.FailureDomain == nil {
		s.obj.Spec.FailureDomain = &zone
	}
	kind := clusterv1.MachineInternalDNS
	if net.ParseIP(s.host.Spec.Address) != nil {
		kind = clusterv1.MachineInternalIP
	}
	s.obj.Status.Addresses = []clusterv1.MachineAddress{{Type: kind, Address: s.host.Spec.Address}}
	s.obj.Status.FailureDomain = s.host.Labels[hostsv1.ZoneLabel]
	s.obj.SetProvisioned()
	return step.Done(), nil
}

// bootstrapped starts the bootstrap command unless the Host has already started it, and returns its state.
func (c *Controller) bootstrapped(ctx context.Context, s *scope, id string) (string, error) {
	if now := condition.Get(s.obj, hostsv1.BootstrappedCondition); now != nil && now.Reason == hostsv1.BootstrappingReason {
		return c.run(ctx, s.host, "state", map[string]string{}, nil)
	}
	secret := &corev1.Secret{}
	if err := c.Live.Get(ctx, client.ObjectKey{Namespace: s.obj.Namespace, Name: *s.machine.Spec.Bootstrap.DataSecretName},
		secret); err != nil {
		return "", fmt.Errorf("reading the bootstrap data: %w", err)
	}
	if format := string(secret.Data["format"]); format != "" && format != "cloud-config" && s.obj.Spec.BootstrapCommand == "" {
		return "", hostFailed(s.host, fmt.Errorf("bootstrap data of format %q needs spec.bootstrapCommand", format))
	}
	data := secret.Data["value"]
	return c.run(ctx, s.host, "start", map[string]string{
		"command": cmp.Or(s.obj.Spec.BootstrapCommand, ssh.CloudInit), "provider_id": id, "sum": fmt.Sprintf("%x", sha256.Sum256(data)),
	}, data)
}

// fail reports a terminal failure of the bootstrap data. Its output stays on the Host, since it may contain secrets.
func fail(ctx context.Context, s *scope, state string) step.Result {
	message := fmt.Sprintf("the bootstrap data on Host %s failed: %s, see bootstrap.log in /var/lib/cluster-api-hosts there",
		s.host.Name, state)
	s.obj.Status.FailureReason, s.obj.Status.FailureMessage = ptr.To(clusterv1beta1.CreateMachineError), &message
	step.Warning(ctx, hostsv1.BootstrapFailedReason, "%s", message)
	return step.Stop().WithConditions(condition.False(hostsv1.BootstrappedCondition, clusterv1.ConditionSeverityError,
		hostsv1.BootstrapFailedReason, "%s", message))
}
