package machine

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/lab"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// apiServer starts the machine's API server, scheduler and controller manager.
func (c *Controller) apiServer(ctx context.Context, s *scope) (step.Result, error) {
	remaining, err := c.remaining(s, "apiServer", inmemoryv1.APIServerProvisionedCondition, inmemoryv1.NodeProvisionedCondition)
	if err != nil {
		return step.Done(), err
	}
	if remaining > 0 {
		return starting(remaining, "the API server")
	}
	if err := c.issuer().ForAPIServer(ctx, client.ObjectKeyFromObject(s.cluster), s.endpoint, !s.externalEtcd); err != nil {
		return step.Done(), err
	}
	if err := c.issuer().ForServer(ctx, client.ObjectKeyFromObject(s.cluster), s.endpoint, s.obj.Name, lab.Authorities{
		Cluster: s.data.CA, Etcd: s.data.EtcdCA,
	}); err != nil {
		return step.Done(), err
	}
	for _, component := range []string{"kube-apiserver", "kube-scheduler", "kube-controller-manager"} {
		if _, err := store.Ensure(s.group, newPod(s, component)); err != nil {
			return step.Done(), fmt.Errorf("starting %s: %w", component, err)
		}
	}
	if !s.endpoint.HasServer(s.obj.Name) {
		// After a restore, kubelets reach an API server again.
		if err := s.group.ConnectKubelets(); err != nil {
			return step.Done(), fmt.Errorf("connecting kubelets: %w", err)
		}
	}
	s.endpoint.StartServer(s.obj.Name, s.machine.Spec.Version)
	return step.Done(), nil
}
