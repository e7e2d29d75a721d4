package objectcache

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func kind(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "external.test", Version: version, Kind: "Thing"}
}

// unlisted is a cache whose kinds are listed once listed is set. Until then, reads wait.
type unlisted struct {
	cache.Cache
	listed bool
	waited []time.Duration // by reads, at most, whole seconds
}

type informer struct {
	cache.Informer
	synced bool
}

func (i informer) HasSynced() bool { return i.synced }

func (c *unlisted) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return informer{synced: c.listed}, nil
}

func (c *unlisted) Get(ctx context.Context, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return c.read(ctx)
}

func (c *unlisted) List(ctx context.Context, _ client.ObjectList, _ ...client.ListOption) error {
	return c.read(ctx)
}

// read is what the real cache does, without the waiting.
func (c *unlisted) read(ctx context.Context) error {
	until, limited := ctx.Deadline()
	if c.listed {
		if limited {
			return fmt.Errorf("a read of a kind that is listed must not have the deadline %s", until)
		}
		return nil
	}
	if !limited {
		return fmt.Errorf("this read waits for ever")
	}
	c.waited = append(c.waited, time.Until(until).Round(time.Second))
	over, cancel := context.WithDeadline(ctx, time.Now())
	defer cancel()
	<-over.Done()
	return over.Err()
}

// Reads of a kind that cannot be listed wait for at most listTimeout, all together.
func TestAKindThatCannotBeListedDoesNotBlock(t *testing.T) {
	inner := &unlisted{}
	clock := clocktesting.NewFakeClock(time.Now())
	p := newBounded(inner, clock)
	get := func() error {
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(kind("v1"))
		return p.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "one"}, obj)
	}
	list := func() error {
		all := &unstructured.UnstructuredList{}
		all.SetGroupVersionKind(kind("v1").GroupVersion().WithKind("ThingList"))
		return p.List(t.Context(), all)
	}
	_ = get()
	clock.Step(listTimeout - time.Second)
	_ = list()
	clock.Step(time.Hour)
	err := get()
	if want := []time.Duration{listTimeout, time.Second, -time.Hour + time.Second}; fmt.Sprint(inner.waited) != fmt.Sprint(want) {
		t.Errorf("the reads could wait for %v, want %v", inner.waited, want)
	}
	if err == nil || !strings.Contains(err.Error(), "Thing.external.test in version v1") || !strings.Contains(err.Error(), "ClusterRole") {
		t.Errorf("the error must contain what cannot be read, and what to check: %v", err)
	}
	denied := apierrors.NewForbidden(schema.GroupResource{Group: "external.test", Resource: "things"}, "", errors.New("User capi cannot list resource"))
	p.listFailed(kind("v1").String(), denied)
	if err := get(); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "User capi cannot list resource") || !strings.Contains(err.Error(), "ClusterRole") {
		t.Errorf("the error must be why it cannot be listed: %v", err)
	}
	inner.listed = true
	for _, read := range []func() error{get, list} {
		if err := read(); err != nil {
			t.Errorf("after the list arrived: %v", err)
		}
	}
	if len(p.until)+len(p.denied) > 0 {
		t.Errorf("kinds that are listed are still waited for: %v, %v", p.until, p.denied)
	}
}
