package failsafe_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"sigs.k8s.io/cluster-api/sdk/failsafe"
)

func TestMain(m *testing.M) {
	failsafe.Contain()
	os.Exit(m.Run())
}

func TestRecover(t *testing.T) {
	failed := errors.New("failed")
	call := func(f func() error) (err error) {
		defer failsafe.Recover("rendering", &err)
		return f()
	}
	for _, c := range []struct {
		why  string
		f    func() error
		want string
	}{
		{"nil is returned as it is", func() error { return nil }, "<nil>"},
		{"an error is returned as it is", func() error { return failed }, "failed"},
		{"the runtime quotes no data", func() error { return errors.New([]string{}[len(os.Args)]) }, "rendering panicked: runtime error: index out of range"},
		{"others may quote a Secret", func() error { panic("s3cret") }, "rendering panicked: string"},
		{"panic(nil) is not a success", func() error { panic(nil) }, "rendering panicked: panic called with nil argument"}, //nolint:govet // that panic is what the case is about
	} {
		if err := fmt.Sprint(call(c.f)); !strings.HasPrefix(err, c.want) {
			t.Errorf("%s: %q, want %q", c.why, err, c.want)
		}
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
	response, err := server.Client().Get(server.URL) // The server responds immediately.
	if err == nil {
		defer func() { _ = response.Body.Close() }()
		_, err = io.ReadAll(response.Body)
	}
	if err == nil {
		t.Error("the client takes an aborted response for a complete one")
	}
}

// TestHandlersOfEventsAreContained: the event after the one that made a handler panic is handled.
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
