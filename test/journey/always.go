package journey

import (
	"context"
	"fmt"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// Always fails the test if a condition is not true in any state of the Cluster until the returned function is called. It
// checks the conditions after every change. Changes of one kind are in order; those of different kinds may be in another
// order than they happened, as for any client.
func (c *Subject) Always(why string, conditions ...Condition) (still func()) {
	c.t.Helper()
	o := &observer{subject: c, why: why, conditions: conditions, seen: map[string]client.Object{}}
	ctx, stop := context.WithCancel(c.t.Context())
	for _, kind := range watched() {
		synced, err := c.listen(ctx, kind, o.see)
		if err != nil {
			c.t.Fatal(err)
		}
		if !toolscache.WaitForCacheSync(ctx.Done(), synced) {
			c.t.Fatalf("%s: waiting for watches: %v", why, ctx.Err())
		}
	}
	o.begin()
	return func() {
		c.t.Helper()
		stop()
		o.end()
	}
}

// observer keeps its own record of watch events, because a cache may be ahead of them.
type observer struct {
	subject    *Subject
	why        string
	conditions []Condition

	mu        sync.Mutex
	seen      map[string]client.Object
	checking  bool // false until the record is complete, and after the end
	violation error
}

func (o *observer) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.checking = true
	o.check()
}

func keyOf(object client.Object) string { return fmt.Sprintf("%T %s", object, object.GetName()) }

func (o *observer) see(object client.Object, deleted bool) {
	if object.GetNamespace() != o.subject.Namespace {
		return
	}
	if object.GetName() != o.subject.Name && object.GetLabels()[clusterv1.ClusterNameLabel] != o.subject.Name {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen[keyOf(object)] = object
	if deleted {
		delete(o.seen, keyOf(object))
	}
	o.check()
}

func (o *observer) check() {
	if !o.checking || o.violation != nil {
		return
	}
	p := o.snapshot()
	for _, c := range o.conditions {
		if err := c(p); err != nil {
			o.violation = fmt.Errorf("%w\n%s", err, p)
			return
		}
	}
}

func (o *observer) snapshot() *Snapshot {
	p := &Snapshot{Cluster: &clusterv1.Cluster{}}
	for _, object := range o.seen {
		p.add(object)
	}
	return p
}

func (o *observer) end() {
	o.subject.t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.checking = false
	if o.violation != nil {
		o.subject.t.Errorf("%s: %v", o.why, o.violation)
	}
}
