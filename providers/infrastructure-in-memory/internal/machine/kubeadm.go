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
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/bootstrap"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/etcd"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// kubeadm retries every few seconds, and gives up after minutes. No event can trigger it, because the machine does not watch
// the cluster.
const (
	kubeadmRetry   = 5 * time.Second
	kubeadmTimeout = 5 * time.Minute
)

// cameUp reports whether the machine was running before a restart of this process. An object without status, as after a move
// to another management cluster, still has its provider ID, also if it has been reported meanwhile that it waits for its cluster.
func cameUp(s *scope) bool {
	vm := condition.Get(s.obj, inmemoryv1.VMProvisionedCondition)
	if vm == nil || vm.Status != corev1.ConditionTrue && vm.Reason != inmemoryv1.WaitingForStartupTimeoutReason {
		return s.obj.Spec.ProviderID != nil
	}
	if s.isControlPlane() {
		return condition.IsTrue(s.obj, inmemoryv1.EtcdProvisionedCondition)
	}
	return condition.IsTrue(s.obj, inmemoryv1.NodeProvisionedCondition)
}

// userData reads the bootstrap data for the first start of the machine. It costs a request, because bootstrap data is not
// cached. Later changes of the Secret have no effect.
func (c *Controller) userData(ctx context.Context, s *scope) (string, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: s.machine.Namespace, Name: s.secret}
	if err := c.Client.Get(ctx, key, secret); err != nil {
		return "", fmt.Errorf("reading bootstrap data Secret %s: %w", key, err)
	}
	data, err := bootstrap.Read(secret.Data["value"], string(secret.Data["format"]))
	if err != nil {
		return "", fmt.Errorf("reading key value of Secret %s: %w", key, err)
	}
	return data.Encode()
}

// joins returns why kubeadm fails to register the machine's Node, or nil. If the Node exists, kubeadm has succeeded before.
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
		return errors.New("the bootstrap data is for another role: it must match the label cluster.x-k8s.io/control-plane of the Machine")
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

// kubeadmFails reports why kubeadm fails, and retries until the timeout.
func (c *Controller) kubeadmFails(s *scope, t clusterv1.ConditionType, why error) (step.Result, error) {
	before := condition.Get(s.obj, t)
	if before != nil && before.Reason == inmemoryv1.KubeadmFailedReason && c.Clock.Since(before.LastTransitionTime.Time) >= kubeadmTimeout {
		return step.Stop().WithConditions(condition.False(t, clusterv1.ConditionSeverityError, inmemoryv1.KubeadmFailedReason, "kubeadm gave up: %v", why)), nil
	}
	return step.WaitAtMost(kubeadmRetry, "kubeadm to succeed").WithConditions(
		condition.False(t, clusterv1.ConditionSeverityWarning, inmemoryv1.KubeadmFailedReason, "kubeadm fails: %v", why)), nil
}

// gaveUp reports whether kubeadm gave up. It never retries on this machine.
func gaveUp(obj *inmemoryv1.InMemoryMachine, t clusterv1.ConditionType) bool {
	c := condition.Get(obj, t)
	return c != nil && c.Reason == inmemoryv1.KubeadmFailedReason && c.Severity == clusterv1.ConditionSeverityError
}
