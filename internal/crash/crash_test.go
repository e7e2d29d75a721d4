package crash_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"sigs.k8s.io/cluster-api/internal/crash"
)

func TestMain(m *testing.M) {
	crash.Contain()
	os.Exit(m.Run())
}

func TestCaught(t *testing.T) {
	var logged []string
	log := funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{})
	if err := crash.Caught(log, "rendering", func() error { return nil }); err != nil || len(logged) != 0 {
		t.Errorf("err = %v, logged %q; want nothing", err, logged)
	}
	failed := errors.New("failed")
	if err := crash.Caught(log, "rendering", func() error { return failed }); !errors.Is(err, failed) || len(logged) != 0 {
		t.Errorf("err = %v, logged %q; an error stays what it is", err, logged)
	}
	err := crash.Caught(log, "rendering", func() error {
		var m map[string]int
		m["a"] = 1
		return nil
	})
	var panicked *crash.Error
	if !errors.As(err, &panicked) || !strings.HasPrefix(err.Error(), "rendering: panic: assignment to entry in nil map") {
		t.Errorf("err = %v", err)
	}
	if len(logged) != 1 || !strings.Contains(logged[0], "TestCaught") {
		t.Errorf("the log has no stack: %q", logged)
	}
	if err := crash.Caught(logr.Discard(), "nothing", func() error { panic(nil) }); err == nil {
		t.Error("panic(nil) is no success")
	}
}

// poison is a stream of watch events that cannot be decoded.
type poison struct{}

func (poison) Decode() (watch.EventType, runtime.Object, error) { panic("poison") }
func (poison) Close()                                           {}

// TestDecodersOfWatchesAreContained: the watch ends, and its reader starts another one.
func TestDecodersOfWatchesAreContained(t *testing.T) {
	w := watch.NewStreamWatcher(poison{}, apierrors.NewClientErrorReporter(http.StatusInternalServerError, "GET", "decoding"))
	if event, open := <-w.ResultChan(); open {
		t.Errorf("event %v; the watch is over", event)
	}
}

// TestAbortedResponsesAreNotWhole: what an API server breaks off must not look complete, as a truncated list would.
func TestAbortedResponsesAreNotWhole(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		defer utilruntime.HandleCrash()
		_, _ = w.Write([]byte("half"))
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(server.Close)
	response, err := server.Client().Get(server.URL) //nolint:noctx // it is answered at once
	if err == nil {
		defer func() { _ = response.Body.Close() }()
		_, err = io.ReadAll(response.Body)
	}
	if err == nil {
		t.Error("the client takes a response that was broken off for a whole one")
	}
}

// TestHandlersOfEventsAreContained: the event after the one that a handler could not take is handled.
func TestHandlersOfEventsAreContained(t *testing.T) {
	named := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	}
	set := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(set, 0)
	t.Cleanup(factory.Shutdown)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	handled := make(chan string, 2)
	informer := factory.Core().V1().ConfigMaps().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(o any) {
		if name := o.(*corev1.ConfigMap).Name; name != "poison" {
			handled <- name
			return
		}
		panic("poison")
	}}); err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	for _, name := range []string{"poison", "next"} {
		if _, err := set.CoreV1().ConfigMaps("default").Create(ctx, named(name), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := <-handled; got != "next" {
		t.Errorf("handled %s", got)
	}
}
