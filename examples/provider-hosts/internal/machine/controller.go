package machine

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hostsv1 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha1"
	"sigs.k8s.io/cluster-api/examples/provider-hosts/internal/ssh"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

const (
	// concurrency is high because workers only wait for Hosts, which may be unresponsive.
	concurrency = 50
	// scriptTimeout limits one login. Commands run detached, so it need not be long.
	scriptTimeout = time.Minute
	// pollInterval is how often the state of a command is read: SSH has no events, and kubeadm takes a minute.
	pollInterval = 3 * time.Second
	// retryInterval is how often a command that failed is tried again: to reset a Host, or to recover its etcd member.
	retryInterval = time.Minute
)

// Controller reconciles HostMachines.
type Controller struct{ step.Clients }

// scope is the state that the steps share.
type scope struct {
	obj     *hostsv1.HostMachine
	machine *clusterv1.Machine
	cluster *clusterv1.Cluster
	host    *hostsv1.Host
}

// Declared returns the controller, which also documents it: what it watches, its steps and conditions.
func (c *Controller) Declared() step.Controller[*hostsv1.HostMachine, *scope] {
	return step.Controller[*hostsv1.HostMachine, *scope]{
		Name:        "hostmachine",
		New:         func() *hostsv1.HostMachine { return &hostsv1.HostMachine{} },
		Concurrency: concurrency,
		Watches: []step.Watch{
			step.Mapped(&clusterv1.Machine{}, watch.Infrastructure("HostMachine"), watch.Bootstrapped()),
			step.Mapped(&clusterv1.Cluster{}, watch.Labeled(c.Client, &hostsv1.HostMachineList{}),
				watch.Cluster(watch.Paused, watch.InfrastructureReady)),
			step.Mapped(&hostsv1.Host{}, c.ofHost, predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{})),
		},
		Paused: ownership.PausedByCluster[*hostsv1.HostMachine](c.Client),
		Scope:  c.scope,
		Steps: []step.Step[*scope]{
			step.When((*scope).healthy,
				step.Do("owners", c.owners).Sets(hostsv1.HostClaimedCondition),
				step.Do("finalizer", c.finalizer),
				step.Do("claim", c.claim).Sets(hostsv1.HostClaimedCondition),
				step.Do("bootstrap", c.bootstrap).Sets(hostsv1.BootstrappedCondition),
				step.Do("etcd-command", c.etcdCommand),
			),
		},
		Deletion: []step.Step[*scope]{step.Do("release", c.release).Sets(hostsv1.HostReleasedCondition)},
		Reports: func(s *scope) []metav1.Condition {
			return condition.Metav1(s.obj.GetV1Beta1Conditions(), s.obj.Generation)
		},
		Conditions: condition.Kind{Ready: []clusterv1.ConditionType{
			hostsv1.HostReleasedCondition, hostsv1.HostClaimedCondition, hostsv1.BootstrappedCondition,
		}},
	}
}

// healthy reports whether the HostMachine has not failed. Failures are terminal in both contracts.
func (s *scope) healthy() bool { return s.obj.Status.FailureReason == nil }

func (c *Controller) scope(ctx context.Context, obj *hostsv1.HostMachine) (*scope, error) {
	machine, err := ownership.MachineOf(ctx, c.Client, obj)
	if err != nil {
		return nil, err
	}
	cluster, err := ownership.ClusterOf(ctx, c.Client, obj)
	return &scope{obj: obj, machine: machine, cluster: cluster}, err
}

// run has the script do an action for the Host's claim, and returns its answer.
func (c *Controller) run(
	ctx context.Context, host *hostsv1.Host, action string, variables map[string]string, stdin []byte,
) (string, error) {
	answer, err := c.login(ctx, host, action, variables, stdin)
	if err == nil && !answers.MatchString(answer) {
		return "", hostFailed(host, errors.New("the script is busy, or its answer is invalid"))
	}
	return answer, err
}

// login is run, for answers that are anything: the Host may be hostile.
func (c *Controller) login(
	ctx context.Context, host *hostsv1.Host, action string, variables map[string]string, stdin []byte,
) (string, error) {
	secret := &corev1.Secret{}
	// SSH keys are not cached, so that the manager needs no permission to list Secrets: one request per login.
	if err := c.Live.Get(ctx, client.ObjectKey{Namespace: host.Namespace, Name: host.Spec.SSHKeySecret}, secret); err != nil {
		return "", hostFailed(host, fmt.Errorf("reading Secret %s: %w", host.Spec.SSHKeySecret, err))
	}
	ctx, cancel := context.WithTimeout(ctx, scriptTimeout)
	defer cancel()
	variables["action"], variables["claim"] = action, string(host.Spec.Claim.ID)
	answer, err := ssh.Login{Host: &host.Spec, Key: secret.Data[corev1.SSHAuthPrivateKey]}.Run(ctx, ssh.Script, variables, stdin)
	if err != nil {
		return "", hostFailed(host, err)
	}
	return answer, nil
}

// hostFailed returns an error that is retried with backoff, and reported in the condition of the step.
func hostFailed(host *hostsv1.Host, err error) error {
	return &step.Error{
		Reason: hostsv1.HostFailedReason, Severity: clusterv1.ConditionSeverityWarning, Err: fmt.Errorf("Host %s: %w", host.Name, err),
	}
}

// ofHost maps a Host to the HostMachine that has claimed it, and to all that wait for a Host.
func (c *Controller) ofHost(ctx context.Context, obj client.Object) []reconcile.Request {
	return watch.RequestsFor(ctx, c.Client, &hostsv1.HostMachineList{}, func(m *hostsv1.HostMachine) bool {
		return m.Spec.Host == nil && m.DeletionTimestamp.IsZero() || m.Spec.Host != nil && m.Spec.Host.Name == obj.GetName()
	}, client.InNamespace(obj.GetNamespace()))
}
