package topology

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/core/internal/topology/patches"
	"sigs.k8s.io/cluster-api/core/internal/topology/variables"
)

// Classes keeps what is compiled from ClusterClasses: that costs far more than using it, and a class has many
// Clusters. It is safe for concurrent use.
type Classes struct {
	// Extension serves external patches. Nil: classes that have them are errors.
	Extension patches.Extension

	mu   sync.Mutex
	made map[types.UID]compiled
}

type compiled struct {
	version     string
	engine      *patches.Engine
	definitions *variables.Definitions
}

// get compiles a class unless this version of it is at hand.
func (c *Classes) get(class *clusterv1.ClusterClass) (compiled, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if made, ok := c.made[class.UID]; ok && made.version == class.ResourceVersion {
		return made, nil
	}
	made := compiled{version: class.ResourceVersion}
	var err error
	if made.engine, err = patches.New(class, c.Extension); err != nil {
		return compiled{}, err
	}
	if made.definitions, err = variables.Compile(class); err != nil {
		return compiled{}, err
	}
	if c.made == nil {
		c.made = map[types.UID]compiled{}
	}
	c.made[class.UID] = made
	return made, nil
}

// forget drops a class that is gone.
func (c *Classes) forget(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.made, uid)
}

// withVariables is a copy of the Cluster whose variables are complete and valid. Admission has done the same, but the
// class may have changed since.
func (c compiled) withVariables(cluster *clusterv1.Cluster) (*clusterv1.Cluster, error) {
	cluster = cluster.DeepCopy()
	path := field.NewPath("spec", "topology")
	errs := c.definitions.Default(cluster.Spec.Topology, path)
	if len(errs) == 0 {
		errs = c.definitions.Validate(cluster.Spec.Topology, path)
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("the topology does not fit ClusterClass %s: %w", cluster.Spec.Topology.Class, errs.ToAggregate())
	}
	return cluster, nil
}
