package extension_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/extension"
	"sigs.k8s.io/cluster-api/providers/internal/extension/flowcontrol"
	"sigs.k8s.io/cluster-api/providers/internal/extension/wire"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/test/extensiontest"
)

// newClient returns a Client of a management cluster with ExtensionConfigs, and namespace "default" with the label tier: one.
func newClient(t *testing.T, configs ...*runtimev1.ExtensionConfig) *extension.Client {
	t.Helper()
	return newClientWith(t, flowcontrol.New(1, clock.RealClock{}), configs...)
}

func newClientWith(t *testing.T, limiter *flowcontrol.Limiter, configs ...*runtimev1.ExtensionConfig) *extension.Client {
	t.Helper()
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{"tier": "one"}}}}
	for _, c := range configs {
		objects = append(objects, c)
	}
	s := fakeapi.New(t, fakeapi.Options{Kinds: []func(*runtime.Scheme) error{runtimev1.AddToScheme}, Objects: objects})
	catalog := runtimecatalog.New()
	testenv.Must(t, runtimehooksv1.AddToCatalog(catalog))
	c, err := extension.New(extension.Options{
		Reader: s.ForController().Client, Catalog: catalog, Filter: "mine", Limiter: limiter,
		Caller: wire.NewCaller(wire.Options{UserAgent: "test", Metrics: prometheus.NewRegistry(), Clock: clock.RealClock{}}),
	})
	testenv.Must(t, err)
	return c
}

// call finds a handler, and calls it.
func call(t *testing.T, c *extension.Client, hook runtimecatalog.Hook, forObject client.Object, name string, settings map[string]string, request runtimehooksv1.RequestObject, response runtimehooksv1.ResponseObject) error {
	t.Helper()
	target, err := c.Find(t.Context(), hook, forObject, name)
	if err != nil {
		return err
	}
	_, err = target.Call(t.Context(), settings, request, response, nil)
	return err
}

// config returns a discovered ExtensionConfig with handlers, "<hook>/<name>", on a server.
func config(name string, server *extensiontest.Server, handlers ...string) *runtimev1.ExtensionConfig {
	c := &runtimev1.ExtensionConfig{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{clusterv1.WatchLabel: "mine"}},
		Spec:       runtimev1.ExtensionConfigSpec{ClientConfig: server.Config(), Settings: map[string]string{"of": name}},
	}
	for _, h := range handlers {
		hook, bare, _ := strings.Cut(h, "/")
		c.Status.Handlers = append(c.Status.Handlers, runtimev1.ExtensionHandler{
			Name: bare + "." + name, RequestHook: runtimev1.GroupVersionHook{APIVersion: runtimehooksv1.GroupVersion.String(), Hook: hook},
		})
	}
	condition.Set(c, condition.True(runtimev1.RuntimeExtensionDiscoveredV1Beta1Condition))
	return c
}

func with(c *runtimev1.ExtensionConfig, change ...func(*runtimev1.ExtensionConfig)) *runtimev1.ExtensionConfig {
	for _, f := range change {
		f(c)
	}
	return c
}

func ignoring(c *runtimev1.ExtensionConfig) {
	for i := range c.Status.Handlers {
		c.Status.Handlers[i].FailurePolicy = runtimev1.FailurePolicyIgnore
	}
}

func undiscovered(c *runtimev1.ExtensionConfig) {
	c.Status = runtimev1.ExtensionConfigStatus{}
}

func paused(c *runtimev1.ExtensionConfig) {
	c.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
}

func failedDiscovery(c *runtimev1.ExtensionConfig) {
	condition.Set(c, condition.False(runtimev1.RuntimeExtensionDiscoveredV1Beta1Condition, "Error", "DiscoveryFailed", "error in discovery"))
}

func others(c *runtimev1.ExtensionConfig) { c.Labels = nil }

func selecting(tier string) func(*runtimev1.ExtensionConfig) {
	return func(c *runtimev1.ExtensionConfig) {
		c.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": tier}}
	}
}

// retry returns a response of BeforeClusterCreate.
func retry(status, message string, after int) map[string]any {
	return map[string]any{"status": status, "message": message, "retryAfterSeconds": after}
}

