package testworld

import (
	"context"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/contract"
	"sigs.k8s.io/cluster-api/provider/external"
	"sigs.k8s.io/cluster-api/provider/reference"
	"sigs.k8s.io/cluster-api/provider/step"
)

// Now returns the time of all fake clocks.
func Now() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// Fake is a fake API server.
type Fake struct {
	client.Client
	// Writes records all writes, such as "patch status m-1".
	Writes   []string
	Recorder *record.FakeRecorder
	Clock    *testclock.FakePassiveClock
}

// NewFake returns a fake API server; with customizes its client.
func NewFake(t *testing.T, with func(*fake.ClientBuilder)) *Fake {
	t.Helper()
	f := &Fake{Recorder: record.NewFakeRecorder(20), Clock: testclock.NewFakePassiveClock(Now())}
	f.Client = f.NewClient(t, with)
	return f
}

// NewClient returns a client of another fake API server, whose writes are recorded together with those of the first.
func (f *Fake) NewClient(t *testing.T, with func(*fake.ClientBuilder)) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	b := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(f.recording())
	with(b)
	return b.Build()
}

func (f *Fake) recording() interceptor.Funcs {
	record := func(what string, obj client.Object) { f.Writes = append(f.Writes, what+" "+obj.GetName()) }
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.CreateOption) error {
			record("create", obj)
			return c.Create(ctx, obj, o...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.DeleteOption) error {
			record("delete", obj)
			return c.Delete(ctx, obj, o...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, o ...client.PatchOption) error {
			record("patch", obj)
			return c.Patch(ctx, obj, p, o...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, o ...client.SubResourcePatchOption) error {
			record("patch "+sub, obj)
			return c.SubResource(sub).Patch(ctx, obj, p, o...)
		},
	}
}

// API returns the fake API server as the step.Outside of a controller.
func (f *Fake) API() step.Outside {
	return step.Outside{Client: f.Client, Live: f.Client, Recorder: f.Recorder, Clock: f.Clock}
}

// Follower returns a follower of the references of a kind of this group; referrers is an empty list of that kind.
func (f *Fake) Follower(kind string, referrers client.ObjectList) *reference.Follower {
	return &reference.Follower{
		Client:    f.Client,
		Reader:    external.Reader{Client: f.Client, Versions: contract.APIVersions{Reader: f.Client}},
		Watcher:   external.NewWatcher(watches{}, &informertest.FakeInformers{}),
		Kind:      clusterv1.GroupVersion.WithKind(kind),
		Referrers: referrers,
	}
}

// watches is a controller whose watches never return events.
type watches struct{}

// Watch implements external.Controller.
func (watches) Watch(source.Source) error { return nil }

// CRD returns the CustomResourceDefinition of a provider's kind, with the contract label.
func CRD(kind schema.GroupVersionKind) *apiextensionsv1.CustomResourceDefinition {
	out := &apiextensionsv1.CustomResourceDefinition{}
	out.Name = contract.CRDName(kind.GroupKind())
	out.Labels = map[string]string{contract.Label(): kind.Version}
	return out
}
