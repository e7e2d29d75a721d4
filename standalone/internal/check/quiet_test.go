package check

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// A controller works while its queue is not empty for a while. One that reconciles many objects again and again is done.
func TestWorking(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	depth := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "workqueue_depth"}, []string{"controller", "priority"})
	registry.MustRegister(depth)
	q, now := &quiet{metrics: registry}, time.Now()
	for _, tc := range []struct {
		reason          string
		after           time.Duration
		first, repeated float64
		want            []string
	}{
		{reason: "at the start", first: 500, repeated: 500},
		{reason: "soon after", after: time.Second, first: 400, repeated: 0},
		{reason: "one has had work for a while", after: time.Second, first: 300, repeated: 3, want: []string{"machine"}},
		{reason: "the other one is done in between", after: time.Second, first: 100, repeated: 0, want: []string{"machine"}},
		{reason: "the last object", after: time.Second, first: 1, repeated: 2, want: []string{"machine"}},
		{reason: "both are done", after: time.Second},
	} {
		now = now.Add(tc.after)
		depth.WithLabelValues("machine", "0").Set(tc.first)
		depth.WithLabelValues("machine", "-100").Set(0)
		depth.WithLabelValues("kubeadmcontrolplane", "0").Set(tc.repeated)
		got, err := q.working(now)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
	}
}