// answering returns a server with a response for each handler of BeforeClusterCreate.
func answering(t *testing.T, responses map[string]any) *extensiontest.Server {
	t.Helper()
	all := map[string]any{}
	for name, response := range responses {
		all["beforeclustercreate/"+name] = response
	}
	return extensiontest.Serve(t, extensiontest.Options{}, extensiontest.Answers(all))
}

func TestCallAll(t *testing.T) {
	one := answering(t, map[string]any{
		"a": retry("Success", "first", 30), "b": retry("Success", "", 0), "c": retry("Success", "third", 10),
		"fails": retry("Failure", "cannot install\x1b[2J\nCNI:\té \u202e", 0), "mute": retry("Failure", "\n", 0), "long": retry("Success", strings.Repeat("x", 2000), 0),
	})
	two := answering(t, map[string]any{"a": retry("Success", "second", 20)})
	const create = "BeforeClusterCreate/"
	for _, tc := range []struct {
		reason  string
		configs []*runtimev1.ExtensionConfig
		want    *runtimehooksv1.CommonRetryResponse
		answers []extension.Answer
		err     string
	}{
		{reason: "no extension", want: response("", 0)},
		{reason: "in the order of the full names, with the lowest retry", configs: []*runtimev1.ExtensionConfig{config("two", two, create+"a"), config("one", one, create+"c", create+"b", create+"a")},
			want: response("first, second, third", 10),
			answers: []extension.Answer{
				{Handler: "a.one", RetryAfter: 30 * time.Second, Message: "first"}, {Handler: "a.two", RetryAfter: 20 * time.Second, Message: "second"},
				{Handler: "b.one"}, {Handler: "c.one", RetryAfter: 10 * time.Second, Message: "third"},
			}},
		{reason: "other hooks", configs: []*runtimev1.ExtensionConfig{config("one", one, "BeforeClusterDelete/a")}, want: response("", 0)},
		{reason: "selected by the label of the namespace", configs: []*runtimev1.ExtensionConfig{with(config("two", two, create+"a"), selecting("one")), with(config("one", one, create+"a"), selecting("two"))},
			want: response("second", 20), answers: []extension.Answer{{Handler: "a.two", RetryAfter: 20 * time.Second, Message: "second"}}},
		{reason: "an empty selector selects all", configs: []*runtimev1.ExtensionConfig{with(config("two", two, create+"a"), func(c *runtimev1.ExtensionConfig) { c.Spec.NamespaceSelector = &metav1.LabelSelector{} })},
			want: response("second", 20), answers: []extension.Answer{{Handler: "a.two", RetryAfter: 20 * time.Second, Message: "second"}}},
		{reason: "of another manager", configs: []*runtimev1.ExtensionConfig{with(config("two", two, create+"a"), others)}, want: response("", 0)},
		{reason: "not discovered yet", configs: []*runtimev1.ExtensionConfig{config("one", one, create+"a"), with(config("two", two), undiscovered)},
			err: "cannot call hook BeforeClusterCreate: ExtensionConfig two has not been discovered yet"},
		{reason: "not discovered yet, for other namespaces", configs: []*runtimev1.ExtensionConfig{with(config("two", two), undiscovered, selecting("two"))}, want: response("", 0)},
		{reason: "never discovered, because it is paused", configs: []*runtimev1.ExtensionConfig{with(config("two", two), undiscovered, paused)}, want: response("", 0)},
		{reason: "never discovered, because it fails", configs: []*runtimev1.ExtensionConfig{with(config("two", two), undiscovered, failedDiscovery)}, want: response("", 0)},
		{reason: "handlers stay after a failed discovery", configs: []*runtimev1.ExtensionConfig{with(config("two", two, create+"a"), failedDiscovery)},
			want: response("second", 20), answers: []extension.Answer{{Handler: "a.two", RetryAfter: 20 * time.Second, Message: "second"}}},
		{reason: "a Failure: its message, without what terminals interpret", configs: []*runtimev1.ExtensionConfig{config("one", one, create+"fails")},
			err: `extension fails.one of hook BeforeClusterCreate reported a failure: cannot install\u001b[2J CNI: é \u202e`},
		{reason: "a Failure without a message", configs: []*runtimev1.ExtensionConfig{config("one", one, create+"mute")},
			err: "extension mute.one of hook BeforeClusterCreate reported a failure: without a message"},
		{reason: "a Failure that is ignored", configs: []*runtimev1.ExtensionConfig{with(config("one", one, create+"fails"), ignoring), config("two", two, create+"a")},
			want: response("second", 20), answers: []extension.Answer{{Handler: "a.two", RetryAfter: 20 * time.Second, Message: "second"}, {Handler: "fails.one"}}},
		{reason: "a failed call", configs: []*runtimev1.ExtensionConfig{config("one", one, create+"missing")},
			err: "calling extension missing.one of hook BeforeClusterCreate: the server answered 404 Not Found"},
		{reason: "a failed call that is ignored", configs: []*runtimev1.ExtensionConfig{with(config("one", one, create+"missing"), ignoring), config("two", two, create+"a")},
			want: response("second", 20), answers: []extension.Answer{{Handler: "a.two", RetryAfter: 20 * time.Second, Message: "second"}, {Handler: "missing.one"}}},
		{reason: "long messages are truncated", configs: []*runtimev1.ExtensionConfig{config("one", one, create+"long")},
			want: response(strings.Repeat("x", 997)+"...", 0), answers: []extension.Answer{{Handler: "long.one", Message: strings.Repeat("x", 997) + "..."}}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			request, got := &runtimehooksv1.BeforeClusterCreateRequest{}, &runtimehooksv1.BeforeClusterCreateResponse{}
			answers, err := newClient(t, tc.configs...).CallAll(t.Context(), runtimehooksv1.BeforeClusterCreate, cluster(), request, got)
			if err != nil || tc.err != "" {
				if err == nil || err.Error() != tc.err {
					t.Errorf("got %v, want %s", err, tc.err)
				}
				return
			}
			if len(answers) == 0 {
				answers = nil
			}
			if diff := cmp.Diff(tc.answers, answers); diff != "" {
				t.Errorf("answers: -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(*tc.want, got.CommonRetryResponse); diff != "" {
				t.Errorf("response: -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(&runtimehooksv1.BeforeClusterCreateRequest{}, request); diff != "" {
				t.Errorf("the request was changed: -want +got:\n%s", diff)
			}
		})
	}
}

// TestAResponseIsProcessedWithinItsTurn has a server whose responses take long to process, and one call at the same time.
func TestAResponseIsProcessedWithinItsTurn(t *testing.T) {
	server := answering(t, map[string]any{"a": retry("Success", "", 0), "fails": retry("Failure", "no", 0)})
	now := clocktesting.NewFakeClock(time.Now())
	c := newClientWith(t, flowcontrol.New(1, now), config("one", server, "BeforeClusterCreate/a", "BeforeClusterCreate/fails"))
	ask := func(name string, process func() error) error {
		target, err := c.Find(t.Context(), runtimehooksv1.BeforeClusterCreate, cluster(), name)
		if err != nil {
			return err
		}
		_, err = target.Call(t.Context(), nil, &runtimehooksv1.BeforeClusterCreateRequest{}, &runtimehooksv1.BeforeClusterCreateResponse{}, process)
		return err
	}
	unusable := errors.New("unusable")
	err := ask("a.one", func() error {
		now.Step(2 * time.Second)
		if _, busy := errors.AsType[*extension.BusyError](ask("a.one", nil)); !busy {
			t.Error("another call is sent while the response is processed")
		}
		return unusable
	})
	if !errors.Is(err, unusable) {
		t.Errorf("the error of processing is %v", err)
	}
	if err := ask("a.one", nil); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if err := ask("fails.one", func() error { t.Error("a failure is processed"); return nil }); err == nil {
		t.Error("no failure")
	}
}

func response(message string, retryAfter int32) *runtimehooksv1.CommonRetryResponse {
	r := &runtimehooksv1.CommonRetryResponse{RetryAfterSeconds: retryAfter}
	r.Status, r.Message = runtimehooksv1.ResponseStatusSuccess, message
	return r
}

func cluster() *clusterv1.Cluster {
	return &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"}}
}

func TestAnUnreadyExtensionStopsBeforeTheFirstCall(t *testing.T) {
	s := answering(t, map[string]any{"a": retry("Success", "", 0)})
	c := newClient(t, config("one", s, "BeforeClusterCreate/a"), with(config("two", s), undiscovered))
	_, err := c.CallAll(t.Context(), runtimehooksv1.BeforeClusterCreate, cluster(), &runtimehooksv1.BeforeClusterCreateRequest{}, &runtimehooksv1.BeforeClusterCreateResponse{})
	var unready *extension.NotReadyError
	if !errors.As(err, &unready) || unready.Config != "two" {
		t.Errorf("got %v", err)
	}
	if calls := s.Calls(); len(calls) > 0 {
		t.Errorf("%d calls", len(calls))
	}
}

func TestCall(t *testing.T) {
	s := extensiontest.Serve(t, extensiontest.Options{}, extensiontest.Answers(map[string]any{
		"generatepatches/p": map[string]any{"status": "Success", "items": []any{map[string]any{"uid": "u", "patchType": "JSONPatch", "patch": "W10="}}},
	}))
	const patches = "GeneratePatches/p"
	for _, tc := range []struct {
		reason, name string
		config       *runtimev1.ExtensionConfig
		want         string
	}{
		{reason: "a call", name: "p.e", config: config("e", s, patches)},
		{reason: "no ExtensionConfig in the name", name: "p", config: config("e", s, patches), want: `invalid name "p" of an extension: it must be <handler>.<ExtensionConfig>`},
		{reason: "no ExtensionConfig", name: "p.f", config: config("e", s, patches), want: `reading ExtensionConfig f of extension p.f: extensionconfigs.runtime.cluster.x-k8s.io "f" not found`},
		{reason: "no handler", name: "q.e", config: config("e", s, patches), want: `ExtensionConfig e has no handler q.e: see its status`},
		{reason: "not discovered", name: "p.e", config: with(config("e", s), undiscovered), want: `ExtensionConfig e has not been discovered yet`},
		{reason: "of another manager", name: "p.e", config: with(config("e", s, patches), others), want: `cannot call extension p.e: ExtensionConfig e is not reconciled by this manager (--watch-filter)`},
		{reason: "another hook", name: "p.e", config: config("e", s, "ValidateTopology/p"),
			want: `extension p.e is for hook ValidateTopology of hooks.runtime.cluster.x-k8s.io/v1alpha1, not for GeneratePatches of hooks.runtime.cluster.x-k8s.io/v1alpha1`},
		{reason: "another namespace", name: "p.e", config: with(config("e", s, patches), selecting("two")),
			want: `extension p.e cannot be called for namespace default: spec.namespaceSelector of ExtensionConfig e does not select it`},
		{reason: "being deleted", name: "p.e", config: with(config("e", s, patches), func(c *runtimev1.ExtensionConfig) {
			c.DeletionTimestamp, c.Finalizers = ptr.To(metav1.Now()), []string{"someone/else"}
		}), want: `cannot call extension p.e: ExtensionConfig e is being deleted`},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			s.Calls()
			request, got := &runtimehooksv1.GeneratePatchesRequest{}, &runtimehooksv1.GeneratePatchesResponse{}
			err := call(t, newClient(t, tc.config), runtimehooksv1.GeneratePatches, cluster(), tc.name, map[string]string{"for": "patch"}, request, got)
			if err != nil || tc.want != "" {
				if err == nil || err.Error() != tc.want {
					t.Errorf("got %v, want %s", err, tc.want)
				}
				return
			}
			if diff := cmp.Diff([]runtimehooksv1.GeneratePatchesResponseItem{{UID: "u", PatchType: "JSONPatch", Patch: []byte("[]")}}, got.Items); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			sent := &runtimehooksv1.GeneratePatchesRequest{}
			testenv.Must(t, json.Unmarshal([]byte(s.Calls()[0].Body), sent))
			if diff := cmp.Diff(map[string]string{"of": "e", "for": "patch"}, sent.Settings); diff != "" {
				t.Errorf("settings: -want +got:\n%s", diff)
			}
			if kind := sent.GroupVersionKind(); kind != runtimehooksv1.GroupVersion.WithKind("GeneratePatchesRequest") {
				t.Errorf("the request is of kind %s", kind)
			}
		})
	}
}

