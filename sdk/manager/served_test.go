package manager

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
)

// lateMapper knows kinds from the second time that it is asked.
type lateMapper struct {
	meta.RESTMapper
	asked map[schema.GroupKind]int
}

func (m *lateMapper) RESTMapping(kind schema.GroupKind, _ ...string) (*meta.RESTMapping, error) {
	m.asked[kind]++
	if m.asked[kind] < 2 {
		return nil, &meta.NoKindMatchError{GroupKind: kind}
	}
	return &meta.RESTMapping{}, nil
}

func TestAwaitServed(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, ipamv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	mapper := &lateMapper{asked: map[schema.GroupKind]int{}}
	start := time.Now()
	awaitServed(t.Context(), logr.Discard(), scheme, mapper)
	if took := time.Since(start); took > servedWait/2 {
		t.Errorf("waited %s for kinds that were served at the second look", took)
	}
	want := map[schema.GroupKind]int{
		ipamv1.GroupVersion.WithKind("IPAddress").GroupKind():      2,
		ipamv1.GroupVersion.WithKind("IPAddressClaim").GroupKind(): 2,
	}
	if diff := cmp.Diff(want, mapper.asked); diff != "" {
		t.Errorf("only our kinds are requested until they are served, -want +got:\n%s", diff)
	}
}
