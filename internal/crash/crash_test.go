package crash_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"sigs.k8s.io/cluster-api/internal/crash"
)

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

// TestHandlersOfEventsAreContained: the event after the one that a handler could not take is handled.
func TestHandlersOfEventsAreContained(t *testing.T) {
	before := utilruntime.ReallyCrash
	t.Cleanup(func() { utilruntime.ReallyCrash = before })
	crash.Contain()
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
