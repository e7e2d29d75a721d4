package machine

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// cloudProviderTaint is the taint of Nodes that wait for their cloud provider. Containers have none.
const cloudProviderTaint = "node.cloudprovider.kubernetes.io/uninitialized"

// connectingBackstop bounds the wait for a first attempt to connect: if it fails, there is no event.
const connectingBackstop = 10 * time.Second

// node gives the Node its provider ID. A machine that was ready is not checked again: provider IDs are immutable.
func (c *Controller) node(ctx context.Context, s *scope) (step.Result, error) {
	if isProvisioned(s.obj) && *s.obj.ProviderID != "" {
		return step.Done(), nil
	}
	workload, err := c.workloads.Get(ctx, client.ObjectKeyFromObject(s.cluster))
	switch {
	case remote.IsConnecting(err):
		return step.WaitAtMost(connectingBackstop, err.Error()), nil
	case remote.IsNotConnected(err):
		return step.Wait(err.Error()), nil
	case err != nil:
		return step.Done(), err
	}
	found := &corev1.Node{}
	if err := workload.Get(ctx, client.ObjectKey{Name: s.Hostname()}, found); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return step.Wait("Node " + s.Hostname() + " to exist"), nil
		}
		return step.Done(), fmt.Errorf("reading Node %s: %w", s.Hostname(), err)
	}
	if id := found.Spec.ProviderID; id != "" && id != s.ProviderID() {
		return step.Done(), step.Terminal(fmt.Errorf("Node %s has provider ID %.200q instead of %s: delete the Machine to replace it",
			found.Name, id, s.ProviderID()))
	}
	if err := identify(ctx, workload, found, s.ProviderID()); err != nil {
		return step.Done(), err
	}
	*s.obj.ProviderID = s.ProviderID()
	s.obj.Initialization.Provisioned = ptr.To(true)
	return step.Done(), nil
}

// identify sets the provider ID and removes the taint of a missing cloud provider, with one patch, and only if that is needed.
func identify(ctx context.Context, workload client.Writer, found *corev1.Node, id string) error {
	after := found.DeepCopy()
	after.Spec.ProviderID = id
	after.Spec.Taints = slices.DeleteFunc(after.Spec.Taints, func(t corev1.Taint) bool { return t.Key == cloudProviderTaint })
	if err := remote.PatchNode(ctx, workload, found, after); err != nil {
		return fmt.Errorf("setting the provider ID of Node %s: %w", found.Name, err)
	}
	return nil
}
