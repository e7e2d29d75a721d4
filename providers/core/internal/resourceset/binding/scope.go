package binding

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/content"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/outcome"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Workloads connects to workload clusters.
type Workloads interface {
	Get(ctx context.Context, cluster types.NamespacedName) (*remote.Cluster, error)
}

// Controller reconciles the bindings of Clusters.
type Controller struct {
	step.Clients
	workloads Workloads
	contents  *content.Reader
	ledger    *outcome.Ledger
	// pause waits; nil for the real time.
	pause func(ctx context.Context, d time.Duration) error
}

// scope is the state of one reconcile, shared by its steps.
type scope struct {
	cluster *clusterv1.Cluster
	// sets select the Cluster, and are not being deleted; sorted by name.
	sets []*addonsv1.ClusterResourceSet
	// binding is nil if it does not exist.
	binding *addonsv1.ClusterResourceSetBinding
	// work is what to apply, in order.
	work []work
	// workload is the connection.
	workload *remote.Cluster
	// results are those of work, by the name of the ClusterResourceSet.
	results map[string][]addonsv1.ResourceBinding
	// again is when to reconcile without an event; zero for never.
	again time.Time
	// errs are errors that concern only one ConfigMap or Secret.
	errs []error
}

// fail keeps an error that does not stop the work on other ConfigMaps and Secrets.
func (s *scope) fail(err error) {
	if err != nil {
		s.errs = append(s.errs, err)
	}
}

// work is a ConfigMap or Secret to apply.
type work struct {
	set *addonsv1.ClusterResourceSet
	ref addonsv1.ResourceRef
}

func (c *Controller) scope(ctx context.Context, cluster *clusterv1.Cluster) (*scope, error) {
	s := &scope{cluster: cluster, results: map[string][]addonsv1.ResourceBinding{}}
	binding := &addonsv1.ClusterResourceSetBinding{}
	err := c.Client.Get(ctx, s.key(), binding)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err == nil {
		s.binding = binding
	}
	if !cluster.DeletionTimestamp.IsZero() {
		return s, nil
	}
	list := &addonsv1.ClusterResourceSetList{}
	if err := c.Client.List(ctx, list, client.InNamespace(cluster.Namespace)); err != nil {
		return nil, err
	}
	s.sets = c.selecting(list, cluster)
	return s, nil
}

// key returns the key of Cluster and binding.
func (s *scope) key() types.NamespacedName { return client.ObjectKeyFromObject(s.cluster) }

// entry returns the entry of a ClusterResourceSet, or nil.
func (s *scope) entry(set string) *addonsv1.ResourceSetBinding { return entryOf(s.binding, set) }

func entryOf(binding *addonsv1.ClusterResourceSetBinding, set string) *addonsv1.ResourceSetBinding {
	if binding == nil {
		return nil
	}
	for i := range binding.Spec.Bindings {
		if e := &binding.Spec.Bindings[i]; e.ClusterResourceSetName == set {
			return e
		}
	}
	return nil
}

// RecordOf returns the record of a ConfigMap or Secret, or nil.
func RecordOf(binding *addonsv1.ClusterResourceSetBinding, set string, ref addonsv1.ResourceRef) *addonsv1.ResourceBinding {
	if e := entryOf(binding, set); e != nil {
		return e.GetResource(ref)
	}
	return nil
}

// requeue returns a result that reconciles the Cluster again at s.again.
func (c *Controller) requeue(s *scope) step.Result {
	if s.again.IsZero() {
		return step.Done()
	}
	return step.Again(max(s.again.Sub(c.Clock.Now()), time.Millisecond))
}

// retryAt makes the Cluster be reconciled at a time, or earlier.
func (s *scope) retryAt(at time.Time) {
	if !at.IsZero() && (s.again.IsZero() || at.Before(s.again)) {
		s.again = at
	}
}

// now returns the current time as bindings record it.
func (c *Controller) now() metav1.Time {
	return metav1.NewTime(c.Clock.Now().Truncate(time.Second))
}
