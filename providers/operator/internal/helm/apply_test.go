package helm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// world is an API server with one provider object, and a ConfigMap that declares it.
type world struct {
	*fakeapi.Server
	t *testing.T
	m *corev1.ConfigMap
	// filter is --watch-filter.
	filter watch.Filter
}

func newWorld(t *testing.T, live, before string) *world {
	t.Helper()
	p := &operatorv1.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}}
	testenv.Must(t, yaml.UnmarshalStrict([]byte(live), &p.Spec))
	if before != "" {
		p.Annotations = map[string]string{operatorv1.DeclaredSpecAnnotation: before}
	}
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "o", Name: "m"}}
	s := fakeapi.New(t, fakeapi.Options{Kinds: []func(*runtime.Scheme) error{operatorv1.AddToScheme}, Objects: []client.Object{p, m}})
	return &world{Server: s, t: t, m: m}
}

// declare declares objects, and reconciles.
func (w *world) declare(data map[string]string) error {
	w.t.Helper()
	testenv.Must(w.t, w.Get(w.t.Context(), client.ObjectKeyFromObject(w.m), w.m))
	w.m.Data = data
	testenv.Must(w.t, w.Update(w.t.Context(), w.m))
	c := &Controller{w.ForController()}
	c.Filter = w.filter
	_, err := c.declared().Runner(c.Clients).Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.m)})
	return err
}

func (w *world) provider() *operatorv1.InfrastructureProvider {
	w.t.Helper()
	p := &operatorv1.InfrastructureProvider{}
	testenv.Must(w.t, w.Get(w.t.Context(), client.ObjectKey{Namespace: "n", Name: "p"}, p))
	return p
}

// declaring declares the provider p with a spec.
func declaring(spec string) map[string]string {
	return map[string]string{"p": "apiVersion: operator.cluster.x-k8s.io/v1alpha2\nkind: InfrastructureProvider\n" +
		"metadata: {name: p, namespace: \"n\"}\nspec: " + spec}
}

func TestChanges(t *testing.T) {
	for _, tc := range []struct {
		reason, live, before, after, want string
	}{
		{"a field is added", `{version: v1.0.0}`, `{"version":"v1.0.0"}`, `{version: v1.0.0, paused: true}`, `{version: v1.0.0, paused: true}`},
		{"a field is changed", `{manager: {verbosity: 1}}`, `{"manager":{"verbosity":1}}`, `{manager: {verbosity: 2}}`, `{manager: {verbosity: 2}}`},
		{"a field is no longer declared", `{manager: {verbosity: 1, featureGates: {A: true}}}`, `{"manager":{"verbosity":1,"featureGates":{"A":true}}}`,
			`{manager: {verbosity: 1}}`, `{manager: {verbosity: 1}}`},
		{"a field that was not declared stays", `{version: v1.0.0, paused: true}`, `{}`, `{manager: {verbosity: 2}}`,
			`{version: v1.0.0, paused: true, manager: {verbosity: 2}}`},
		{"the declaration is the last one: what users changed stays", `{version: v1.1.0}`, `{"version":"v1.0.0"}`, `{version: v1.0.0}`, `{version: v1.1.0}`},
		{"another declaration: declared fields are restored", `{version: v1.1.0}`, `{"version":"v1.0.0"}`, `{version: v1.0.0, paused: true}`,
			`{version: v1.0.0, paused: true}`},
		{"an object that others created", `{version: v1.0.0, paused: true}`, ``, `{version: v1.1.0}`, `{version: v1.1.0, paused: true}`},
		{"a spec that is no longer declared", `{version: v1.0.0}`, `{"version":"v1.0.0"}`, ``, `{}`},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, tc.live, tc.before)
			testenv.Must(t, w.declare(declaring(tc.after)))
			p, want := w.provider(), operatorv1.ProviderSpec{}
			testenv.Must(t, yaml.UnmarshalStrict([]byte(tc.want), &want))
			if diff := cmp.Diff(want, p.Spec); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			w.Writes = nil
			testenv.Must(t, w.declare(declaring(tc.after)))
			if len(w.Writes) > 0 {
				t.Errorf("nothing must be written for the same declaration, got %v", w.Writes)
			}
		})
	}
}

func TestObjectsThatDoNotExist(t *testing.T) {
	w := newWorld(t, `{}`, "")
	text := strings.ReplaceAll(declaring(`{}`)["p"], "name: p", "name: other")
	testenv.Must(t, w.declare(map[string]string{"other": text}))
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "other"}, &operatorv1.InfrastructureProvider{}); !apierrors.IsNotFound(err) {
		t.Errorf("it must not be created: %v", err)
	}
}

func TestInvalidDeclarations(t *testing.T) {
	for _, tc := range []struct{ reason, text, want string }{
		{"no YAML", "{", "key bad of ConfigMap o/m: not YAML"},
		{"another kind", "apiVersion: v1\nkind: Secret\nmetadata: {name: p, namespace: \"n\"}", "key bad of ConfigMap o/m: Secret of v1 is not a kind of provider objects"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, `{}`, "")
			data := declaring(`{paused: true}`)
			data["bad"] = tc.text
			if err := w.declare(data); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("want an error with %s, got %v", tc.want, err)
			}
			if !w.provider().Spec.Paused {
				t.Error("the others must be changed")
			}
			if events := strings.Join(w.Events(), "\n"); !strings.Contains(events, "NotDeclared") || !strings.Contains(events, tc.want) {
				t.Errorf("events: %s", events)
			}
		})
	}
}

func TestStepsDocumented(t *testing.T) {
	testenv.StepsDocumented(t, (&Controller{}).declared().Names())
}

// TestFilter: with --watch-filter, only ConfigMaps with its label count.
func TestFilter(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		filter  watch.Filter
		label   string
		changes bool
	}{
		{"no filter", "", "", true},
		{"no filter, and a label", "", "a", true},
		{"the label of the filter", "a", "a", true},
		{"another label", "a", "b", false},
		{"no label", "a", "", false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, "version: v1.0.0", "")
			w.filter = tc.filter
			if tc.label != "" {
				w.m.Labels = map[string]string{clusterv1.WatchLabel: tc.label}
				testenv.Must(t, w.Update(t.Context(), w.m))
			}
			testenv.Must(t, w.declare(declaring("{version: v1.0.1}")))
			if changed := w.provider().Spec.Version == "v1.0.1"; changed != tc.changes {
				t.Errorf("the object is changed: %t, want %t", changed, tc.changes)
			}
		})
	}
}