func TestSettingsOfPatchesWin(t *testing.T) {
	s := extensiontest.Serve(t, extensiontest.Options{}, extensiontest.Answer(http.StatusOK, `{"status":"Success"}`))
	c := newClient(t, config("e", s, "ValidateTopology/v"))
	testenv.Must(t, call(t, c, runtimehooksv1.ValidateTopology, cluster(), "v.e", map[string]string{"of": "patch"},
		&runtimehooksv1.ValidateTopologyRequest{}, &runtimehooksv1.ValidateTopologyResponse{}))
	call := s.Calls()[0]
	if !strings.Contains(call.Body, `"settings":{"of":"patch"}`) || call.Query != "timeout=10s" {
		t.Errorf("got %+v", call)
	}
}

// TestLimiter calls servers that are dead, and one that is slow, with the failure policies.
func TestLimiter(t *testing.T) {
	hanging := extensiontest.Serve(t, extensiontest.Options{}, extensiontest.Hang())
	slow := make(chan struct{})
	server := extensiontest.Serve(t, extensiontest.Options{}, func(w http.ResponseWriter, _ *http.Request) {
		<-slow
		extensiontest.Answer(200, `{"status":"Success"}`)(w, nil)
	})
	short := func(c *runtimev1.ExtensionConfig) { c.Status.Handlers[0].TimeoutSeconds = 1 }
	c := newClient(t,
		with(config("dead", hanging, "ValidateTopology/v"), short), with(config("ignored", hanging, "ValidateTopology/v"), short, ignoring),
		with(config("slow", server, "ValidateTopology/v"), ignoring),
	)
	validate := func(name string) error {
		return call(t, c, runtimehooksv1.ValidateTopology, cluster(), name, nil, &runtimehooksv1.ValidateTopologyRequest{}, &runtimehooksv1.ValidateTopologyResponse{})
	}
	for _, calls := range []int{1, 0} {
		for name, want := range map[string]string{
			"v.dead": "calling extension v.dead of hook ValidateTopology: the server did not respond in time", "v.ignored": "",
		} {
			hanging.Calls()
			if err := validate(name); err != nil && err.Error() != want || err == nil && want != "" {
				t.Errorf("extension %s: %v, want %q", name, err, want)
			}
			if got := len(hanging.Calls()); got != calls {
				t.Errorf("extension %s was called %d times, want %d: after the first timeout, none waits for the next one", name, got, calls)
			}
		}
	}
	first := make(chan error)
	go func() { first <- validate("v.slow") }()
	testenv.Eventually(t, "the first call is in progress", func() error {
		if len(server.Calls()) == 0 {
			return errors.New("it is not")
		}
		return nil
	})
	busy, ok := errors.AsType[*extension.BusyError](validate("v.slow"))
	if !ok || busy.Handler != "v.slow" || busy.RetryAfter() <= 0 {
		t.Errorf("a further call: %v; want a BusyError, whatever the failure policy is", busy)
	}
	close(slow)
	testenv.Must(t, <-first)
	testenv.Must(t, validate("v.slow"))
}

