package machine

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1beta1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta1"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/job"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/kinds"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/node"
	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Workloads connects to workload clusters.
type Workloads interface {
	Get(ctx context.Context, cluster types.NamespacedName) (*remote.Cluster, error)
}

// Controller reconciles the machines of a set of kinds.
type Controller struct {
	step.Clients
	kinds     kinds.Set
	engine    engine.Engine
	workloads Workloads
	jobs      *job.Jobs
	pools     bool
}

// scope is the state that the steps share.
type scope struct {
	// Machine describes the container.
	node.Machine
	obj kinds.Machine
	// machine and cluster are nil if they do not exist.
	machine *clusterv1.Machine
	cluster *clusterv1.Cluster
	// data is the name of the Secret with the bootstrap data, empty if it does not exist yet.
	data string
	// current is whether the object is known to be up to date, because this reconcile wrote it.
	current bool
}

// jobKey returns the key of a job for the object.
func (s *scope) jobKey(name string) job.Key {
	return job.Key{Object: client.ObjectKeyFromObject(s.obj.Object), UID: s.obj.UID, Name: name}
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
	if s.cluster, err = ownership.ClusterOf(ctx, c.Client, obj); err != nil {
		return nil, err
	}
	s.Machine = node.Machine{Object: of, Owner: s.machine, Cluster: of.Labels[clusterv1.ClusterNameLabel]}
	if s.cluster != nil {
		s.Machine.Cluster = s.cluster.Name
	}
	if s.Bootstrapped, err = bootstrapped(ctx, of); err != nil {
		return nil, err
	}
	s.data, err = c.bootstrapData(ctx, s.machine)
	return s, err
}

// bootstrapped reports whether a client of v1beta1 has set spec.bootstrapped. Only DockerMachines have it.
func bootstrapped(ctx context.Context, m kinds.Machine) (bool, error) {
	obj, ok := m.Object.(*dockerv1.DockerMachine)
	if !ok || obj.Spec.ProviderID != "" {
		return false, nil
	}
	older := &dockerv1beta1.DockerMachine{}
	if _, err := conversion.Older(ctx, obj, older, "bootstrapped"); err != nil {
		return false, fmt.Errorf("reading spec.bootstrapped: %w", err)
	}
	return older.Spec.Bootstrapped, nil
}

// failed is an error in the condition of the container.
func failed(err error) error {
	if step.IsStale(err) {
		return err
	}
	return &step.Error{Reason: dockerv1.ContainerProvisioningFailedV1Beta1Reason, Severity: clusterv1.ConditionSeverityWarning, Err: err}
}
