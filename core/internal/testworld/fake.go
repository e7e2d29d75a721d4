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

// Now is what clocks say.
func Now() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// Fake is a fake API server.
type Fake struct {
	client.Client
	// Writes are all writes, such as "patch status m-1".
	Writes   []string
	Recorder *record.FakeRecorder
	Clock    *testclock.FakePassiveClock
}

// NewFake is a fake API server whose Client with adds to.
func NewFake(t *testing.T, with func(*fake.ClientBuilder)) *Fake {
	t.Helper()
	f := &Fake{Recorder: record.NewFakeRecorder(20), Clock: testclock.NewFakePassiveClock(Now())}
	f.Client = f.Another(t, with)
	return f
}

// Another is a client of one more API server, whose writes are noted with those of the first.
func (f *Fake) Another(t *testing.T, with func(*fake.ClientBuilder)) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	b := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(f.noting())
	with(b)
	return b.Build()
}

func (f *Fake) noting() interceptor.Funcs {
	note := func(what string, obj client.Object) { f.Writes = append(f.Writes, what+" "+obj.GetName()) }
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.CreateOption) error {
			note("create", obj)
			return c.Create(ctx, obj, o...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.DeleteOption) error {
			note("delete", obj)
			return c.Delete(ctx, obj, o...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, o ...client.PatchOption) error {
			note("patch", obj)
			return c.Patch(ctx, obj, p, o...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, o ...client.SubResourcePatchOption) error {
			note("patch "+sub, obj)
			return c.SubResource(sub).Patch(ctx, obj, p, o...)
		},
	}
}

// API is the API server as a controller has it.
func (f *Fake) API() step.Outside {
	return step.Outside{Client: f.Client, Live: f.Client, Recorder: f.Recorder, Clock: f.Clock}
}

// Follower follows the references of a kind of this group, of which referrers is an empty list.
func (f *Fake) Follower(kind string, referrers client.ObjectList) *reference.Follower {
	return &reference.Follower{
		Client:    f.Client,
		Reader:    external.Reader{Client: f.Client, Versions: contract.APIVersions{Reader: f.Client}},
		Watcher:   external.NewWatcher(watches{}, &informertest.FakeInformers{}),
		Kind:      clusterv1.GroupVersion.WithKind(kind),
		Referrers: referrers,
	}
}

// watches is a controller that never hears of anything.
type watches struct{}

// Watch implements external.Controller.
func (watches) Watch(source.Source) error { return nil }

// Definition is the CustomResourceDefinition of a provider's kind, with the label of the contract.
func Definition(kind schema.GroupVersionKind) *apiextensionsv1.CustomResourceDefinition {
	out := &apiextensionsv1.CustomResourceDefinition{}
	out.Name = contract.CRDName(kind.GroupKind())
	out.Labels = map[string]string{contract.Label(): kind.Version}
	return out
}
