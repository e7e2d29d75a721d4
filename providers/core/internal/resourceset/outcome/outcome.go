// Package outcome keeps, in memory, why manifests could not be applied to Clusters.
//
// ClusterResourceSetBindings record whether manifests were applied, but not why not. The controller of bindings records that here, for
// retries, and for the condition of the ClusterResourceSets, whose controller is notified of changes. After a restart, what failed is
// applied again, and recorded again.
//
// What does not belong here: what must outlive the process.
package outcome

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
)

// Failure is a failed attempt to apply the manifests of a ConfigMap or Secret to a Cluster.
type Failure struct {
	// Hash is that of the manifests.
	Hash string
	// Problems are why, in the order of the manifests.
	Problems []string
	// Tries is the number of attempts in a row that failed with these manifests.
	Tries int
	// Next is when to try again. Zero: not before the manifests change.
	Next time.Time
}

// Outcome is the result of the last attempt to apply a ClusterResourceSet to a Cluster.
type Outcome struct {
	// Unreachable is why the workload cluster could not be reached; empty if it was.
	Unreachable string
	// Failures are those of each ConfigMap and Secret.
	Failures map[addonsv1.ResourceRef]Failure
}

func (o Outcome) same(other Outcome) bool {
	if o.Unreachable != other.Unreachable || len(o.Failures) != len(other.Failures) {
		return false
	}
	for ref, f := range o.Failures {
		g, ok := other.Failures[ref]
		if !ok || !slices.Equal(f.Problems, g.Problems) {
			return false
		}
	}
	return true
}

type key struct {
	cluster types.NamespacedName
	set     string
}

// Ledger has the Outcomes of all Clusters. It is safe for concurrent use.
type Ledger struct {
	mu       sync.Mutex
	outcomes map[key]Outcome
	notify   func(set types.NamespacedName)
}

// NewLedger returns an empty Ledger.
func NewLedger() *Ledger {
	return &Ledger{outcomes: map[key]Outcome{}, notify: func(types.NamespacedName) {}}
}

// Of returns the Outcome of a ClusterResourceSet in a Cluster, and whether there was an attempt in this process. It must not be modified.
func (l *Ledger) Of(cluster types.NamespacedName, set string) (Outcome, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o, ok := l.outcomes[key{cluster, set}]
	return o, ok
}

// Record records an Outcome. If it is a change, the ClusterResourceSet is reconciled.
func (l *Ledger) Record(cluster types.NamespacedName, set string, o Outcome) {
	l.mu.Lock()
	before, known := l.outcomes[key{cluster, set}]
	l.outcomes[key{cluster, set}] = o
	notify := l.notify
	l.mu.Unlock()
	if !known || !before.same(o) {
		notify(types.NamespacedName{Namespace: cluster.Namespace, Name: set})
	}
}

// Forget forgets a Cluster.
func (l *Ledger) Forget(cluster types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k := range l.outcomes {
		if k.cluster == cluster {
			delete(l.outcomes, k)
		}
	}
}

// Source returns a source that reconciles a ClusterResourceSet some time after one of its Outcomes changed, so that changes of many
// Clusters are one reconcile.
func (l *Ledger) Source(delay time.Duration) source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.notify = func(set types.NamespacedName) { queue.AddAfter(reconcile.Request{NamespacedName: set}, delay) }
		return nil
	})
}
