package external

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/contract"
)

// recorder is a controller that starts watches immediately, like a running one, and fails the first ones.
type recorder struct {
	fail    int
	watches int
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func newRecorder(t *testing.T) *recorder {
	t.Helper()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	return &recorder{queue: queue}
}

func (r *recorder) Watch(s source.Source) error {
	if r.fail > 0 {
		r.fail--
		return errors.New("not now")
	}
	r.watches++
	return s.Start(context.Background(), r.queue)
}

func kind(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "g", Version: version, Kind: "Thing"}
}

func thing() *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(kind("v1"))
	obj.SetNamespace("ns")
	obj.SetName("one")
	return obj
}

func TestWatchOncePerKind(t *testing.T) {
	controller := newRecorder(t)
	w := NewWatcher(controller, &informertest.FakeInformers{})
	var wait sync.WaitGroup
	for range 64 {
		wait.Go(func() {
			if err := w.Watch(t.Context(), kind("v1"), &handler.EnqueueRequestForObject{}); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if err := w.Watch(t.Context(), kind("v2"), &handler.EnqueueRequestForObject{}); err != nil {
		t.Fatal(err)
	}
	if controller.watches != 2 {
		t.Errorf("there are %d watches, want one of each version", controller.watches)
	}
}

// An object is read after Watch and deleted immediately: its deletion is the only event.
func TestNoEventIsMissedAfterWatch(t *testing.T) {
	informers := &informertest.FakeInformers{}
	controller := newRecorder(t)
	w := NewWatcher(controller, informers)
	if err := w.Watch(t.Context(), kind("v1"), &handler.EnqueueRequestForObject{}); err != nil {
		t.Fatal(err)
	}
	informer, err := informers.FakeInformerFor(t.Context(), thing())
	if err != nil {
		t.Fatal(err)
	}
	informer.Delete(thing())
	if controller.queue.Len() != 1 {
		t.Fatalf("%d requests are queued after the deletion, want 1", controller.queue.Len())
	}
	got, _ := controller.queue.Get()
	if want := (reconcile.Request{NamespacedName: client.ObjectKeyFromObject(thing())}); got != want {
		t.Errorf("the request is %v, want %v", got, want)
	}
}

func TestAFailedWatchIsTriedAgain(t *testing.T) {
	controller := newRecorder(t)
	controller.fail = 1
	informers := &informertest.FakeInformers{Error: errors.New("no such kind")}
	w := NewWatcher(controller, informers)
	for _, reason := range []string{"no such kind", "not now"} {
		err := w.Watch(t.Context(), kind("v1"), &handler.EnqueueRequestForObject{})
		if err == nil || !strings.Contains(err.Error(), "g/v1, Kind=Thing") || !strings.Contains(err.Error(), reason) {
			t.Fatalf("error is %v, want one with the kind and %q", err, reason)
		}
		informers.Error = nil
	}
	if err := w.Watch(t.Context(), kind("v1"), &handler.EnqueueRequestForObject{}); err != nil {
		t.Fatal(err)
	}
	if controller.watches != 1 {
		t.Errorf("there are %d watches, want 1", controller.watches)
	}
}

// objects is a reader of one Thing at v1beta2 and of the definition of its kind.
type objects struct{}

func (objects) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch o := into.(type) {
	case *metav1.PartialObjectMetadata:
		if key.Name == "things.g" {
			o.Labels = map[string]string{contract.V1Beta1.Label(): "v1beta1_v1beta2"}
			return nil
		}
	case *unstructured.Unstructured:
		if o.GetAPIVersion() == "g/v1beta2" && o.GetKind() == "Thing" && key == (client.ObjectKey{Namespace: "ns", Name: "one"}) {
			o.SetName(key.Name)
			o.SetNamespace(key.Namespace)
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: "any"}, key.Name)
}

func (objects) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("nothing should list")
}

func TestGet(t *testing.T) {
	tests := []struct {
		reason   string
		ref      *clusterv1.ContractVersionedObjectReference
		found    bool
		notFound bool
		err      string
	}{
		{"read at the newest version", &clusterv1.ContractVersionedObjectReference{APIGroup: "g", Kind: "Thing", Name: "one"}, true, false, ""},
		{"no such object", &clusterv1.ContractVersionedObjectReference{APIGroup: "g", Kind: "Thing", Name: "two"}, false, true, "getting Thing ns/two"},
		{"no such kind is not the same as no such object",
			&clusterv1.ContractVersionedObjectReference{APIGroup: "g", Kind: "Other", Name: "one"}, false, false, "CustomResourceDefinition others.g does not exist"},
		{"no reference", nil, false, false, "the reference has no kind"},
		{"an empty reference", &clusterv1.ContractVersionedObjectReference{}, false, false, "the reference has no kind"},
	}
	r := Reader{Client: objects{}, Versions: contract.APIVersions{Reader: objects{}}}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			obj, err := r.Get(t.Context(), tc.ref, "ns")
			if (err != nil) != (tc.err != "") || (err != nil && !strings.Contains(err.Error(), tc.err)) {
				t.Fatalf("error is %v, want one with %q", err, tc.err)
			}
			if (obj != nil) != tc.found || apierrors.IsNotFound(err) != tc.notFound {
				t.Errorf("found %t, NotFound %t; want %t and %t", obj != nil, apierrors.IsNotFound(err), tc.found, tc.notFound)
			}
			if obj != nil && obj.GetAPIVersion() != "g/v1beta2" {
				t.Errorf("read at %s, want g/v1beta2", obj.GetAPIVersion())
			}
		})
	}
}

// served is objects with v1beta1 served, too, and nothing else.
type served struct{ objects }

func (s served) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	if o, ok := into.(*unstructured.Unstructured); ok {
		switch o.GetAPIVersion() {
		case "g/v1beta1":
			o.SetName(key.Name)
			return nil
		case "g/v1alpha1":
			kind := o.GroupVersionKind()
			return &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}
		}
	}
	return s.objects.Get(ctx, key, into, opts...)
}

func TestExact(t *testing.T) {
	tests := []struct {
		reason, version, name string
		notFound              bool
		err                   string
	}{
		{"read at the version of the reference, which is not the newest", "v1beta1", "one", false, ""},
		{"no such object", "v1beta2", "two", true, "getting Thing ns/two"},
		{"a version that is not served", "v1alpha1", "one", false, "change the reference to version v1beta2"},
		{"no reference", "v1beta1", "", false, "the reference has no kind or no name"},
	}
	r := Reader{Client: served{}, Versions: contract.APIVersions{Reader: served{}}}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			obj, err := r.Exact(t.Context(), &corev1.ObjectReference{APIVersion: "g/" + tc.version, Kind: "Thing", Name: tc.name}, "ns")
			if (err != nil) != (tc.err != "") || (err != nil && !strings.Contains(err.Error(), tc.err)) {
				t.Fatalf("error is %v, want one with %q", err, tc.err)
			}
			if apierrors.IsNotFound(err) != tc.notFound || (err == nil && obj.GetAPIVersion() != "g/"+tc.version) {
				t.Errorf("read %v with error %v", obj, err)
			}
		})
	}
}
