package host

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kuberuntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestRestartBackoff(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	tokens := fake.NewClientset()
	tokens.PrependReactor("create", "serviceaccounts/token", func(kubetesting.Action) (bool, kuberuntime.Object, error) {
		return true, &authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{
			Token: "t", ExpirationTimestamp: metav1.NewTime(time.Now().Add(time.Hour)),
		}}, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	starts := make(chan time.Time, 100)
	h := &host{
		Options: Options{Clock: clock, Logger: logr.Discard(), Programs: map[string]Program{
			"p": func(context.Context, []string, Process) error {
				starts <- clock.Now()
				if len(starts) == 8 {
					clock.Step(steady) // this one ran well for a while
				}
				return errors.New("broken")
			},
		}},
		kubernetes: tokens, running: ctx,
	}
	changes := make(chan struct{}, 100)
	i := h.start(&plan{program: "p", pod: &corev1.Pod{Spec: corev1.PodSpec{ServiceAccountName: "a"}}}, nil, func() { changes <- struct{}{} })
	for len(starts) < 10 {
		for !clock.HasWaiters() {
			runtime.Gosched()
		}
		clock.Step(250 * time.Millisecond)
	}
	cancel()
	<-i.ended

	var pauses []time.Duration
	last := <-starts
	for range 9 {
		next := <-starts
		pauses = append(pauses, next.Sub(last).Truncate(time.Second))
		last = next
	}
	const s = time.Second
	want := []time.Duration{1 * s, 2 * s, 4 * s, 8 * s, 16 * s, 30 * s, 30 * s, steady + 1*s, 2 * s}
	if diff := cmp.Diff(want, pauses); diff != "" {
		t.Errorf("time from one start to the next (-want +got):\n%s", diff)
	}
	if got := i.observe(); got != (state{phase: phaseFailed, message: "broken"}) {
		t.Errorf("the failure should be seen, got %+v", got)
	}
}

func TestImageName(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"cluster-api-controller":                                  "cluster-api-controller",
		"registry.example/a/b/cluster-api-controller:v1.7.0":      "cluster-api-controller",
		"localhost:5000/cluster-api-controller@sha256:0123":       "cluster-api-controller",
		"localhost:5000/a/cluster-api-controller:dev@sha256:0123": "cluster-api-controller",
	}
	for image, want := range tests {
		if got := imageName(image); got != want {
			t.Errorf("imageName(%q) = %q, want %q", image, got, want)
		}
	}
}
