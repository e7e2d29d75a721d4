package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/faults"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

// next returns the next event of a watch.
func next(t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	select {
	case e, open := <-w.ResultChan():
		if !open {
			t.Fatal("the watch ended")
		}
		return e
	case <-time.After(30 * time.Second):
		t.Fatal("no event was received")
	}
	return watch.Event{}
}

func describe(e watch.Event) string {
	if m, ok := e.Object.(metav1.Object); ok {
		return fmt.Sprintf("%s %s", e.Type, m.GetName())
	}
	return string(e.Type)
}

func TestWatchReplaysAndFollows(t *testing.T) {
	c := newTestCluster(t)
	maps := c.client(t).CoreV1().ConfigMaps("default")
	ctx := t.Context()
	list, err := maps.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	created, err := maps.Create(ctx, configMap("a"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	created.Labels = map[string]string{"x": "y"}
	if _, err := maps.Update(ctx, created, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	all, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer all.Stop()
	labeled, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion, LabelSelector: "x=y"})
	if err != nil {
		t.Fatal(err)
	}
	defer labeled.Stop()
	got := []string{describe(next(t, all)), describe(next(t, all)), describe(next(t, labeled))}
	if err := maps.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	gone := next(t, all)
	got = append(got, describe(gone), describe(next(t, labeled)))
	want := []string{"ADDED a", "MODIFIED a", "ADDED a", "DELETED a", "DELETED a"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if version := gone.Object.(*corev1.ConfigMap).ResourceVersion; version <= created.ResourceVersion {
		t.Errorf("a deletion must have its own version, not %s", version)
	}
}

func TestWatchOfOldVersions(t *testing.T) {
	c := newTestCluster(t)
	maps := c.client(t).CoreV1().ConfigMaps("default")
	w, err := maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "7"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	e := next(t, w)
	if err := apierrors.FromObject(e.Object); e.Type != watch.Error || !apierrors.IsResourceExpired(err) {
		t.Errorf("watching from an old version: %s %v, want 410 Gone", e.Type, err)
	}
	err = c.client(t).CoreV1().RESTClient().Get().Resource("configmaps").Param("watch", "true").
		Param("resourceVersion", "9999999999999999").MaxRetries(0).Do(t.Context()).Error()
	if !apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		t.Errorf("watching from a future version: %v, want too large", err)
	}
}

func TestWatchListEndsWithBookmark(t *testing.T) {
	c := newTestCluster(t)
	maps := c.client(t).CoreV1().ConfigMaps("default")
	if _, err := maps.Create(t.Context(), configMap("a"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	yes := true
	w, err := maps.Watch(t.Context(), metav1.ListOptions{
		SendInitialEvents: &yes, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if got := describe(next(t, w)); got != "ADDED a" {
		t.Error(got)
	}
	bookmark := next(t, w)
	if bookmark.Type != watch.Bookmark || bookmark.Object.(*corev1.ConfigMap).Annotations[metav1.InitialEventsAnnotationKey] != "true" {
		t.Errorf("initial events must end with a bookmark, not %+v", bookmark)
	}
	// A quiet watch gets bookmarks for changes of other kinds.
	for i := range bookmarkEvery {
		other := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i)}}
		if _, err := store.Ensure(c.group, other); err != nil {
			t.Fatal(err)
		}
	}
	if later := next(t, w); later.Type != watch.Bookmark {
		t.Errorf("a quiet watch must get bookmarks, not %+v", later)
	}
}

// TestQuietWatchGetsBookmarks checks that bookmarks show clients that the watch is alive, and are not sent by an unresponsive server.
func TestQuietWatchGetsBookmarks(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	c := newTestClusterAt(t, clock)
	watching, err := c.client(t).CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{AllowWatchBookmarks: true})
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	elapse := func() {
		t.Helper()
		err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			return clock.Waiters() >= 2, nil // the timers for the end of the watch, and for the next bookmark
		})
		if err != nil {
			t.Fatal(err)
		}
		clock.Step(bookmarkInterval)
	}
	elapse()
	if e := next(t, watching); e.Type != watch.Bookmark {
		t.Errorf("got %+v, want a bookmark after a quiet minute", e)
	}
	if err := c.group.SetFaults(faults.Faults{Unresponsive: true}); err != nil {
		t.Fatal(err)
	}
	elapse()
	select {
	case e := <-watching.ResultChan():
		t.Errorf("got %+v from an unresponsive server", e)
	case <-time.After(50 * time.Millisecond): // No event shows that nothing is sent.
	}
	if err := c.group.SetFaults(faults.Faults{}); err != nil {
		t.Fatal(err)
	}
	if e := next(t, watching); e.Type != watch.Bookmark {
		t.Errorf("got %+v, want the bookmark that was due", e)
	}
}

