package source

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/providers/operator/internal/providerobject"
)

func TestFailedDownloads(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	provider := func(name string) providerobject.Provider {
		o := &operatorv1.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(name)}}
		return providerobject.Provider{Type: clusterctlv1.InfrastructureProviderType, Object: o}
	}
	p := provider("a")
	var d downloads
	for i, want := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 5 * time.Minute, 5 * time.Minute} {
		if got := d.failed(p, now); got != want || d.left(p, now.Add(time.Second)) != want-time.Second {
			t.Errorf("failure %d: a pause of %s, want %s, and %s are left after a second", i, got, want, d.left(p, now.Add(time.Second)))
		}
	}
	if left := d.left(provider("b"), now); left > 0 {
		t.Errorf("another provider waits for %s", left)
	}
	p.SetGeneration(2)
	if left := d.left(p, now); left > 0 {
		t.Errorf("after a change of the spec, the next attempt waits for %s", left)
	}
	if pause := d.failed(p, now); pause != 10*time.Second {
		t.Errorf("after a change of the spec, the pause is %s", pause)
	}
	d.succeeded(p, &Release{Version: "v1.0.0"})
	if left := d.left(p, now); left > 0 || d.of(p) == nil {
		t.Errorf("after a success, the next attempt waits for %s, and the release is %v", left, d.of(p))
	}
	if pause := d.failed(p, now); pause != 10*time.Second || d.of(p) != nil {
		t.Errorf("a failure after a success: the pause is %s, and the release is %v", pause, d.of(p))
	}
	d.forget(p)
	if left := d.left(p, now); left > 0 {
		t.Errorf("after it is forgotten, the next attempt waits for %s", left)
	}
}
