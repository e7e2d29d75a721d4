package extensionconfig

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/test/extensiontest"
)

// inStatus returns a handler of the status, with defaults.
func inStatus(name, hook string) runtimev1.ExtensionHandler {
	return runtimev1.ExtensionHandler{
		Name: name, RequestHook: runtimev1.GroupVersionHook{APIVersion: "hooks.runtime.cluster.x-k8s.io/v1alpha1", Hook: hook},
		TimeoutSeconds: 10, FailurePolicy: runtimev1.FailurePolicyFail,
	}
}

func TestDiscover(t *testing.T) {
	server := serving(t, discovery(found("b", "GeneratePatches"), found("a", "BeforeClusterCreate")))
	w := newWorld(t, config(server))
	testenv.Must(t, w.reconcile())
	want := []runtimev1.ExtensionHandler{inStatus("a.e", "BeforeClusterCreate"), inStatus("b.e", "GeneratePatches")}
	if diff := cmp.Diff(want, w.config().Status.Handlers); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := w.state(); got != "True" {
		t.Errorf("the condition is %s", got)
	}
	if diff := cmp.Diff([]string{"patch ExtensionConfig/status e"}, w.Writes); diff != "" {
		t.Errorf("writes: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Normal Discovered Discovered a.e, b.e"}, w.Events()); diff != "" {
		t.Errorf("events: -want +got:\n%s", diff)
	}
	calls := server.Calls()
	if len(calls) != 1 || calls[0].Path != "/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery" || calls[0].Query != "timeout=10s" ||
		calls[0].Body != `{"kind":"DiscoveryRequest","apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1"}` {
		t.Errorf("calls: %+v", calls)
	}
	testenv.Must(t, w.reconcile())
	if len(w.Writes) != 1 || len(w.Events()) > 0 {
		t.Errorf("the second discovery wrote %v", w.Writes[1:])
	}
}

func TestFailures(t *testing.T) {
	const prefix = "False Error DiscoveryFailed error in discovery: "
	for _, tc := range []struct {
		reason string
		server func(w http.ResponseWriter, r *http.Request)
		change func(*runtimev1.ExtensionConfig)
		want   string
	}{
		{reason: "a Failure with a message", server: extensiontest.Answer(200, `{"status":"Failure","message":"no license"}`),
			want: prefix + "the server reported a failure: no license"},
		{reason: "rubbish", server: extensiontest.Answer(200, "secret"), want: prefix + "the response is not a DiscoveryResponse in JSON"},
		{reason: "an error", server: extensiontest.Answer(503, "secret"), want: prefix + "the server answered 503 Service Unavailable"},
		{reason: "an invalid handler", server: extensiontest.Answers(map[string]any{"discovery": discovery(found("a", "BeforeClusterCreate"), found("b.c", "Dinner"))}),
			want: prefix + `the response of the server is invalid: handlers[1] "b.c": name must be a DNS label, such as wait-for-backup, requestHook "Dinner" of ` +
				`"hooks.runtime.cluster.x-k8s.io/v1alpha1" is unknown to this version of Cluster API`},
		{reason: "no server", server: extensiontest.Hang(), change: func(c *runtimev1.ExtensionConfig) { c.Spec.ClientConfig = runtimev1.ClientConfig{} },
			want: prefix + "spec.clientConfig must have a url or a service"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			known := []runtimev1.ExtensionHandler{inStatus("old.e", "BeforeClusterCreate")}
			e := config(extensiontest.Serve(t, extensiontest.Options{}, tc.server))
			e.Status.Handlers = known
			condition.Set(e, condition.True(runtimev1.RuntimeExtensionDiscoveredV1Beta1Condition))
			if tc.change != nil {
				tc.change(e)
			}
			w := newWorld(t, e)
			for range 2 {
				err := w.reconcile()
				if err == nil || strings.Contains(err.Error(), "secret") {
					t.Errorf("got %v", err)
				}
			}
			if got := w.state(); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if diff := cmp.Diff(known, w.config().Status.Handlers); diff != "" {
				t.Errorf("handlers must stay: -want +got:\n%s", diff)
			}
			if diff := cmp.Diff([]string{"patch ExtensionConfig/status e"}, w.Writes); diff != "" {
				t.Errorf("writes: -want +got:\n%s", diff)
			}
			if diff := cmp.Diff([]string{"Warning " + strings.TrimPrefix(tc.want, "False Error ")}, w.Events()); diff != "" {
				t.Errorf("events: -want +got:\n%s", diff)
			}
		})
	}
}

func TestPausedAndDeleted(t *testing.T) {
	for _, tc := range []struct {
		reason string
		change func(*runtimev1.ExtensionConfig)
		writes []string
	}{
		{"paused, which is reported",
			func(c *runtimev1.ExtensionConfig) { c.Annotations = map[string]string{clusterv1.PausedAnnotation: ""} },
			[]string{"patch ExtensionConfig/status e"}},
		{"being deleted", func(c *runtimev1.ExtensionConfig) {
			c.DeletionTimestamp, c.Finalizers = ptr.To(metav1.Now()), []string{"someone/else"}
		}, nil},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			server := serving(t, discovery())
			w := newWorld(t, config(server, tc.change))
			testenv.Must(t, w.reconcile())
			if diff := cmp.Diff(tc.writes, w.Writes); len(server.Calls()) > 0 || diff != "" {
				t.Errorf("%d calls, writes: -want +got:\n%s", len(server.Calls()), diff)
			}
		})
	}
}

func TestEvents(t *testing.T) {
	s := serving(t, discovery())
	for _, tc := range []struct {
		reason        string
		before, after *runtimev1.ExtensionConfig
		want          bool
	}{
		{"our own status write", config(s), config(s, func(c *runtimev1.ExtensionConfig) {
			c.ResourceVersion, c.Status.Handlers = "2", []runtimev1.ExtensionHandler{{Name: "a.e"}}
		}), false},
		{"a resync", config(s), config(s), true},
		{"the spec", config(s), config(s, func(c *runtimev1.ExtensionConfig) { c.ResourceVersion, c.Generation = "2", 2 }), true},
		{"unpaused, or another Secret", config(s, injected("a/b")), config(s, injected("a/c"), func(c *runtimev1.ExtensionConfig) { c.ResourceVersion = "2" }), true},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if got := changes().Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.want {
				t.Errorf("selected = %t", got)
			}
		})
	}
}