func TestWatchTimesOut(t *testing.T) {
	c := newTestCluster(t)
	w, err := c.client(t).CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{TimeoutSeconds: new(int64(1))})
	if err != nil {
		t.Fatal(err)
	}
	for e := range w.ResultChan() {
		t.Errorf("unexpected event %v", e)
	}
}

func TestWatchEndsWithTheCluster(t *testing.T) {
	c := newTestCluster(t)
	w, err := c.client(t).CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cloud.Drop(c.group); err != nil {
		t.Fatal(err)
	}
	for e := range w.ResultChan() {
		t.Errorf("unexpected event %v", e)
	}
}

func TestWatchOfTables(t *testing.T) {
	c := newTestCluster(t)
	populate(t, c.group)
	raw := c.client(t).CoreV1().RESTClient().Get().Resource("nodes").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json").
		Param("watch", "true").Param("timeoutSeconds", "1")
	body, err := raw.DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := string(body); !containsAll(got, `"kind":"Table"`, `"type":"ADDED"`, `"name":"Roles"`, `"control-plane"`) {
		t.Error(got)
	}
}

func containsAll(s string, words ...string) bool {
	for _, word := range words {
		if !strings.Contains(s, word) {
			return false
		}
	}
	return true
}

func TestInformersAndControllerRuntimeCache(t *testing.T) {
	c := newTestCluster(t)
	ctx := t.Context()
	populate(t, c.group)
	factory := informers.NewSharedInformerFactory(clientFor(t, protobuf(c.admin(t))), 0)
	informer := factory.Core().V1().Nodes().Informer()
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("the informer did not sync")
	}

	runtimeCache, err := ctrlcache.New(c.admin(t), ctrlcache.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	changed := make(chan string, 10)
	pods, err := runtimeCache.GetInformer(ctx, &corev1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { changed <- "add " + o.(metav1.Object).GetName() },
		DeleteFunc: func(o any) { changed <- "delete " + o.(metav1.Object).GetName() },
	}); err != nil {
		t.Fatal(err)
	}
	go func() {
		if err := runtimeCache.Start(ctx); err != nil {
			t.Error(err)
		}
	}()
	if !runtimeCache.WaitForCacheSync(ctx) {
		t.Fatal("the cache did not sync")
	}
	direct, err := client.New(c.admin(t), client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	if err := direct.Create(ctx, pod); err != nil {
		t.Fatal(err)
	}
	patched := pod.DeepCopy()
	patched.Labels = map[string]string{"a": "b"}
	if err := direct.Patch(ctx, patched, client.MergeFromWithOptions(pod, client.MergeFromWithOptimisticLock{})); err != nil {
		t.Fatal(err)
	}
	if err := direct.Delete(ctx, pod); err != nil {
		t.Fatal(err)
	}
	want := []string{"add kube-apiserver-cp-0", "add p", "delete p"}
	var got []string
	for range want {
		select {
		case event := <-changed:
			got = append(got, event)
		case <-time.After(30 * time.Second):
			t.Fatalf("only %v were received", got)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestProtobufOnlyIsNotAcceptable(t *testing.T) {
	c := newTestCluster(t)
	for accept, want := range map[string]int{
		"application/vnd.kubernetes.protobuf":                  http.StatusNotAcceptable,
		"application/vnd.kubernetes.protobuf,application/json": http.StatusOK,
		"application/cbor;q=0.9, application/yaml":             http.StatusOK,
	} {
		var code int
		c.client(t).CoreV1().RESTClient().Get().Resource("nodes").SetHeader("Accept", accept).Do(t.Context()).StatusCode(&code)
		if code != want {
			t.Errorf("Accept: %s: status %d, want %d", accept, code, want)
		}
	}
}
