package outcome

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
)

// TestLedger: only changes that people see reconcile a ClusterResourceSet.
func TestLedger(t *testing.T) {
	c, d := types.NamespacedName{Namespace: "n", Name: "c"}, types.NamespacedName{Namespace: "n", Name: "d"}
	ref := addonsv1.ResourceRef{Kind: "ConfigMap", Name: "m"}
	failing := func(tries int, problems ...string) Outcome {
		return Outcome{Failures: map[addonsv1.ResourceRef]Failure{ref: {Problems: problems, Tries: tries, Next: time.Unix(int64(tries), 0)}}}
	}
	l := NewLedger()
	var notified []string
	l.notify = func(set types.NamespacedName) { notified = append(notified, set.String()) }
	for _, tc := range []struct {
		reason  string
		cluster types.NamespacedName
		outcome Outcome
		want    []string
	}{
		{"the first outcome", c, failing(1, "x"), []string{"n/s"}},
		{"the same problem again", c, failing(2, "x"), nil},
		{"another problem", c, failing(3, "y"), []string{"n/s"}},
		{"another Cluster", d, failing(1, "y"), []string{"n/s"}},
		{"unreachable", c, Outcome{Unreachable: "x"}, []string{"n/s"}},
		{"applied", c, Outcome{}, []string{"n/s"}},
		{"applied again", c, Outcome{Failures: map[addonsv1.ResourceRef]Failure{}}, nil},
	} {
		notified = nil
		l.Record(tc.cluster, "s", tc.outcome)
		if diff := cmp.Diff(tc.want, notified); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
		}
		if got, ok := l.Of(tc.cluster, "s"); !ok || !cmp.Equal(got, tc.outcome) {
			t.Errorf("%s: outcome = %+v, %t", tc.reason, got, ok)
		}
	}
	l.Forget(c)
	_, hasC := l.Of(c, "s")
	_, hasD := l.Of(d, "s")
	if hasC || !hasD {
		t.Errorf("after forgetting c: c %t, d %t", hasC, hasD)
	}
}
