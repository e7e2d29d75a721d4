package plan

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/classes"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/patches"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/variables"
)

// maxClasses is how many compiled classes are cached.
const maxClasses = 1024

// Classes caches compiled ClusterClasses: compiling a class costs far more than using it, and a class has many Clusters.
// It is safe for concurrent use.
type Classes struct {
	extension patches.Extension
	compiled  *classes.Memo[compiledClass]
}

// NewClasses returns Classes whose external patches are served by extension. If it is nil, external patches are errors.
func NewClasses(extension patches.Extension) *Classes {
	return &Classes{extension: extension, compiled: classes.NewMemo[compiledClass](maxClasses)}
}

// compiledClass depends on the spec of a class and on its status.variables.
type compiledClass struct {
	engine      *patches.Engine
	definitions *variables.Definitions
}

// get compiles a class unless this version of it is cached.
func (c *Classes) get(class *clusterv1.ClusterClass) (compiledClass, error) {
	return c.compiled.Get(class.UID, class.ResourceVersion, func() (out compiledClass, err error) {
		if out.engine, err = patches.New(class, c.extension); err != nil {
			return compiledClass{}, err
		}
		out.definitions, err = variables.Compile(class)
		return out, err
	})
}

// withVariables returns a copy of the Cluster with defaulted and validated variables, and their sources. Admission did the same, but the
// class may have changed since.
func (c compiledClass) withVariables(ctx context.Context, cluster *clusterv1.Cluster) (*clusterv1.Cluster, variables.Sources, error) {
	sources, err := variables.ReadSources(ctx, cluster)
	if err != nil {
		return nil, nil, fmt.Errorf("reading for which definitions the variables are: %w", err)
	}
	cluster = cluster.DeepCopy()
	topology, path := &cluster.Spec.Topology, field.NewPath("spec", "topology")
	definitions := c.definitions.With(sources)
	errs := append(definitions.Default(topology, path), definitions.DefaultConflicting(topology, path)...)
	if len(errs) == 0 {
		errs = definitions.Validate(ctx, topology, path)
	}
	if len(errs) > 0 {
		return nil, nil, fmt.Errorf("the topology is invalid for ClusterClass %s: %w", topology.ClassRef.Name, errs.ToAggregate())
	}
	return cluster, definitions.Sources(), nil
}
