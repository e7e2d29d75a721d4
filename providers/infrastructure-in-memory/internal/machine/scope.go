package machine

import (
	"context"

	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/apiserver"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/bootstrap"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/machines"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/kinds"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/lab"
	"sigs.k8s.io/cluster-api/sdk/machinepool"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Controller reconciles the machines of a set of kinds.
type Controller struct {
	step.Clients
	kinds kinds.Set
	lab   *lab.Lab
	pools bool
}

// scope is the state that the steps share.
type scope struct {
	obj      kinds.Machine
	machine  *clusterv1.Machine
	cluster  *clusterv1.Cluster
	group    *cloud.Group
	endpoint *apiserver.Endpoint
	// secret is the name of the Secret with the bootstrap data; empty if it does not exist yet.
	secret string
	// dead is whether a fault takes the machine's power.
	dead bool
	// running is the machine in the cloud, and data its parsed bootstrap data.
	running machines.Machine
	data    bootstrap.Data
	// externalEtcd is whether etcd does not run on the cluster's machines.
	externalEtcd bool
}

func (s *scope) isControlPlane() bool {
	_, ok := s.machine.Labels[clusterv1.MachineControlPlaneLabel]
	return ok
}

func (c *Controller) scope(ctx context.Context, obj step.Object) (*scope, error) {
	of, err := c.kinds.Machine(obj)
	if err != nil {
		return nil, err
	}
	s := &scope{obj: of}
	if s.machine, err = ownership.MachineOf(ctx, c.Client, obj); err != nil {
		return nil, err
	}
	if s.secret, err = c.bootstrapData(ctx, s.machine); err != nil {
		return nil, err
	}
	s.cluster, err = ownership.ClusterOf(ctx, c.Client, obj)
	return s, err
}

// bootstrapData returns the name of the Secret with the bootstrap data of a Machine, empty if it does not exist yet.
func (c *Controller) bootstrapData(ctx context.Context, m *clusterv1.Machine) (string, error) {
	switch {
	case m == nil:
		return "", nil
	case !c.pools:
		return ptr.Deref(m.Spec.Bootstrap.DataSecretName, ""), nil
	}
	return machinepool.BootstrapData(ctx, c.Client, m)
}

func (c *Controller) issuer() lab.Issuer {
	return lab.Issuer{Secrets: c.Client, Clock: c.Clock}
}
