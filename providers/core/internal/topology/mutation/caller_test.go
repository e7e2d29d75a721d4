package mutation_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/mutation"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/patches"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/variables"
	"sigs.k8s.io/cluster-api/providers/internal/extension"
	"sigs.k8s.io/cluster-api/providers/internal/extension/wire"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/test/extensiontest"
)

// world has an extension, served over TLS, and a Caller with the ExtensionConfig "x" in its cache.
type world struct {
	*mutation.Caller
	t      *testing.T
	api    *fakeapi.Server
	server *extensiontest.Server
	clock  *clocktesting.FakePassiveClock

	mu sync.Mutex
	// patches returns the n-th response to GeneratePatches, as type and patch per template.
	patches func(n int) [][2]string
	asked   int
	// status and variables are those of responses.
	status    string
	variables []any
	// upgrades are the versions of responses to GenerateUpgradePlan.
	upgrades []any
}

func newWorld(t *testing.T, annotations map[string]string) *world {
	t.Helper()
	w := &world{t: t, clock: clocktesting.NewFakePassiveClock(time.Now()), status: "Success"}
	w.server = extensiontest.Serve(t, extensiontest.Options{}, w.serve)
	config := &runtimev1.ExtensionConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "x", Annotations: annotations, UID: "u", Generation: 1},
		Spec:       runtimev1.ExtensionConfigSpec{ClientConfig: w.server.Config(), Settings: map[string]string{"of": "config", "both": "config"}},
	}
	for _, hook := range []string{"GeneratePatches", "ValidateTopology", "DiscoverVariables", "GenerateUpgradePlan"} {
		config.Status.Handlers = append(config.Status.Handlers, runtimev1.ExtensionHandler{
			Name: strings.ToLower(hook) + ".x", RequestHook: runtimev1.GroupVersionHook{APIVersion: runtimehooksv1.GroupVersion.String(), Hook: hook},
		})
	}
	condition.Set(config, condition.True(runtimev1.RuntimeExtensionDiscoveredV1Beta1Condition))
	w.api = fakeapi.New(t, fakeapi.Options{Kinds: []func(*runtime.Scheme) error{runtimev1.AddToScheme, clusterv1.AddToScheme}, Objects: []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, config,
	}})
	catalog := runtimecatalog.New()
	testenv.Must(t, runtimehooksv1.AddToCatalog(catalog))
	extensions, err := extension.New(extension.Options{
		Reader: w.api.ForController().Client, Catalog: catalog,
		Caller: wire.NewCaller(wire.Options{UserAgent: "test", Metrics: prometheus.NewRegistry(), Clock: w.clock}),
	})
	testenv.Must(t, err)
	w.Caller = mutation.New(extensions, w.clock)
	return w
}

func (w *world) serve(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	response := map[string]any{"status": w.status, "message": "a message", "variables": w.variables, "controlPlaneUpgrades": w.upgrades}
	if strings.Contains(r.URL.Path, "/generatepatches/") {
		w.asked++
		var request runtimehooksv1.GeneratePatchesRequest
		calls := w.server.Calls()
		if err := json.Unmarshal([]byte(calls[len(calls)-1].Body), &request); err != nil {
			panic(err)
		}
		items := []any{}
		for n, patch := range w.patches(w.asked) {
			uid := "unknown"
			if n < len(request.Items) {
				uid = string(request.Items[n].UID)
			}
			items = append(items, map[string]any{"uid": uid, "patchType": patch[0], "patch": []byte(patch[1])})
		}
		response["items"] = items
	}
	if err := json.NewEncoder(out).Encode(response); err != nil {
		panic(err)
	}
}

// calls returns the number of calls since the last time.
func (w *world) calls() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.asked
	w.asked = 0
	return n
}

// call returns a call for a Cluster that has objects.
func call(change ...func(*patches.Call)) patches.Call {
	out := patches.Call{
		Handler: "generatepatches.x", Settings: map[string]string{"both": "patch"},
		Cluster:   &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c", UID: "1"}, Spec: clusterv1.ClusterSpec{ControlPlaneRef: clusterv1.ContractVersionedObjectReference{Kind: "K", Name: "n"}}},
		Variables: []patches.Variable{{Name: "a", Value: apiextensionsv1.JSON{Raw: []byte(`1`)}}},
		Items:     []patches.Item{{Holder: patches.Holder{Kind: "Cluster", Name: "c", FieldPath: "spec.infrastructureRef"}, Object: []byte(`{"kind":"T","spec":{"a":1}}`)}},
	}
	for _, f := range change {
		f(&out)
	}
	return out
}