func TestSent(t *testing.T) {
	c := cluster()
	c.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
	c.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "a": "b"}
	before, got := c.DeepCopy(), extension.Sent(c)
	want := *cluster()
	want.APIVersion, want.Kind, want.Annotations = "cluster.x-k8s.io/v1beta2", "Cluster", map[string]string{"a": "b"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(before, c); diff != "" {
		t.Errorf("the Cluster was changed: -want +got:\n%s", diff)
	}
}

func TestChanges(t *testing.T) {
	s := extensiontest.Serve(t, extensiontest.Options{}, extensiontest.Hang())
	for _, tc := range []struct {
		reason        string
		before, after *runtimev1.ExtensionConfig
		want          bool
	}{
		{"nothing", config("e", s, "Discovery/a"), config("e", s, "Discovery/a"), false},
		{"another message", with(config("e", s), failedDiscovery), with(config("e", s), failedDiscovery, func(c *runtimev1.ExtensionConfig) { c.GetV1Beta1Conditions()[0].Message = "other" }), false},
		{"discovered", with(config("e", s), undiscovered), config("e", s), true},
		{"failed for the first time", with(config("e", s), undiscovered), with(config("e", s), undiscovered, failedDiscovery), true},
		{"another spec", config("e", s), with(config("e", s), func(c *runtimev1.ExtensionConfig) { c.Generation++ }), true},
		{"other handlers", config("e", s, "Discovery/a"), config("e", s, "Discovery/b"), true},
		{"paused before it was discovered", with(config("e", s), undiscovered), with(config("e", s), undiscovered, paused), true},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if got := extension.Changes().Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.want {
				t.Errorf("selected = %t", got)
			}
		})
	}
}
