package controlplane

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/step"
)

// staleRetry is how soon a decision is made again that the API server did not confirm. Normally the event of what the
// cache lacks comes sooner.
const staleRetry = time.Second

// confirm compares what a decision was made from with the API server: the cache may be a minute old, and another leader
// may have acted. It says what the cache does not show yet, and nothing if the decision holds.
func (c *Controller) confirm(ctx context.Context, s *scope) (stale string, err error) {
	if stale, err := c.confirmControlPlane(ctx, s); stale != "" || err != nil {
		return stale, err
	}
	return c.confirmMachines(ctx, s)
}

// confirmControlPlane compares the control plane with the API server.
func (c *Controller) confirmControlPlane(ctx context.Context, s *scope) (stale string, err error) {
	live := &controlplanev1.KubeadmControlPlane{}
	if err := c.Live.Get(ctx, client.ObjectKeyFromObject(s.kcp), live); err != nil {
		if apierrors.IsNotFound(err) {
			return "that the control plane is gone", nil
		}
		return "", fmt.Errorf("reading the control plane: %w", err)
	}
	_, paused := live.Annotations[clusterv1.PausedAnnotation]
	switch {
	case live.UID != s.kcp.UID:
		return "that the control plane is another one", nil
	case live.DeletionTimestamp != nil:
		return "that the control plane is being deleted", nil
	case paused:
		return "that the control plane is paused", nil
	case live.Status.Initialized && !s.begun():
		return "that the cluster is initialised", nil
	case !equality.Semantic.DeepEqual(live.Spec, s.kcp.Spec):
		return "the control plane's spec", nil
	case live.Annotations[controlplanev1.RemediationInProgressAnnotation] != s.remediating:
		return "which remediation is under way", nil
	}
	return "", nil
}

// confirmNew compares with the API server that the cluster has not been brought up: that happens once.
func (c *Controller) confirmNew(ctx context.Context, s *scope) (stale string, err error) {
	cluster := &clusterv1.Cluster{}
	if err := c.Live.Get(ctx, s.key(), cluster); err != nil {
		if apierrors.IsNotFound(err) {
			return "that the Cluster is gone", nil
		}
		return "", fmt.Errorf("reading Cluster %s: %w", s.key(), err)
	}
	switch {
	case cluster.UID != s.cluster.UID:
		return "that the Cluster is another one", nil
	case cluster.DeletionTimestamp != nil:
		return "that the Cluster is being deleted", nil
	case condition.IsTrue(cluster, clusterv1.ControlPlaneInitializedCondition):
		return "that the cluster is initialised", nil
	}
	return c.confirmControlPlane(ctx, s)
}

// confirmFounding makes sure that the cluster has not been brought up, and that no Machine is about to do so. That this
// reconcile has created the certificate authority proves both, without a read: its name derives from that of the Cluster, so
// until a moment ago there was none, neither in a cluster that runs nor in one that was moved here, and without it no
// Machine gets data to start with. Whoever comes later, after a crash for example, finds the Secret and reads. If somebody
// deleted the Secret of a cluster that runs, the bootstrap provider still reads the Cluster before it lets a Machine initialise.
func (c *Controller) confirmFounding(ctx context.Context, s *scope) (stale string, err error) {
	if s.founded {
		return "", nil
	}
	if stale, err := c.confirmNew(ctx, s); stale != "" || err != nil {
		return stale, err
	}
	return c.confirmMachines(ctx, s)
}

// confirmMachines compares the Machines with the API server: those that are the control plane's, or could be, and which
// of them are being deleted.
func (c *Controller) confirmMachines(ctx context.Context, s *scope) (stale string, err error) {
	all, err := c.liveMachines(ctx, s)
	if err != nil {
		return "", err
	}
	missing := map[types.UID]string{}
	for _, m := range s.machines {
		missing[m.UID] = m.Name
	}
	for i := range all {
		m := &all[i]
		if _, controlPlane := m.Labels[clusterv1.MachineControlPlaneLabel]; !controlPlane {
			continue
		}
		controller, known := metav1.GetControllerOf(m), s.named(m.Name)
		switch {
		case controller != nil && controller.UID != s.kcp.UID:
		case known == nil || known.UID != m.UID:
			return "Machine " + m.Name, nil
		case known.deleting() != (m.DeletionTimestamp != nil):
			return "that Machine " + m.Name + " is being deleted", nil
		default:
			delete(missing, m.UID)
		}
	}
	for _, name := range missing {
		return "that Machine " + name + " is gone", nil
	}
	return "", nil
}

// liveMachines are all Machines of the Cluster, workers included, as the API server has them.
func (c *Controller) liveMachines(ctx context.Context, s *scope) ([]clusterv1.Machine, error) {
	live := &clusterv1.MachineList{}
	err := c.Live.List(ctx, live, client.InNamespace(s.kcp.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: s.cluster.Name})
	if err != nil {
		return nil, fmt.Errorf("listing the Machines of Cluster %s: %w", s.key(), err)
	}
	return live.Items, nil
}

// catchUp waits for the cache to show what a decision lacked.
func catchUp(stale string) step.Result {
	return step.WaitAtMost(staleRetry, "the cache to show "+stale)
}
