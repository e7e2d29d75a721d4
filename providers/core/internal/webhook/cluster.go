package webhook

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/check"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/classes"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/variables"
	"sigs.k8s.io/cluster-api/sdk/contract"
)

// +kubebuilder:webhook:verbs=create;update,path=/mutate-cluster-x-k8s-io-v1beta1-cluster,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,groups=cluster.x-k8s.io,resources=clusters,versions=v1beta1;v1beta2,name=default.cluster.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update;delete,path=/validate-cluster-x-k8s-io-v1beta1-cluster,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=cluster.x-k8s.io,resources=clusters,versions=v1beta1;v1beta2,name=validation.cluster.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1

// maxClasses is how many classes with compiled variables are cached.
const maxClasses = 256

// Cluster defaults and validates Clusters.
type Cluster struct {
	options     Options
	definitions *classes.Memo[*variables.Definitions]
}

// NewCluster returns a Webhook without serving it.
func NewCluster(o Options) (*Cluster, error) {
	if o.Reader == nil || o.Object == nil || o.MachinePool && o.Workload == nil {
		return nil, errors.New("the Cluster webhook requires Reader and Object, and Workload with feature gate MachinePool")
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Cluster{options: o, definitions: classes.NewMemo[*variables.Definitions](maxClasses)}, nil
}

// Reading returns a Webhook with the same cache that reads other objects.
func (w *Cluster) Reading(
	reader client.Reader, object func(context.Context, *clusterv1.ContractVersionedObjectReference, string) (contract.Object, error),
) *Cluster {
	out := *w
	out.options.Reader, out.options.Object = reader, object
	return &out
}

// compiled returns the compiled variables of a class.
func (w *Cluster) compiled(class *clusterv1.ClusterClass) (*variables.Definitions, error) {
	return w.definitions.Get(class.UID, class.ResourceVersion, func() (*variables.Definitions, error) { return variables.Compile(class) })
}

// definitionsFor returns the compiled variables of a class for the values of a Cluster.
func (w *Cluster) definitionsFor(
	ctx context.Context, cluster *clusterv1.Cluster, class *clusterv1.ClusterClass,
) (*variables.Definitions, error) {
	definitions, err := w.compiled(class)
	if err != nil {
		return nil, err
	}
	sources, err := variables.ReadSources(ctx, cluster)
	if err != nil {
		return nil, err
	}
	return definitions.With(sources), nil
}

// Default implements Defaulter. Variables are defaulted at every write, so that variables added to the class are
// added to the Cluster with the next write. A class that is not ready is not an error, because the topology controller
// defaults variables, too; Default waits for it only if the topology is new or changes.
func (w *Cluster) Default(ctx context.Context, cluster *clusterv1.Cluster) error {
	topology := &cluster.Spec.Topology
	defaultVersion(&topology.Version)
	defaultPinnedVersions(&topology.Workers)
	if !w.options.ClusterTopology || topology.ClassRef.Name == "" || !cluster.DeletionTimestamp.IsZero() {
		return nil
	}
	old, err := oldObject[clusterv1.Cluster](ctx)
	if err != nil {
		return err
	}
	return w.defaultVariables(ctx, old, cluster)
}

// defaultVariables defaults and validates the variables of a Cluster; old is nil on creation.
func (w *Cluster) defaultVariables(ctx context.Context, old, cluster *clusterv1.Cluster) error {
	changes := old == nil || !equality.Semantic.DeepEqual(old.Spec.Topology, cluster.Spec.Topology)
	read := w.class
	if changes {
		read = w.waitForClass
	}
	found, err := read(ctx, cluster.GetClassKey())
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if found.class == nil {
		return nil
	}
	definitions, err := w.definitionsFor(ctx, cluster, found.class)
	if err != nil && !changes {
		return nil // the topology controller reports why the class is unusable
	}
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	topology, path := &cluster.Spec.Topology, field.NewPath("spec", "topology")
	errs := definitions.Default(topology, path)
	if len(errs) == 0 {
		previous, err := variables.ReadPrevious(ctx, old)
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		errs = definitions.ValidateUpdate(ctx, topology, previous, path)
	}
	return invalid("Cluster", cluster.Name, errs)
}

// A Cluster is often applied together with its class, which is reconciled a moment later. Requests poll for it, because reading
// from the cache costs nothing.
const (
	classInterval = 50 * time.Millisecond
	// classTimeout is how long to wait for an existing class to be reconciled.
	classTimeout = 2 * time.Second
	// missingClassTimeout is how long to wait for a class that does not exist: the cache may be stale.
	missingClassTimeout = 200 * time.Millisecond
)

// classLookup is the result of reading a class.
type classLookup struct {
	// class is nil unless it exists and has been reconciled.
	class *clusterv1.ClusterClass
	// reason is why class is nil.
	reason error
	// missing is set if the class does not exist.
	missing bool
	// paused is set if the class exists and is paused: it will not be reconciled soon.
	paused bool
}

// class reads a class. It returns an error only if reading fails, not if the class is unusable.
func (w *Cluster) class(ctx context.Context, key client.ObjectKey) (classLookup, error) {
	class := &clusterv1.ClusterClass{}
	switch err := w.options.Reader.Get(ctx, key, class); {
	case apierrors.IsNotFound(err):
		return classLookup{reason: err, missing: true}, nil
	case err != nil:
		return classLookup{}, err
	}
	if err := check.Ready(class); err != nil {
		_, paused := class.Annotations[clusterv1.PausedAnnotation]
		return classLookup{reason: err, paused: paused}, nil
	}
	return classLookup{class: class}, nil
}

// waitForClass reads a class, and waits some time for it to be created and reconciled. A class that is paused is not waited for: it
// belongs to a move, which creates it before its Clusters and resumes it after them.
func (w *Cluster) waitForClass(ctx context.Context, key client.ObjectKey) (classLookup, error) {
	var waited time.Duration
	for {
		found, err := w.class(ctx, key)
		if err != nil || found.class != nil || found.paused {
			return found, err
		}
		if waited >= classTimeout || found.missing && waited >= missingClassTimeout {
			return found, nil
		}
		select {
		case <-ctx.Done():
			return found, nil
		case <-w.options.Clock.After(classInterval):
			waited += classInterval
		}
	}
}
