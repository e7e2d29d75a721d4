package journey

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// Subject is a Cluster under test.
type Subject struct {
	*World
	Name string

	before   []string // the inventory of the namespace before it was created
	mu       sync.Mutex
	workload *Workload
	// planning is the client of plans; nil before the first one.
	planning client.Client
}

// Key returns the key of the Cluster.
func (c *Subject) Key() client.ObjectKey {
	return client.ObjectKey{Namespace: c.Namespace, Name: c.Name}
}

// Snapshot returns the current Snapshot.
func (c *Subject) Snapshot() *Snapshot {
	c.t.Helper()
	p, err := c.snapshot(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

func (c *Subject) snapshot(ctx context.Context) (*Snapshot, error) {
	return c.snapshotFrom(ctx, c.cache)
}

// snapshotFrom returns what a reader has of the Cluster: a cache, or the API server.
func (c *Subject) snapshotFrom(ctx context.Context, from client.Reader) (*Snapshot, error) {
	p := &Snapshot{Cluster: &clusterv1.Cluster{}}
	if err := from.Get(ctx, c.Key(), p.Cluster); client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	mine := []client.ListOption{client.InNamespace(c.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: c.Name}}
	for _, list := range p.lists() {
		if err := from.List(ctx, list, mine...); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Eventually waits until all conditions are true in one Snapshot. After the timeout, the test fails with a description of
// the Cluster.
func (c *Subject) Eventually(why string, conditions ...Condition) {
	c.t.Helper()
	if err := c.waitFor(c.t.Context(), conditions...); err != nil {
		c.t.Fatalf("%s: not within %s: %v\n%s", why, c.timeout, err, c.describe())
	}
}

func (c *Subject) waitFor(ctx context.Context, conditions ...Condition) error {
	deadline := time.After(c.timeout)
	for {
		changed := c.changes.next(c.Namespace)
		p, err := c.snapshot(ctx)
		for i := 0; err == nil && i < len(conditions); i++ {
			err = conditions[i](p)
		}
		if err == nil {
			return nil
		}
		select {
		case <-changed:
		case <-time.After(tick):
		case <-deadline:
			return err
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}

// Change reads, changes and updates the Cluster, and retries on conflicts.
func (c *Subject) Change(change func(*clusterv1.Cluster)) {
	c.t.Helper()
	if err := c.Try(change); err != nil {
		c.t.Fatalf("changing Cluster %s: %v", c.Name, err)
	}
}

// Try is Change for updates that may be rejected.
func (c *Subject) Try(change func(*clusterv1.Cluster)) error {
	ctx := c.t.Context()
	for {
		cluster := &clusterv1.Cluster{}
		if err := c.Client.Get(ctx, c.Key(), cluster); err != nil {
			return err
		}
		change(cluster)
		err := c.Client.Update(ctx, cluster)
		if apierrors.IsConflict(err) {
			continue
		}
		if err != nil {
			return err
		}
		return c.waitForCache(ctx, cluster)
	}
}

// Delete deletes the Cluster and waits until it and its Machines are deleted.
func (c *Subject) Delete() {
	c.t.Helper()
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: c.Name, Namespace: c.Namespace}}
	if err := c.Client.Delete(c.t.Context(), cluster); err != nil {
		c.t.Fatalf("deleting Cluster %s: %v", c.Name, err)
	}
	c.Eventually("the Cluster is deleted", Absent)
}

// Gone deletes the Cluster and waits until nothing is left: in the management cluster, where the namespace has the same
// objects as before, and in the simulated cloud, where the API server no longer responds.
func (c *Subject) Gone() {
	c.t.Helper()
	workload := c.Workload()
	c.Delete()
	// Garbage collection takes a moment.
	c.Eventually("nothing is left in the management cluster", func(*Snapshot) error {
		if diff := cmp.Diff(c.before, c.Inventory()); diff != "" {
			return fmt.Errorf("objects in the namespace (-before +now):\n%s", diff)
		}
		return nil
	})
	if nodes, err := workload.Nodes(c.t.Context()); err == nil {
		c.t.Errorf("the API server of the deleted Cluster %s still responds, with %d Nodes", c.Name, len(nodes))
	}
}
