package apiversion

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

const (
	older = "v1beta1"
	newer = "v1beta2"

	// unconvertible is a label of objects that machines does not convert.
	unconvertible = "test.cluster.x-k8s.io/unconvertible"
)

var server testenv.Server

func TestMain(m *testing.M) { server.Main(m) }

func machineKind() schema.GroupKind { return clusterv1.GroupVersion.WithKind("Machine").GroupKind() }

// machines is the Registry of all kinds, apart from objects that it does not convert.
type machines struct{ *conversion.Registry }

func newMachines() machines { return machines{conversion.New(nil)} }

func (m machines) Convert(ctx context.Context, src, dst runtime.Object) error {
	if _, found := src.(client.Object).GetLabels()[unconvertible]; found {
		return errors.New("it has the label")
	}
	return m.Registry.Convert(ctx, src, dst)
}

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, clusterv1beta1.AddToScheme, clusterv1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// discovered is what discovery returns in tests.
type discovered struct {
	resources map[string][]metav1.APIResource // by version
	requests  int
	err       error
}

func (d *discovered) list(_ context.Context, v schema.GroupVersion) ([]metav1.APIResource, error) {
	d.requests++
	return d.resources[v.Version], d.err
}

// serves returns what discovery returns if versions of Machines are served, and one of them is stored.
func serves(stored string, versions ...string) *discovered {
	d := &discovered{resources: map[string][]metav1.APIResource{}}
	for _, v := range versions {
		d.resources[v] = []metav1.APIResource{
			{Name: "machines/status", Kind: "Machine"},
			{Name: "machines", Kind: "Machine", StorageVersionHash: hash(machineKind().WithVersion(stored))},
		}
	}
	return d
}
