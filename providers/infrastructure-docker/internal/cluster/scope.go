package cluster

import (
	"context"
	"fmt"

	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/identity"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/job"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/kinds"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Controller reconciles the clusters of a set of kinds.
type Controller struct {
	step.Clients
	kinds  kinds.Set
	engine engine.Engine
	jobs   *job.Jobs
}

// scope is the state that the steps share.
type scope struct {
	obj kinds.Cluster
	// cluster is nil if it does not exist.
	cluster *clusterv1.Cluster
	// name is the name of the container, and state its state once it runs.
	name  string
	state *engine.State
	// machines are the control plane machines in the configuration.
	machines []kinds.Machine
	// left are those that are not, because they are being deleted.
	left []kinds.Machine
}

// claim returns what the object says about its container.
func (s *scope) claim(cluster string) identity.Claim {
	return identity.Claim{
		Kind: s.obj.Kind, Object: s.obj.Object, Cluster: cluster, Role: identity.LoadBalancer,
		Had: ptr.Deref(s.obj.Initialization.Provisioned, false) || s.obj.Endpoint.Host != "",
	}
}

func (c *Controller) scope(ctx context.Context, obj step.Object) (*scope, error) {
	of, err := c.kinds.Cluster(obj)
	if err != nil {
		return nil, err
	}
	cluster, err := ownership.ClusterOf(ctx, c.Client, obj)
	return &scope{obj: of, cluster: cluster}, err
}

// failed returns an error that the condition of the load balancer reports. It is retried.
func failed(format string, args ...any) error {
	return &step.Error{
		Reason: dockerv1.LoadBalancerProvisioningFailedV1Beta1Reason, Severity: clusterv1.ConditionSeverityWarning,
		Err: fmt.Errorf(format, args...),
	}
}
