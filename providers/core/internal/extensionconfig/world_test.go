package extensionconfig

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/extension/wire"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
	"sigs.k8s.io/cluster-api/test/extensiontest"
)

// world is a fake management cluster.
type world struct {
	*fakeapi.Server
	t         *testing.T
	reconcile func() error
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{t: t, Server: fakeapi.New(t, fakeapi.Options{
		Kinds: []func(*runtime.Scheme) error{runtimev1.AddToScheme}, Objects: objects,
		Indexes: []step.Index{{Object: &runtimev1.ExtensionConfig{}, Field: bySecret, Values: secretKeys}},
	})}
	hooks, err := allHooks()
	testenv.Must(t, err)
	c := &Controller{
		Clients: w.ForController(), hooks: hooks,
		caller: wire.NewCaller(wire.Options{UserAgent: "test", Metrics: prometheus.NewRegistry(), Clock: clock.RealClock{}}),
	}
	runner := c.declared().Runner(c.Clients)
	w.reconcile = func() error {
		_, err := runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "e"}})
		return err
	}
	return w
}

// config returns ExtensionConfig e as it is in the API server.
func (w *world) config() *runtimev1.ExtensionConfig {
	w.t.Helper()
	c := &runtimev1.ExtensionConfig{}
	testenv.Must(w.t, w.Get(w.t.Context(), client.ObjectKey{Name: "e"}, c))
	return c
}

// state returns the condition in short.
func (w *world) state() string {
	w.t.Helper()
	return object.State(w.config(), runtimev1.RuntimeExtensionDiscoveredV1Beta1Condition)
}

// config returns ExtensionConfig e for a server.
func config(server *extensiontest.Server, change ...func(*runtimev1.ExtensionConfig)) *runtimev1.ExtensionConfig {
	c := &runtimev1.ExtensionConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "e", UID: "e", Generation: 1},
		Spec:       runtimev1.ExtensionConfigSpec{ClientConfig: server.Config()},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

// injected makes the CA come from a Secret.
func injected(ref string) func(*runtimev1.ExtensionConfig) {
	return func(c *runtimev1.ExtensionConfig) {
		c.Spec.ClientConfig.CABundle = nil
		c.Annotations = map[string]string{runtimev1.InjectCAFromSecretAnnotation: ref}
	}
}

func secret(data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Data: data}
}

// discovery returns a response with handlers.
func discovery(handlers ...map[string]any) map[string]any {
	return map[string]any{"status": "Success", "message": "", "handlers": handlers}
}

// found returns a handler of a response.
func found(name, hook string) map[string]any {
	return map[string]any{"name": name, "requestHook": map[string]any{"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "hook": hook}}
}

func serving(t *testing.T, response map[string]any) *extensiontest.Server {
	t.Helper()
	return extensiontest.Serve(t, extensiontest.Options{}, extensiontest.Answers(map[string]any{"discovery": response}))
}

func TestStepsAreDocumented(t *testing.T) {
	testenv.StepsDocumented(t, (&Controller{}).declared().Names())
}
