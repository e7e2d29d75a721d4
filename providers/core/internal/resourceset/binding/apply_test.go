package binding

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// TestApplied compares the whole binding and all requests. Afterwards, there are none, in this and in another process.
func TestApplied(t *testing.T) {
	a, b := configMap("a", yaml("one"), yaml("two")), secret("b", addonsv1.ClusterResourceSetSecretType, yaml("three"))
	cni, more := set("cni", once, inConfigMap("a"), inSecret("b"), inConfigMap("missing")), set("more", always, inConfigMap("a"))
	w := newWorld(t, cni, more, a, b)
	w.run("c")
	now := metav1.NewTime(object.Now())
	record := func(ref addonsv1.ResourceRef, obj client.Object) addonsv1.ResourceBinding {
		return addonsv1.ResourceBinding{ResourceRef: ref, Hash: hashOf(obj), LastAppliedTime: now, Applied: ptr.To(true)}
	}
	want := &addonsv1.ClusterResourceSetBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "c",
			OwnerReferences: []metav1.OwnerReference{ownership.Reference(cni, setKind(), false), ownership.Reference(more, setKind(), false)},
		},
		Spec: addonsv1.ClusterResourceSetBindingSpec{ClusterName: "c", Bindings: []addonsv1.ResourceSetBinding{
			{ClusterResourceSetName: "cni", Resources: []addonsv1.ResourceBinding{record(inConfigMap("a"), a), record(inSecret("b"), b)}},
			{ClusterResourceSetName: "more", Resources: []addonsv1.ResourceBinding{record(inConfigMap("a"), a)}},
		}},
	}
	ignored := cmpopts.IgnoreFields(metav1.ObjectMeta{}, "UID", "ResourceVersion")
	if diff := cmp.Diff(want, w.binding("c"), ignored, cmpopts.IgnoreFields(addonsv1.ClusterResourceSetBinding{}, "TypeMeta")); diff != "" {
		t.Errorf("binding, -want +got:\n%s", diff)
	}
	requests := []string{
		"create ClusterResourceSetBinding c",
		"create ConfigMap one", "create ConfigMap two", "create ConfigMap three", "apply ConfigMap one", "apply ConfigMap two",
		"patch ClusterResourceSetBinding c",
	}
	if diff := cmp.Diff(requests, w.Writes); diff != "" {
		t.Errorf("writes, -want +got:\n%s", diff)
	}
	w.quiet()
	w.run("c")
	if len(w.Writes)+len(w.LiveReads)+len(w.workloads["c"].Requests) > 0 {
		t.Errorf("a steady state costs %v, %v, %v", w.Writes, w.LiveReads, w.workloads["c"].Requests)
	}
	w.restart()
	w.run("c")
	if diff := cmp.Diff([]string{"get ConfigMap a"}, w.LiveReads); diff != "" || len(w.Writes)+len(w.workloads["c"].Requests) > 0 {
		t.Errorf("a restart costs %v, %v; reads, to compare the hash for Reconcile, -want +got:\n%s", w.Writes, w.workloads["c"].Requests, diff)
	}
}

// TestStrategies changes manifests, and objects in the workload cluster.
func TestStrategies(t *testing.T) {
	for _, tc := range []struct {
		strategy string
		want     map[string]string
		again    bool
	}{
		{strategy: once, want: map[string]string{"a": "user"}},
		{strategy: "", want: map[string]string{"a": "user"}},
		{strategy: always, want: map[string]string{"a": "new"}, again: true},
	} {
		t.Run(tc.strategy, func(t *testing.T) {
			w := newWorld(t, set("s", tc.strategy, inConfigMap("m")), configMap("m", yaml("x", "a: old")))
			w.run("c")
			before := w.binding("c").Spec.Bindings[0].Resources[0]
			current := &corev1.ConfigMap{}
			testenv.Must(t, w.workloads["c"].Client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "x"}, current))
			current.Data = map[string]string{"a": "user"}
			testenv.Must(t, w.workloads["c"].Client.Update(t.Context(), current))
			w.Clock.Step(time.Hour)
			w.run("c")
			if got := w.data("c", "x"); got["a"] != "user" {
				t.Errorf("without a change of the manifest, the user's change is reverted: %v", got)
			}
			w.change("m", yaml("x", "a: new"))
			w.run("c")
			if diff := cmp.Diff(tc.want, w.data("c", "x")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			after := w.binding("c").Spec.Bindings[0].Resources[0]
			if changed := !before.LastAppliedTime.Equal(&after.LastAppliedTime) && before.Hash != after.Hash; changed != tc.again {
				t.Errorf("applied again = %t, want %t: %+v, %+v", changed, tc.again, before, after)
			}
		})
	}
}

