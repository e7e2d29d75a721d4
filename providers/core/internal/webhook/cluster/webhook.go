package cluster

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/memo"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/variables"
	"sigs.k8s.io/cluster-api/sdk/webhooks"
)

// +kubebuilder:webhook:verbs=create;update,path=/mutate-cluster-x-k8s-io-v1beta1-cluster,mutating=true,failurePolicy=fail,matchPolicy=Equivalent,groups=cluster.x-k8s.io,resources=clusters,versions=v1beta1,name=default.cluster.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1
// +kubebuilder:webhook:verbs=create;update;delete,path=/validate-cluster-x-k8s-io-v1beta1-cluster,mutating=false,failurePolicy=fail,matchPolicy=Equivalent,groups=cluster.x-k8s.io,resources=clusters,versions=v1beta1,name=validation.cluster.cluster.x-k8s.io,sideEffects=None,admissionReviewVersions=v1;v1beta1

// Options configure the webhook.
type Options struct {
	// Reader reads ClusterClasses, MachineDeployments, Machines and MachinePools, from the manager's cache.
	Reader client.Reader
	// Object returns the object of a reference in a Cluster (external.Reader). It is called for control planes before an
	// upgrade.
	Object func(ctx context.Context, ref *corev1.ObjectReference, namespace string) (*unstructured.Unstructured, error)
	// Workload returns a reader of a Cluster's Nodes. It is called before an upgrade of a Cluster with MachinePools.
	Workload func(ctx context.Context, cluster types.NamespacedName) (client.Reader, error)
	// Clock is used to wait for a class; nil means the real clock.
	Clock clock.Clock
	// ClusterTopology and MachinePool are the feature gates with these names.
	ClusterTopology, MachinePool bool
}

// maxClasses is how many classes with compiled variables are cached.
const maxClasses = 256

// SetupWithManager serves the webhooks of Cluster.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	w, err := New(o)
	if err != nil {
		return err
	}
	return webhooks.Register(mgr, &clusterv1.Cluster{}, w, w)
}

// Webhook defaults and validates Clusters.
type Webhook struct {
	options     Options
	definitions *memo.Memo[*variables.Definitions]
}

// New returns a Webhook without serving it.
func New(o Options) (*Webhook, error) {
	if o.Reader == nil || o.Object == nil || o.MachinePool && o.Workload == nil {
		return nil, errors.New("the Cluster webhook requires Reader and Object, and Workload with feature gate MachinePool")
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Webhook{options: o, definitions: memo.New[*variables.Definitions](maxClasses)}, nil
}

// compiled returns the compiled variables of a class.
func (w *Webhook) compiled(class *clusterv1.ClusterClass) (*variables.Definitions, error) {
	return w.definitions.Get(class.UID, class.ResourceVersion, func() (*variables.Definitions, error) { return variables.Compile(class) })
}

func invalid(cluster *clusterv1.Cluster, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(clusterv1.GroupVersion.WithKind("Cluster").GroupKind(), cluster.Name, errs)
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
