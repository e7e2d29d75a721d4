package journey

import (
	"context"
	"fmt"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// Always fails the test when a condition is not true in any state that the Cluster goes through until the returned
// function is called. It looks after every single change, in the order the API server had them per kind; changes of
// different kinds may be seen in another order than they happened, as by every client.
func (c *Subject) Always(why string, conditions ...Condition) (still func()) {
	c.t.Helper()
	o := &observer{subject: c, why: why, conditions: conditions, seen: map[string]client.Object{}}
	ctx, stop := context.WithCancel(c.t.Context())
	for _, kind := range watched() {
		told, err := c.listen(ctx, kind, o.see)
		if err != nil {
			c.t.Fatal(err)
		}
		if !toolscache.WaitForCacheSync(ctx.Done(), told) {
			c.t.Fatalf("%s: what there is was not told: %v", why, ctx.Err())
		}
	}
	o.begin()
	return func() {
		c.t.Helper()
		stop()
		o.end()
	}
}

// observer keeps its own record of what the watches told, because a cache may be ahead of them.
type observer struct {
	subject    *Subject
	why        string
	conditions []Condition

	mu      sync.Mutex
	seen    map[string]client.Object
	looking bool // false until the record is complete, and after the end
	broken  error
}

func (o *observer) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.looking = true
	o.look()
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
	o.look()
}

func (o *observer) look() {
	if !o.looking || o.broken != nil {
		return
	}
	p := o.picture()
	for _, c := range o.conditions {
		if err := c(p); err != nil {
			o.broken = fmt.Errorf("%w\n%s", err, p)
			return
		}
	}
}

func (o *observer) picture() *Picture {
	p := &Picture{Cluster: &clusterv1.Cluster{}}
	for _, object := range o.seen {
		p.add(object)
	}
	return p
}

func (o *observer) end() {
	o.subject.t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.looking = false
	if o.broken != nil {
		o.subject.t.Errorf("%s: %v", o.why, o.broken)
	}
}
