package topology

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/core/internal/topology/memo"
	"sigs.k8s.io/cluster-api/core/internal/topology/patches"
	"sigs.k8s.io/cluster-api/core/internal/topology/variables"
)

// classesKept bounds how many classes a process keeps compiled.
const classesKept = 1024

// Classes keeps what is compiled from ClusterClasses: that costs far more than using it, and a class has many
// Clusters. It is safe for concurrent use.
type Classes struct {
	extension patches.Extension
	made      *memo.Memo[compiled]
}

// NewClasses returns Classes whose external patches are served by extension. With none, a class that has external
// patches is an error.
func NewClasses(extension patches.Extension) *Classes {
	return &Classes{extension: extension, made: memo.New[compiled](classesKept)}
}

// compiled depends on the spec of a class and on its status.variables.
type compiled struct {
	engine      *patches.Engine
	definitions *variables.Definitions
}

// get compiles a class unless this version of it is at hand.
func (c *Classes) get(class *clusterv1.ClusterClass) (compiled, error) {
	return c.made.Get(class.UID, class.ResourceVersion, func() (made compiled, err error) {
		if made.engine, err = patches.New(class, c.extension); err != nil {
			return compiled{}, err
		}
		made.definitions, err = variables.Compile(class)
		return made, err
	})
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