func always(kind, patch string) func(int) [][2]string {
	return func(int) [][2]string { return [][2]string{{kind, patch}} }
}

func TestPatches(t *testing.T) {
	w := newWorld(t, nil)
	for reason, test := range map[string]struct {
		patches func(int) [][2]string
		status  string
		call    patches.Call
		want    []patches.Patch
		err     string
		calls   int
	}{
		"a patch is asked for twice before it is believed": {
			patches: always("JSONPatch", `[]`), call: call(), calls: 2, want: []patches.Patch{{Type: patches.JSONPatch, Patch: []byte(`[]`)}},
		},
		"but not while the Cluster is being created": {
			patches: always("JSONMergePatch", `{"spec":{"b":1}}`), call: call(func(c *patches.Call) {
				c.Cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{}
				c.Handler = "generatepatches.x"
				c.Settings = nil
			}),
			calls: 1, want: []patches.Patch{{Type: patches.JSONMergePatch, Patch: []byte(`{"spec":{"b":1}}`)}},
		},
		"no patches are confirmed, too": {patches: func(int) [][2]string { return nil }, call: call(func(c *patches.Call) { c.Settings = map[string]string{"no": "patches"} }), calls: 2},
		"sometimes no patches are other templates": {
			patches: func(n int) [][2]string {
				if n == 1 {
					return nil
				}
				return [][2]string{{"JSONMergePatch", `{"spec":{"b":1}}`}}
			},
			call: call(func(c *patches.Call) { c.Settings = map[string]string{"sometimes": "x"} }), calls: 2, err: "is not deterministic",
		},
		"another order of operations is no difference": {
			patches: func(n int) [][2]string {
				if n%2 == 0 {
					return [][2]string{{"JSONMergePatch", `{"spec":{"b":1,"c":2}}`}}
				}
				return [][2]string{{"JSONPatch", `[{"op":"add","path":"/spec/c","value":2},{"op":"add","path":"/spec/b","value":1}]`}}
			},
			call: call(func(c *patches.Call) { c.Settings = map[string]string{"order": "x"} }), calls: 2,
			want: []patches.Patch{{Type: patches.JSONPatch, Patch: []byte(`[{"op":"add","path":"/spec/c","value":2},{"op":"add","path":"/spec/b","value":1}]`)}},
		},
		"other templates are": {
			patches: func(n int) [][2]string { return [][2]string{{"JSONMergePatch", fmt.Sprintf(`{"spec":{"b":%d}}`, n)}} },
			call:    call(func(c *patches.Call) { c.Settings = map[string]string{"random": "x"} }), calls: 2,
			err: "extension generatepatches.x is not deterministic: it answered the same request with different patches",
		},
		"a patch for a template that is not in the request": {
			patches: func(int) [][2]string { return [][2]string{{"JSONPatch", `[]`}, {"JSONPatch", `[]`}} },
			call:    call(func(c *patches.Call) { c.Settings = map[string]string{"uid": "x"} }), calls: 1,
			err: "extension generatepatches.x returned a patch with a uid that is not in the request",
		},
		"a patch that does not apply": {
			patches: always("JSONPatch", `[{"op":"remove","path":"/spec/missing"}]`), call: call(func(c *patches.Call) { c.Settings = map[string]string{"apply": "x"} }), calls: 1,
			err: "extension generatepatches.x returned an invalid patch for spec.infrastructureRef of Cluster c",
		},
		"a failure": {status: "Failure", patches: func(int) [][2]string { return nil }, call: call(func(c *patches.Call) { c.Settings = map[string]string{"fails": "x"} }), calls: 1, err: "reported a failure: a message"},
		"a bomb": {patches: always("JSONPatch", `[{"op":"add","path":"/spec/x","value":["`+strings.Repeat("x", 1000)+`"]}`+strings.Repeat(`,{"op":"copy","from":"/spec/x","path":"/spec/x/-"}`, 60)+`]`),
			call: call(func(c *patches.Call) { c.Settings = map[string]string{"bomb": "x"} }), calls: 1, err: "invalid patch for spec.infrastructureRef of Cluster c: patch 0: the patches exceed the limit"},
		"an unknown handler":      {call: call(func(c *patches.Call) { c.Handler = "other.x" }), err: "ExtensionConfig x has no handler other.x"},
		"a handler of other hook": {call: call(func(c *patches.Call) { c.Handler = "validatetopology.x" }), err: "is for hook ValidateTopology"},
	} {
		w.calls()
		w.patches, w.status = test.patches, "Success"
		if test.status != "" {
			w.status = test.status
		}
		got, err := w.GeneratePatches(t.Context(), test.call)
		if !matches(err, test.err) {
			t.Errorf("%s: %v, want an error with %q", reason, err, test.err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s:\n%s", reason, diff)
		}
		if n := w.calls(); n != test.calls {
			t.Errorf("%s: %d calls, want %d", reason, n, test.calls)
		}
	}
}

// TestAnswersAreUsedAgain counts calls: a steady topology makes no call.
func TestAnswersAreUsedAgain(t *testing.T) {
	for reason, test := range map[string]struct {
		annotations map[string]string
		// expired is the number of calls after a while: one, as the answer is the same as before.
		expired int
	}{
		"by default, for some minutes":                       {nil, 1},
		"until something changes, if the extension promises": {map[string]string{runtimev1.CacheableAnnotation: ""}, 0},
	} {
		w := newWorld(t, test.annotations)
		w.patches = always("JSONMergePatch", `{"spec":{"b":1}}`)
		expect := func(what string, want int, c patches.Call) {
			t.Helper()
			for range 1000 {
				if got, err := w.GeneratePatches(t.Context(), c); err != nil || len(got) != 1 {
					t.Fatalf("%s: %s: %v, %v", reason, what, got, err)
				}
			}
			if n := w.calls(); n != want {
				t.Errorf("%s: %s: %d calls for 1000 reconciles, want %d", reason, what, n, want)
			}
		}
		expect("the first answer is confirmed", 2, call())
		expect("nothing changed", 0, call())
		expect("another variable", 2, call(func(c *patches.Call) { c.Variables[0].Value.Raw = []byte(`2`) }))
		expect("another template", 2, call(func(c *patches.Call) { c.Items[0].Object = []byte(`{"kind":"T","spec":{"a":2}}`) }))
		expect("another setting", 2, call(func(c *patches.Call) { c.Settings = map[string]string{"both": "other"} }))
		expect("another Cluster", 2, call(func(c *patches.Call) { c.Cluster.UID = "2" }))
		expect("as before", 0, call())
		w.clock.SetTime(w.clock.Now().Add(5 * time.Minute))
		expect("later", test.expired, call())
		config := &runtimev1.ExtensionConfig{}
		testenv.Must(t, w.api.Client.Get(t.Context(), client.ObjectKey{Name: "x"}, config))
		config.Spec.Settings["version"] = "2"
		config.Generation++
		testenv.Must(t, w.api.Client.Update(t.Context(), config))
		w.patches = always("JSONMergePatch", `{"spec":{"b":2}}`)
		expect("the ExtensionConfig changed", 2, call())
	}
}

// TestUpgradedExtension is about an extension that answers differently since it was replaced: the change is confirmed, and taken.
func TestUpgradedExtension(t *testing.T) {
	w := newWorld(t, nil)
	for n, want := range []string{`{"spec":{"b":1}}`, `{"spec":{"b":2}}`} {
		w.patches = always("JSONMergePatch", want)
		got, err := w.GeneratePatches(t.Context(), call())
		if calls := w.calls(); err != nil || string(got[0].Patch) != want || calls != 2 {
			t.Errorf("version %d: %v, %v, %d calls", n, got, err, calls)
		}
		w.clock.SetTime(w.clock.Now().Add(5 * time.Minute))
	}
}

// TestIgnoredFailures is about an extension whose failures are ignored: they are no answers.
func TestIgnoredFailures(t *testing.T) {
	w := newWorld(t, map[string]string{runtimev1.CacheableAnnotation: ""})
	config := &runtimev1.ExtensionConfig{}
	testenv.Must(t, w.api.Client.Get(t.Context(), client.ObjectKey{Name: "x"}, config))
	for i := range config.Status.Handlers {
		config.Status.Handlers[i].FailurePolicy = runtimev1.FailurePolicyIgnore
	}
	testenv.Must(t, w.api.Client.Status().Update(t.Context(), config))
	w.patches = always("JSONMergePatch", `{"spec":{"b":1}}`)
	generate := func(want, calls int, c patches.Call) {
		t.Helper()
		if got, err := w.GeneratePatches(t.Context(), c); err != nil || len(got) != want || w.calls() != calls {
			t.Errorf("%v, %v: want %d patches, %d calls", got, err, want, calls)
		}
	}
	validation := call(func(c *patches.Call) { c.Handler = "validatetopology.x" })
	w.status = "nonsense" // An invalid response is a failed call.
	generate(0, 1, call())
	testenv.Must(t, w.ValidateTopology(t.Context(), validation))
	w.status = "Success"
	generate(1, 2, call())
	w.status = "Failure"
	for range 2 {
		w.server.Calls()
		testenv.Must(t, w.ValidateTopology(t.Context(), validation))
		if got := len(w.server.Calls()); got != 1 {
			t.Errorf("%d calls, want 1: a failure that was ignored is not cached as agreement", got)
		}
	}
	config.Annotations = nil
	testenv.Must(t, w.api.Client.Update(t.Context(), config))
	w.status = "Success"
	generate(1, 0, call())
	other := call(func(c *patches.Call) { c.Cluster.UID = "2" })
	generate(1, 2, other)
	w.clock.SetTime(w.clock.Now().Add(5 * time.Minute))
	w.status = "nonsense"
	generate(1, 1, other)
}

// TestLargePatchesAreNotKept is about memory: they are asked for each time, and compared.
func TestLargePatchesAreNotKept(t *testing.T) {
	w := newWorld(t, nil)
	w.patches = always("JSONMergePatch", `{"spec":{"b":"`+strings.Repeat("x", 64<<10)+`"}}`)
	for _, want := range []int{2, 1, 1} {
		if _, err := w.GeneratePatches(t.Context(), call()); err != nil || w.calls() != want {
			t.Errorf("%v; want %d calls", err, want)
		}
	}
}

func TestValidation(t *testing.T) {
	w := newWorld(t, nil)
	validate := func() error {
		return w.ValidateTopology(context.Background(), call(func(c *patches.Call) { c.Handler = "validatetopology.x" }))
	}
	w.status = "Failure"
	for range 2 {
		if err := validate(); !matches(err, "reported a failure: a message") {
			t.Errorf("%v", err)
		}
	}
	w.status = "Success"
	for range 3 {
		testenv.Must(t, validate())
	}
	calls := w.server.Calls()
	if len(calls) != 3 {
		t.Fatalf("%d calls, want 3: two that were rejected, and one", len(calls))
	}
	var request map[string]any
	testenv.Must(t, json.Unmarshal([]byte(calls[2].Body), &request))
	want := map[string]any{
		"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "kind": "ValidateTopologyRequest",
		"settings":  map[string]any{"of": "config", "both": "patch"},
		"variables": []any{map[string]any{"name": "a", "value": 1.0}},
		"items": []any{map[string]any{
			"holderReference": map[string]any{"apiVersion": "", "kind": "Cluster", "namespace": "", "name": "c", "fieldPath": "spec.infrastructureRef"},
			"object":          map[string]any{"kind": "T", "spec": map[string]any{"a": 1.0}}, "variables": []any{},
		}},
	}
	if diff := cmp.Diff(want, request); diff != "" {
		t.Error(diff)
	}
}

func TestDiscoverVariables(t *testing.T) {
	w := newWorld(t, nil)
	class := &clusterv1.ClusterClass{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "k"}, Spec: clusterv1.ClusterClassSpec{Patches: []clusterv1.ClusterClassPatch{
		{Name: "inline"},
		{Name: "only patches", External: &clusterv1.ExternalPatchDefinition{GeneratePatchesExtension: "generatepatches.x"}},
		{Name: "ext", External: &clusterv1.ExternalPatchDefinition{DiscoverVariablesExtension: "discovervariables.x"}},
	}}}
	variable := func(name, kind string) map[string]any {
		return map[string]any{"name": name, "required": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": kind}}}
	}
	many := func(n int, kind string) (all []any) {
		for i := range n {
			all = append(all, variable(fmt.Sprint("v", i), kind))
		}
		return all
	}
	for reason, test := range map[string]struct {
		variables []any
		want      []string
		err       string
	}{
		"two variables":     {[]any{variable("a", "string"), variable("b", "integer")}, []string{"ext: a, b"}, ""},
		"none":              {nil, []string{"ext: "}, ""},
		"the same twice":    {[]any{variable("a", "string"), variable("a", "string")}, nil, `patch "ext": extension discovervariables.x returned invalid variables: variables[1].name: Duplicate value`},
		"an invalid schema": {[]any{variable("a", "nonsense")}, nil, "extension discovervariables.x returned invalid variables: variables[0].schema.openAPIV3Schema"},
		"a reserved name":   {[]any{variable("builtin", "string")}, nil, "reserved"},
		"too many":          {many(10_001, "string"), nil, "variables: Too many: 10001: must have at most 10000 items"},
		"too large":         {many(1, strings.Repeat("x", 2<<20)), nil, "returned variables of 2097"},
		"many invalid ones": {many(9_000, "nonsense"), nil, `returned invalid variables: [variables[0]`},
	} {
		w.variables = test.variables
		class.Generation++
		found, err := w.DiscoverVariables(t.Context(), class)
		if !matches(err, test.err) {
			t.Errorf("%s: %v, want an error with %q", reason, err, test.err)
		}
		if err != nil && len(err.Error()) > 10_000 {
			t.Errorf("%s: an error of %d bytes", reason, len(err.Error()))
		}
		var got []string
		for _, source := range found {
			got = append(got, source.From+": "+names(source))
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s:\n%s", reason, diff)
		}
	}
}

// TestDiscoveredVariablesAreUsedAgain reconciles a class that does not change.
func TestDiscoveredVariablesAreUsedAgain(t *testing.T) {
	w := newWorld(t, nil)
	config := &runtimev1.ExtensionConfig{}
	testenv.Must(t, w.api.Client.Get(t.Context(), client.ObjectKey{Name: "x"}, config))
	for i := range config.Status.Handlers {
		config.Status.Handlers[i].FailurePolicy = runtimev1.FailurePolicyIgnore
	}
	testenv.Must(t, w.api.Client.Status().Update(t.Context(), config))
	w.variables = []any{map[string]any{"name": "a", "required": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "string"}}}}
	class := &clusterv1.ClusterClass{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "k"}, Spec: clusterv1.ClusterClassSpec{Patches: []clusterv1.ClusterClassPatch{
		{Name: "ext", External: &clusterv1.ExternalPatchDefinition{DiscoverVariablesExtension: "discovervariables.x"}},
	}}}
	for _, test := range []struct {
		reason string
		change func()
		calls  int
		want   string
	}{
		{reason: "the first time", change: func() {}, calls: 1, want: "a"},
		{reason: "nothing has changed", change: func() {}, calls: 0, want: "a"},
		{reason: "the class has changed", change: func() { class.Generation++ }, calls: 1, want: "a"},
		{reason: "the answer is old", change: func() { w.clock.SetTime(w.clock.Now().Add(5 * time.Minute)) }, calls: 1, want: "a"},
		{reason: "the answer is old, and a failure is ignored", calls: 1, want: "a", change: func() {
			w.clock.SetTime(w.clock.Now().Add(5 * time.Minute))
			w.status = "nonsense"
		}},
		{reason: "a failure is ignored, and there is no answer", change: func() { class.Generation++ }, calls: 1},
	} {
		test.change()
		w.server.Calls()
		found, err := w.DiscoverVariables(t.Context(), class)
		if calls := len(w.server.Calls()); err != nil || calls != test.calls || names(found[0]) != test.want {
			t.Errorf("%s: %d calls, %v, %v; want %d calls, variables %q", test.reason, calls, found, err, test.calls, test.want)
		}
	}
}

