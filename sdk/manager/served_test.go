package manager

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// lateMapper knows a kind from when it is asked for the nth time; 0: never.
type lateMapper struct {
	meta.RESTMapper
	from  map[string]int
	asked map[string]int
}

func (m *lateMapper) RESTMapping(kind schema.GroupKind, _ ...string) (*meta.RESTMapping, error) {
	m.asked[kind.Kind]++
	if from := m.from[kind.Kind]; from == 0 || m.asked[kind.Kind] < from {
		return nil, &meta.NoKindMatchError{GroupKind: kind}
	}
	return &meta.RESTMapping{}, nil
}

func TestAwaitServed(t *testing.T) {
	for name, tc := range map[string]struct {
		from map[string]int
		want time.Duration
	}{
		"kinds that are being installed":          {from: map[string]int{"IPAddress": 2, "IPAddressClaim": 3}, want: 2 * servedPoll},
		"no kinds":                                {want: servedWait},
		"definitions of a release without a kind": {from: map[string]int{"IPAddress": 3}, want: 2*servedPoll + restWait},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			testenv.Must(t, clientgoscheme.AddToScheme(scheme), ipamv1.AddToScheme(scheme))
			synctest.Test(t, func(t *testing.T) {
				mapper := &lateMapper{from: tc.from, asked: map[string]int{}}
				start := time.Now()
				awaitServed(t.Context(), logr.Discard(), scheme, mapper)
				if took := time.Since(start); took != tc.want {
					t.Errorf("waited %s, want %s", took, tc.want)
				}
				if kinds := slices.Sorted(maps.Keys(mapper.asked)); !slices.Equal(kinds, []string{"IPAddress", "IPAddressClaim"}) {
					t.Errorf("kinds %v are awaited, want ours only", kinds)
				}
			})
		})
	}
}
