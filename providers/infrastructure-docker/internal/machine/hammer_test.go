package machine

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine/enginetest"
)

// TestNoHammering reconciles often while the clock stands still, as the work queue does when failures alternate with waits: what
// fails in the background is not attempted each time, but at once when the container runtime is back.
func TestNoHammering(t *testing.T) {
	for _, tt := range []struct {
		reason  string
		objects func(*clusterv1.Machine, *dockerv1.DockerMachine, *corev1.Secret)
		absent  string
		start   error
		// attempt begins the call or request of an attempt.
		attempt string
	}{
		{reason: "an image that does not exist", absent: image, attempt: "EnsureImage " + image},
		{
			reason: "an image to load that does not exist", absent: "absent:1", attempt: "EnsureImage absent:1",
			objects: func(_ *clusterv1.Machine, m *dockerv1.DockerMachine, _ *corev1.Secret) {
				m.Spec.PreLoadImages = []string{"absent:1"}
			},
		},
		{reason: "a container that does not start, and whose removal is an event", start: enginetest.Failure(engine.Unknown, "no such program"), attempt: "Create " + container},
		{
			reason: "bootstrap data that cannot be interpreted", attempt: "get Secret",
			objects: func(_ *clusterv1.Machine, _ *dockerv1.DockerMachine, s *corev1.Secret) {
				s.Data["value"] = []byte("nonsense")
			},
		},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			all := objects()
			if tt.objects != nil {
				tt.objects(all[2].(*clusterv1.Machine), all[3].(*dockerv1.DockerMachine), all[1].(*corev1.Secret))
			}
			w := newWorld(t, all...)
			if tt.start != nil {
				w.present(t)
				w.runtime.OnStart = func(engine.Container) error { return tt.start }
			}
			w.runtime.Absent = map[string]bool{tt.absent: true}
			reconcile := func() {
				for range 20 {
					_, _ = w.reconcile(t) // An error or none: the queue retries both.
					w.settle()
				}
			}
			attempts := func() (n int) {
				for _, call := range append(w.runtime.Calls(), w.LiveReads...) {
					if strings.HasPrefix(call, tt.attempt) {
						n++
					}
				}
				return n
			}
			reconcile()
			if got := attempts(); got != 1 {
				t.Errorf("%d attempts without a pause", got)
			}
			w.all(t.Context()) // The stream of the runtime's events is open again.
			reconcile()
			if got := attempts(); got != 2 {
				t.Errorf("%d attempts after the runtime came back, want one more", got)
			}
		})
	}
}
