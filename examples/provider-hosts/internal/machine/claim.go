package machine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hostsv1 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// claim reads the Host that the HostMachine has claimed, or claims one.
func (c *Controller) claim(ctx context.Context, s *scope) (step.Result, error) {
	if s.obj.Spec.Host != nil {
		return c.claimed(ctx, s)
	}
	var host *hostsv1.Host
	for _, from := range []client.Reader{c.Client, c.Live} { // the cache saves requests while there is no Host; it may be stale
		var err error
		if host, err = c.candidate(ctx, from, s); err != nil || host == nil {
			return step.Wait("a free Host that matches its selector, role and failure domain").Because(hostsv1.NoHostReason).
				Severity(clusterv1.ConditionSeverityWarning), err
		}
	}
	// The claim of a HostMachine that has since been deleted would never be released.
	live := &hostsv1.HostMachine{}
	if err := c.Live.Get(ctx, client.ObjectKeyFromObject(s.obj), live); client.IgnoreNotFound(err) != nil {
		return step.Done(), fmt.Errorf("reading the HostMachine: %w", err)
	}
	if live.UID != s.obj.UID || live.DeletionTimestamp != nil || live.Spec.Host != nil {
		return step.Done(), step.Stale("the HostMachine was changed since it was read")
	}
	if err := c.hold(ctx, host, s.obj); err != nil {
		return step.Done(), err
	}
	s.host, s.obj.Spec.Host = host, &hostsv1.HostReference{Name: host.Name, Claim: host.Spec.Claim.ID}
	step.Event(ctx, "HostClaimed", "Claimed Host %s", host.Name)
	return step.Checkpoint(), nil
}

// hold writes the claim of a HostMachine and the finalizer of the Host, unless they are there.
func (c *Controller) hold(ctx context.Context, host *hostsv1.Host, m *hostsv1.HostMachine) error {
	err := c.Patch(ctx, host, func() {
		if host.Spec.Claim == nil {
			host.Spec.Claim = &hostsv1.Claim{Machine: m.Name, ID: m.UID}
		}
		if host.DeletionTimestamp == nil { // finalizers cannot be added later
			controllerutil.AddFinalizer(host, hostsv1.HostFinalizer)
		}
	}, step.IfUnchanged)
	if err != nil {
		return fmt.Errorf("claiming Host %s: %w", host.Name, err)
	}
	return nil
}

// claimed reads the Host that the HostMachine has claimed.
func (c *Controller) claimed(ctx context.Context, s *scope) (step.Result, error) {
	host := &hostsv1.Host{}
	for _, from := range []client.Reader{c.Client, c.Live} { // the cache may be older than the claim
		err := from.Get(ctx, client.ObjectKey{Namespace: s.obj.Namespace, Name: s.obj.Spec.Host.Name}, host)
		if client.IgnoreNotFound(err) != nil {
			return step.Done(), fmt.Errorf("reading Host %s: %w", s.obj.Spec.Host.Name, err)
		}
		if err == nil && host.ClaimedBy(s.obj) {
			s.host = host
			return step.Done(), c.hold(ctx, host, s.obj)
		}
	}
	err := fmt.Errorf("Host %s is no longer claimed by this HostMachine: delete the Machine", s.obj.Spec.Host.Name)
	return step.Done(), step.Terminal(&step.Error{Reason: hostsv1.HostLostReason, Err: err})
}

// candidate returns the Host that the HostMachine has claimed, else a free one, chosen at random to make conflicts rare, else nil.
func (c *Controller) candidate(ctx context.Context, from client.Reader, s *scope) (*hostsv1.Host, error) {
	selector, err := metav1.LabelSelectorAsSelector(&s.obj.Spec.Selector)
	if err != nil {
		return nil, step.Terminal(fmt.Errorf("spec.selector: %w", err))
	}
	list := &hostsv1.HostList{}
	if err := from.List(ctx, list, client.InNamespace(s.obj.Namespace)); err != nil {
		return nil, fmt.Errorf("listing Hosts: %w", err)
	}
	var free []*hostsv1.Host
	for i := range list.Items {
		host := &list.Items[i]
		if host.ClaimedBy(s.obj) {
			return host, nil // the manager stopped before it wrote spec.host
		}
		if suits(host, s) && selector.Matches(labels.Set(host.Labels)) {
			free = append(free, host)
		}
	}
	if len(free) == 0 {
		return nil, nil
	}
	return free[rand.IntN(len(free))], nil //nolint:gosec // it spreads load, and protects nothing
}

// suits reports whether a Host is free and matches the role and failure domain of the Machine.
func suits(host *hostsv1.Host, s *scope) bool {
	role := hostsv1.RoleWorker
	if _, ok := s.machine.Labels[clusterv1.MachineControlPlaneLabel]; ok {
		role = hostsv1.RoleControlPlane
	}
	zone := s.machine.Spec.FailureDomain
	return host.Spec.Claim == nil && !host.Spec.Unschedulable && host.DeletionTimestamp == nil &&
		(len(host.Spec.Roles) == 0 || slices.Contains(host.Spec.Roles, role)) && (zone == "" || host.Labels[hostsv1.ZoneLabel] == zone)
}
