package workload

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
)

const password = "hunter2"

// TestErrorsAreRedacted: whatever an API server, an admission webhook or a connection responds may quote a Secret.
func TestErrorsAreRedacted(t *testing.T) {
	resource := schema.GroupResource{Resource: "secrets"}
	for _, tc := range []struct {
		reason string
		err    error
		want   string
	}{
		{reason: "a webhook quotes the object", err: apierrors.NewForbidden(resource, "s", errors.New("data: "+password)), want: "the API server answered 403 Forbidden"},
		{reason: "validation quotes a value", err: apierrors.NewBadRequest(password), want: "the API server answered 400 Bad Request"},
		{reason: "the API server fails", err: apierrors.NewInternalError(errors.New(password)), want: "the API server answered 500 Internal Server Error"},
		{reason: "discovery fails", err: utilerrors.NewAggregate([]error{&meta.NoKindMatchError{}, apierrors.NewServiceUnavailable(password)}), want: "the API server answered 503 Service Unavailable"},
		{reason: "a request times out", err: fmt.Errorf("Post https://host/%s: %w", password, context.DeadlineExceeded), want: ErrSilent.Error()},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			s := fakeapi.New(t, fakeapi.Options{})
			w := s.NewWorkload(t)
			w.Before = func(fakeapi.Request) error { return tc.err }
			session := NewSession(w.ForController(), nil)
			for name, write := range map[string]func() []string{
				"once": func() []string {
					return outcome(t, session.Once, "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {p: "+password+"}\n")
				},
				"reconcile": func() []string {
					return outcome(t, session.Reconcile, "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {p: "+password+"}\n")
				},
			} {
				if diff := cmp.Diff([]string{"Secret s: " + tc.want}, write()); diff != "" {
					t.Errorf("%s, -want +got:\n%s", name, diff)
				}
			}
		})
	}
}

// TestSilentClusterEndsSession: one request without a response is a slow webhook, two are a cluster that does not respond.
func TestSilentClusterEndsSession(t *testing.T) {
	config := func(name string) string { return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n" }
	s := fakeapi.New(t, fakeapi.Options{})
	w := s.NewWorkload(t)
	w.Before = func(r fakeapi.Request) error {
		if strings.HasPrefix(r.Name, "hangs") {
			return context.DeadlineExceeded
		}
		return nil
	}
	session := NewSession(w.ForController(), nil)
	write := func(names ...string) []string {
		var out []string
		for _, name := range names {
			out = append(out, outcome(t, session.Once, config(name))...)
		}
		return out
	}
	silent := ": " + ErrSilent.Error()
	if diff := cmp.Diff([]string{"ConfigMap hangs-1" + silent}, write("a", "hangs-1", "b")); diff != "" || session.Silent() {
		t.Errorf("one: silent = %t, -want +got:\n%s", session.Silent(), diff)
	}
	if diff := cmp.Diff([]string{"ConfigMap hangs-2" + silent, "ConfigMap c" + silent}, write("hangs-2", "c")); diff != "" || !session.Silent() {
		t.Errorf("two: silent = %t, -want +got:\n%s", session.Silent(), diff)
	}
	if diff := cmp.Diff([]string{"create ConfigMap a", "create ConfigMap b"}, w.Requests); diff != "" {
		t.Errorf("requests, -want +got:\n%s", diff)
	}
}

func TestReady(t *testing.T) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"}}
	for _, tc := range []struct {
		reason  string
		objects []client.Object
		fails   error
		want    bool
		err     string
	}{
		{reason: "the API server is starting"},
		{reason: "the API server has started", objects: []client.Object{service}, want: true},
		{reason: "it does not respond", fails: context.DeadlineExceeded, err: "reading Service kubernetes: " + ErrSilent.Error()},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := fakeapi.New(t, fakeapi.Options{}).NewWorkload(t, tc.objects...)
			w.Before = func(fakeapi.Request) error { return tc.fails }
			got, err := NewSession(w.ForController(), nil).Ready(t.Context())
			if text := fmt.Sprint(err); got != tc.want || err != nil && text != tc.err || err == nil && tc.err != "" {
				t.Errorf("ready = %t, %v; want %t, %s", got, err, tc.want, tc.err)
			}
		})
	}
}

// TestCustomResources: a CustomResourceDefinition and objects of its kind are in one manifest, in any order.
func TestCustomResources(t *testing.T) {
	c, namespace := cluster(t)
	for i, write := range []func(*Session) func(context.Context, string) []string{
		func(s *Session) func(context.Context, string) []string {
			return func(_ context.Context, text string) []string { return outcome(t, s.Once, text) }
		},
		func(s *Session) func(context.Context, string) []string {
			return func(_ context.Context, text string) []string { return outcome(t, s.Reconcile, text) }
		},
	} {
		group := fmt.Sprintf("widgets%d.example.com", i)
		text := strings.NewReplacer("GROUP", group, "NAMESPACE", namespace).Replace(`apiVersion: GROUP/v1
kind: Widget
metadata:
  name: w
  namespace: NAMESPACE
spec:
  size: 3
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.GROUP
spec:
  group: GROUP
  scope: Namespaced
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
`)
		var waited time.Duration
		session := NewSession(c, poll(&waited))
		if problems := write(session)(t.Context(), text); len(problems) > 0 {
			t.Fatalf("after waiting for %s: %v", waited, problems)
		}
		w := &unstructured.Unstructured{}
		w.SetGroupVersionKind(widgets(group))
		testenv.Must(t, c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "w"}, w))
	}
	// Nothing is waited for if no CustomResourceDefinition was applied.
	var waited time.Duration
	got := outcome(t, NewSession(c, poll(&waited)).Once, "apiVersion: missing.example.com/v1\nkind: Widget\nmetadata: {name: w}\n")
	if diff := cmp.Diff([]string{"Widget w: " + errNotServed.Error()}, got); diff != "" || waited > 0 {
		t.Errorf("waited for %s, -want +got:\n%s", waited, diff)
	}
}

// TestNamespaces: objects without a namespace are in default, cluster-scoped ones in none.
func TestNamespaces(t *testing.T) {
	c, namespace := cluster(t)
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: NAME, namespace: ignored}\n"
	for i, strategy := range []string{"once", "reconcile"} {
		session, name := NewSession(c, nil), fmt.Sprintf("%s-%d", namespace, i)
		write := session.Once
		if strategy == "reconcile" {
			write = session.Reconcile
		}
		if problems := outcome(t, write, strings.ReplaceAll(text, "NAME", name)); len(problems) > 0 {
			t.Fatal(strategy, problems)
		}
		role := &unstructured.Unstructured{}
		role.SetGroupVersionKind(schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"})
		testenv.Must(t,
			c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &corev1.ConfigMap{}),
			c.Get(t.Context(), client.ObjectKey{Name: name}, role))
	}
}