func TestClasses(t *testing.T) {
	w := newWorld(t, nil)
	for name, handler := range map[string]string{"of": "generatepatches.x", "other": "generatepatches.xx"} {
		testenv.Must(t, w.api.Client.Create(t.Context(), &clusterv1.ClusterClass{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec: clusterv1.ClusterClassSpec{Patches: []clusterv1.ClusterClassPatch{
				{Name: "inline"}, {Name: "p", External: &clusterv1.ExternalPatchDefinition{ValidateTopologyExtension: handler}},
			}},
		}))
	}
	upgrades := &clusterv1.ClusterClass{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "upgrades"}}
	upgrades.Spec.Upgrade.External.GenerateUpgradePlanExtension = "plan.x"
	testenv.Must(t, w.api.Client.Create(t.Context(), upgrades))
	got, err := mutation.Classes(t.Context(), w.api.Client, "x")
	if diff := cmp.Diff([]client.ObjectKey{{Namespace: "default", Name: "of"}, {Namespace: "default", Name: "upgrades"}}, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func names(source variables.Source) string {
	var out []string
	for i := range source.Variables {
		out = append(out, source.Variables[i].Name)
	}
	return strings.Join(out, ", ")
}

// matches reports whether an error contains a text, or, for an empty text, there is none.
func matches(err error, text string) bool {
	if err == nil || text == "" {
		return err == nil && text == ""
	}
	return strings.Contains(err.Error(), text)
}
