package machine

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/infrastructure/inmemory/internal/bootstrap"
	"sigs.k8s.io/cluster-api/infrastructure/inmemory/internal/cloud"
	"sigs.k8s.io/cluster-api/infrastructure/inmemory/internal/etcd"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/step"
)

// kubeadm tries again every few seconds, and gives up after minutes. It cannot be woken: what it waits for happens
// outside of the machine.
const (
	kubeadmRetry    = 5 * time.Second
	kubeadmPatience = 5 * time.Minute
)

// cameUp tells whether the machine had come up before this process forgot about it. An object whose status was lost as
// well, as happens when it is moved to another management cluster, still has its provider ID.
func cameUp(s *scope) bool {
	if !condition.Has(s.obj, inmemoryv1.VMProvisionedCondition) {
		return s.obj.Spec.ProviderID != nil
	}
	if s.isControlPlane() {
		return condition.IsTrue(s.obj, inmemoryv1.EtcdProvisionedCondition)
	}
	return condition.IsTrue(s.obj, inmemoryv1.NodeProvisionedCondition)
}

// userData reads what the machine is to know when it starts for the first time. It costs a request: bootstrap data is
// not cached. Changes of the Secret after that do not reach the machine.
func (c *Controller) userData(ctx context.Context, s *scope) (string, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: s.machine.Namespace, Name: *s.machine.Spec.Bootstrap.DataSecretName}
	if err := c.Client.Get(ctx, key, secret); err != nil {
		return "", fmt.Errorf("reading bootstrap data Secret %s: %w", key, err)
	}
	data, err := bootstrap.Read(secret.Data["value"], string(secret.Data["format"]))
	if err != nil {
		return "", fmt.Errorf("reading key value of Secret %s: %w", key, err)
	}
	return data.Encode()
}

// joins returns why kubeadm fails to make the machine a Node, or nil. On a machine that is one already it has done so.
func (c *Controller) joins(s *scope) error {
	if s.running.Restored || condition.IsTrue(s.obj, inmemoryv1.NodeProvisionedCondition) {
		return nil
	}
	node, err := cloud.Get[corev1.Node](s.group, "", s.obj.Name)
	if err == nil && node.UID == nodeUID(s.obj) {
		return nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if s.data.Action != bootstrap.Unknown && s.data.ControlPlane != s.isControlPlane() {
		return errors.New("the bootstrap data is that of another role: it and the Machine's label have to agree on whether this is a control plane machine")
	}
	etcdServes, err := etcd.Serves(s.group)
	if err != nil {
		return err
	}
	found := bootstrap.Cluster{
		Group:   s.group,
		Answers: etcdServes && s.endpoint.Serves() && !s.group.Faults().Unresponsive,
		CA:      s.endpoint.Authority(),
	}
	return s.data.Check(found, s.obj.Name, c.Clock.Now())
}

// kubeadmFails says what kubeadm says, and lets it try again until it gives up for good.
func (c *Controller) kubeadmFails(s *scope, t clusterv1.ConditionType, why error) (step.Result, error) {
	before := condition.Get(s.obj, t)
	if before != nil && before.Reason == inmemoryv1.KubeadmFailedReason && c.Clock.Since(before.LastTransitionTime.Time) >= kubeadmPatience {
		return step.Stop().WithConditions(condition.False(t, clusterv1.ConditionSeverityError, inmemoryv1.KubeadmFailedReason, "kubeadm gave up: %v", why)), nil
	}
	return step.WaitAtMost(kubeadmRetry, "kubeadm to succeed").WithConditions(
		condition.False(t, clusterv1.ConditionSeverityWarning, inmemoryv1.KubeadmFailedReason, "kubeadm fails: %v", why)), nil
}

// gaveUp tells whether kubeadm stopped trying. Only another machine helps.
func gaveUp(obj *inmemoryv1.InMemoryMachine, t clusterv1.ConditionType) bool {
	c := condition.Get(obj, t)
	return c != nil && c.Reason == inmemoryv1.KubeadmFailedReason && c.Severity == clusterv1.ConditionSeverityError
}
