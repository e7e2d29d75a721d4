package apiversion

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// source is what an informer watches.
type source struct{ watches int }

func (*source) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return &clusterv1.MachineList{}, nil
}

func (s *source) WatchWithContext(context.Context, metav1.ListOptions) (watch.Interface, error) {
	s.watches++
	return watch.NewFake(), nil
}

// newListerWatcher returns one for Machines in v1beta2 that are stored in v1beta1, with its logs.
func newListerWatcher(t testing.TB, last ...client.Object) (*listerWatcher, *translation, *[]string) {
	t.Helper()
	tr, logs := newTranslation(t, newer, older), &[]string{}
	tr.log = funcr.New(func(_, args string) { *logs = append(*logs, args) }, funcr.Options{})
	store := toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
	for _, obj := range last {
		if err := store.Add(obj); err != nil {
			t.Fatal(err)
		}
	}
	return &listerWatcher{
		informers: &informers{boundary: tr.Boundary}, inner: &source{}, kind: tr.code, example: &clusterv1.Machine{}, lastGood: store,
		failed: map[string]string{},
	}, tr, logs
}

// machine returns a stored Machine.
func machine(version string, labels ...string) *clusterv1beta1.Machine {
	m := &clusterv1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "u", ResourceVersion: version}}
	for _, l := range labels {
		metav1.SetMetaDataLabel(&m.ObjectMeta, l, "")
	}
	return m
}

// An object that cannot be converted does not end the watch, and stays as it was.
func TestEventsThatCannotBeConverted(t *testing.T) {
	good := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "u", ResourceVersion: "5"}}
	tests := []struct {
		reason string
		last   []client.Object
		event  watch.Event
		want   string // the resource version; empty if the event is left out
	}{
		{reason: "converted", event: watch.Event{Type: watch.Added, Object: machine("6")}, want: "6"},
		{reason: "added, and unknown", event: watch.Event{Type: watch.Added, Object: machine("6", unconvertible)}},
		{reason: "added by a new list", last: []client.Object{good}, event: watch.Event{Type: watch.Added, Object: machine("6", unconvertible)}, want: "5"},
		{reason: "modified", last: []client.Object{good}, event: watch.Event{Type: watch.Modified, Object: machine("6", unconvertible)}},
		{reason: "deleted", last: []client.Object{good}, event: watch.Event{Type: watch.Deleted, Object: machine("6", unconvertible)}, want: "5"},
		{reason: "deleted, and unknown", event: watch.Event{Type: watch.Deleted, Object: machine("6", unconvertible)}, want: "6"},
		{reason: "bookmark", event: watch.Event{Type: watch.Bookmark, Object: machine("6", unconvertible)}, want: "6"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			w, tr, _ := newListerWatcher(t, tt.last...)
			got, kept := w.event(t.Context(), tr, tt.event)
			if kept != (tt.want != "") {
				t.Fatalf("kept: %t", kept)
			}
			if !kept {
				return
			}
			m, ok := got.Object.(*clusterv1.Machine)
			if !ok || m.ResourceVersion != tt.want || got.Type != tt.event.Type {
				t.Errorf("got %s %T %s, want version %s", got.Type, got.Object, m.GetResourceVersion(), tt.want)
			}
			if ok && !m.GroupVersionKind().Empty() {
				t.Errorf("the object has the kind %s; decoded objects have none", m.GroupVersionKind())
			}
		})
	}
}

func TestFailuresAreLoggedOnce(t *testing.T) {
	w, tr, logs := newListerWatcher(t)
	for _, version := range []string{"1", "2", "3"} {
		w.event(t.Context(), tr, watch.Event{Type: watch.Modified, Object: machine(version, unconvertible)})
	}
	if len(*logs) != 1 || !strings.Contains((*logs)[0], `"object"="ns/m"`) {
		t.Errorf("logged %q", *logs)
	}
	w.event(t.Context(), tr, watch.Event{Type: watch.Modified, Object: machine("4")})
	w.event(t.Context(), tr, watch.Event{Type: watch.Modified, Object: machine("5", unconvertible)})
	if len(*logs) != 2 {
		t.Errorf("logged %q, want a second time after it could be converted", *logs)
	}
}

// A list must not lose an object that cannot be converted: controllers would take it for deleted.
func TestItemsThatCannotBeConverted(t *testing.T) {
	good := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "u", ResourceVersion: "5"}}
	w, tr, _ := newListerWatcher(t, good)
	other := machine("7", unconvertible)
	other.Name = "other"
	recreated := machine("8")
	recreated.Name = "recreated"
	stored := &clusterv1beta1.MachineList{
		ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "more", RemainingItemCount: ptr.To[int64](1)},
		Items:    []clusterv1beta1.Machine{*machine("6", unconvertible), *other, *recreated},
	}
	list := &clusterv1.MachineList{}
	err := fillList(list, stored, func(o client.Object) (client.Object, error) { return w.item(t.Context(), tr, o), nil })
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range list.Items {
		got = append(got, m.Name+" "+m.ResourceVersion)
	}
	if diff := cmp.Diff([]string{"m 5", "recreated 8"}, got); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(stored.ListMeta, list.ListMeta); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
}

// Nothing is looked up again unless a watch ends early.
func TestEarlyEndsAreNoticed(t *testing.T) {
	w, tr, _ := newListerWatcher(t)
	d, clock := serves(older, older), clocktesting.NewFakePassiveClock(time.Now())
	tr.Boundary.stored, tr.Boundary.clock = newStoredVersions(d, newMachines().Versions, clock), clock
	passes := func(d time.Duration) { clock.SetTime(clock.Now().Add(d)) }
	expect := func(reason string, want int) {
		t.Helper()
		if _, err := w.WatchWithContext(t.Context(), metav1.ListOptions{TimeoutSeconds: ptr.To[int64](400)}); err != nil {
			t.Fatal(err)
		}
		if d.requests != want {
			t.Errorf("%s: %d requests, want %d", reason, d.requests, want)
		}
	}
	expect("the first watch", 2)
	for range 3 {
		passes(400 * time.Second)
		expect("after the timeout", 2)
	}
	d.resources = serves(newer, older, newer).resources
	passes(10 * time.Second)
	expect("after an early end", 3)
	passes(400 * time.Second)
	expect("once more, because discovery may have been late", 4)
	passes(400 * time.Second)
	expect("after the timeout", 4)
	if got, err := tr.Boundary.Stored(t.Context(), machineKind()); err != nil || got != newer {
		t.Errorf("stored: %s, %v", got, err)
	}
}
