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

	before   []string // the inventory of the namespace without it
	mu       sync.Mutex
	workload *Workload
}

// Key names the Cluster.
func (c *Subject) Key() client.ObjectKey {
	return client.ObjectKey{Namespace: c.Namespace, Name: c.Name}
}

// Picture returns what is on record now.
func (c *Subject) Picture() *Picture {
	c.t.Helper()
	p, err := c.picture(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

func (c *Subject) picture(ctx context.Context) (*Picture, error) {
	p := &Picture{Cluster: &clusterv1.Cluster{}}
	if err := c.cache.Get(ctx, c.Key(), p.Cluster); client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	mine := []client.ListOption{client.InNamespace(c.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: c.Name}}
	for _, list := range p.lists() {
		if err := c.cache.List(ctx, list, mine...); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Eventually waits until all conditions are true in one Picture. The test ends, with a description of the Cluster, when
// that takes too long.
func (c *Subject) Eventually(why string, conditions ...Condition) {
	c.t.Helper()
	if err := c.await(c.t.Context(), conditions...); err != nil {
		c.t.Fatalf("%s: not after %s: %v\n%s", why, c.patience, err, c.describe())
	}
}

func (c *Subject) await(ctx context.Context, conditions ...Condition) error {
	deadline := time.After(c.patience)
	for {
		changed := c.changes.next(c.Namespace)
		p, err := c.picture(ctx)
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

// Change changes the Cluster as an editor does: what others changed in between is kept.
func (c *Subject) Change(change func(*clusterv1.Cluster)) {
	c.t.Helper()
	if err := c.Try(change); err != nil {
		c.t.Fatalf("changing Cluster %s: %v", c.Name, err)
	}
}

// Try is Change when the answer may be no.
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
		return c.settle(ctx, cluster)
	}
}

// Delete deletes the Cluster and waits until it and its Machines are gone.
func (c *Subject) Delete() {
	c.t.Helper()
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: c.Name, Namespace: c.Namespace}}
	if err := c.Client.Delete(c.t.Context(), cluster); err != nil {
		c.t.Fatalf("deleting Cluster %s: %v", c.Name, err)
	}
	c.Eventually("a deleted Cluster goes away", Absent)
}

// Gone deletes the Cluster and waits until nothing of it is left: in the management cluster, where the namespace is as
// it was before, and in the simulated cloud, where nobody answers any more.
func (c *Subject) Gone() {
	c.t.Helper()
	workload := c.Workload()
	c.Delete()
	// What has an owner is collected a moment later.
	c.Eventually("nothing is left in the management cluster", func(*Picture) error {
		if diff := cmp.Diff(c.before, c.Inventory()); diff != "" {
			return fmt.Errorf("the namespace is not as before (-before +now):\n%s", diff)
		}
		return nil
	})
	if nodes, err := workload.Nodes(c.t.Context()); err == nil {
		c.t.Errorf("the API server of the deleted Cluster %s still answers, with %d Nodes", c.Name, len(nodes))
	}
}