// TestExistingObjects: with ApplyOnce, an object that exists counts as applied, and stays as it is.
func TestExistingObjects(t *testing.T) {
	w := newWorld(t, set("s", once, inConfigMap("m")), configMap("m", yaml("x", "a: new")))
	testenv.Must(t, w.workloads["c"].Client.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}, Data: map[string]string{"a": "old"},
	}))
	w.run("c")
	if got := w.data("c", "x"); got["a"] != "old" {
		t.Errorf("data = %v", got)
	}
	if diff := cmp.Diff([]string{"s ConfigMap/m=true"}, w.state("c")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestFailures: a broken document, and one that the API server rejects, do not affect others, and are tried again with backoff.
func TestFailures(t *testing.T) {
	w := newWorld(t, set("s", once, inConfigMap("bad"), inConfigMap("good")), configMap("bad", yaml("x")+"---\n- broken\n---\n"+yaml("rejected")+"---\n"+yaml("y")), configMap("good", yaml("z")))
	rejects := true
	w.workloads["c"].Before = func(r fakeapi.Request) error {
		if r.Name == "rejected" && rejects {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, r.Name, errors.New("hunter2"))
		}
		return nil
	}
	result := w.run("c")
	for _, name := range []string{"x", "y", "z"} {
		if w.data("c", name) == nil && w.workloads["c"].Client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &corev1.ConfigMap{}) != nil {
			t.Errorf("%s is not applied", name)
		}
	}
	if diff := cmp.Diff([]string{"s ConfigMap/bad=false", "s ConfigMap/good=true"}, w.state("c")); diff != "" || result.RequeueAfter != firstRetry {
		t.Errorf("again after %s, -want +got:\n%s", result.RequeueAfter, diff)
	}
	last, _ := w.ledger.Of(client.ObjectKey{Namespace: "default", Name: "c"}, "s")
	problems := []string{
		"key 0.yaml, document 2: must be an object with apiVersion and kind",
		"key 0.yaml, document 3 (ConfigMap rejected): the API server answered 403 Forbidden",
	}
	if diff := cmp.Diff(problems, last.Failures[inConfigMap("bad")].Problems); diff != "" {
		t.Errorf("problems, -want +got:\n%s", diff)
	}
	w.quiet()
	if result = w.run("c"); result.RequeueAfter != firstRetry || len(w.Writes) > 0 {
		t.Errorf("too early: again after %s, writes %v", result.RequeueAfter, w.Writes)
	}
	for _, delay := range []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second} {
		w.Clock.Step(result.RequeueAfter)
		w.quiet()
		if result = w.run("c"); result.RequeueAfter != delay {
			t.Errorf("again after %s, want %s", result.RequeueAfter, delay)
		}
		if diff := cmp.Diff([]string{"create ConfigMap x", "create ConfigMap y"}, w.Writes); diff != "" {
			t.Errorf("a failure that is recorded is not recorded again, -want +got:\n%s", diff)
		}
	}
	rejects = false
	w.Clock.Step(result.RequeueAfter)
	w.quiet()
	if result = w.run("c"); result.RequeueAfter != 0 || strings.Join(w.state("c"), " ") != "s ConfigMap/bad=false s ConfigMap/good=true" {
		t.Errorf("a broken document is only tried again when it changes: after %s, %v", result.RequeueAfter, w.state("c"))
	}
	w.Clock.Step(24 * time.Hour)
	w.quiet()
	w.run("c")
	if len(w.Writes)+len(w.workloads["c"].Requests) > 0 {
		t.Errorf("writes %v", w.Writes)
	}
	w.change("bad", yaml("x")+"---\n"+yaml("rejected"))
	w.run("c")
	if diff := cmp.Diff([]string{"s ConfigMap/bad=true", "s ConfigMap/good=true"}, w.state("c")); diff != "" {
		t.Errorf("fixed, -want +got:\n%s", diff)
	}
}

// TestEventsOfFailures: there is one event for each failure that differs from the previous one, without the messages of API servers,
// and none after a restart for what the binding records.
func TestEventsOfFailures(t *testing.T) {
	w := newWorld(t, set("s", once, inConfigMap("m")), configMap("m", yaml("x")))
	code := http.StatusForbidden
	w.workloads["c"].Before = func(r fakeapi.Request) error {
		if r.Name != "x" || code == http.StatusOK {
			return nil
		}
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: int32(code), Message: "hunter2"}}
	}
	rejected := func(status string) []string {
		return []string{"Warning ApplyFailed Cannot apply ConfigMap m of ClusterResourceSet s: key 0.yaml, document 1 (ConfigMap x): the API server answered " + status}
	}
	for _, tc := range []struct {
		reason string
		before func()
		want   []string
	}{
		{reason: "the first failure", want: rejected("403 Forbidden")},
		{reason: "the same again"},
		{reason: "another one", before: func() { code = http.StatusConflict }, want: rejected("409 Conflict")},
		{reason: "after a restart", before: func() { w.restart() }},
		{reason: "another one after a restart", before: func() { code = http.StatusForbidden }, want: rejected("403 Forbidden")},
		{reason: "success", before: func() { code = http.StatusOK }},
	} {
		if tc.before != nil {
			tc.before()
		}
		w.Clock.Step(lastRetry)
		_, _ = w.reconcile("c") // The condition reports failures.
		if diff := cmp.Diff(tc.want, w.Events()); diff != "" {
			t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
		}
	}
}

// TestWrongSecretType: the content of other Secrets never leaves the management cluster.
func TestWrongSecretType(t *testing.T) {
	w := newWorld(t, set("s", once, inSecret("other"), inConfigMap("m")), secret("other", corev1.SecretTypeOpaque, yaml("stolen")), configMap("m", yaml("x")))
	w.run("c")
	if w.data("c", "stolen") != nil || !strings.Contains(strings.Join(w.state("c"), " "), "s ConfigMap/m=true") {
		t.Errorf("state = %v", w.state("c"))
	}
	if strings.Contains(strings.Join(w.Writes, " "), "stolen") {
		t.Errorf("writes = %v", w.Writes)
	}
}

// TestSilentCluster: a cluster that stops responding ends the attempt. What was applied before is recorded.
func TestSilentCluster(t *testing.T) {
	w := newWorld(t, set("s", once, inConfigMap("a"), inConfigMap("b"), inConfigMap("d")), configMap("a", yaml("a")), configMap("b", yaml("b"), yaml("b2"), yaml("b3")), configMap("d", yaml("d")))
	hangs := true
	w.workloads["c"].Before = func(r fakeapi.Request) error {
		if hangs && strings.HasPrefix(r.Name, "b") {
			return context.DeadlineExceeded
		}
		return nil
	}
	result := w.run("c")
	if diff := cmp.Diff([]string{"s ConfigMap/a=true"}, w.state("c")); diff != "" || result.RequeueAfter != silentRetry {
		t.Errorf("again after %s, -want +got:\n%s", result.RequeueAfter, diff)
	}
	last, _ := w.ledger.Of(client.ObjectKey{Namespace: "default", Name: "c"}, "s")
	if last.Unreachable == "" || len(last.Failures) > 0 {
		t.Errorf("outcome = %+v", last)
	}
	hangs = false
	w.run("c")
	if diff := cmp.Diff([]string{"s ConfigMap/a=true", "s ConfigMap/b=true", "s ConfigMap/d=true"}, w.state("c")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if last, _ = w.ledger.Of(client.ObjectKey{Namespace: "default", Name: "c"}, "s"); last.Unreachable != "" {
		t.Errorf("outcome = %+v", last)
	}
}

// TestAppliedAgain: deleting the binding applies everything again, also what failed permanently.
func TestAppliedAgain(t *testing.T) {
	w := newWorld(t, set("s", once, inConfigMap("bad"), inConfigMap("m")), configMap("bad", "- broken"), configMap("m", yaml("x")))
	w.run("c")
	want := []string{"s ConfigMap/bad=false", "s ConfigMap/m=true"}
	testenv.Must(t, w.Server.Delete(t.Context(), w.binding("c")), w.workloads["c"].Client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}}))
	w.run("c")
	if diff := cmp.Diff(want, w.state("c")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	testenv.Must(t, w.workloads["c"].Client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "x"}, &corev1.ConfigMap{}))
}

// TestSlowCache: a reconcile that follows at once, with a cache that gets the results a little later, applies nothing again.
func TestSlowCache(t *testing.T) {
	w := newWorld(t, set("s", always, inConfigMap("m")), configMap("m", yaml("x")))
	w.VisibleWait = time.Minute
	reads := 0
	w.Before = func(r fakeapi.Request) error {
		switch {
		case r.Kind != "ClusterResourceSetBinding":
		case r.Verb == "patch":
			w.Cache.FreezeObjects(w.binding("c"))
			reads = 0
		case r.Cached:
			if reads++; reads == 3 {
				w.Cache.Thaw()
			}
		}
		return nil
	}
	w.run("c")
	w.quiet()
	w.run("c")
	if len(w.Writes)+len(w.workloads["c"].Requests) > 0 {
		t.Errorf("writes %v, requests to the workload cluster %v", w.Writes, w.workloads["c"].Requests)
	}
}
