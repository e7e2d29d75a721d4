package machine

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// since sets a condition with a transition time that is d ago.
func since(c clusterv1.Condition, d time.Duration) func(*clusterv1.Machine) {
	c.LastTransitionTime = metav1.NewTime(now.Add(-d))
	return func(m *clusterv1.Machine) { condition.Set(m, c) }
}

func drainLimit(d time.Duration) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) { m.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To(int32(d / time.Second)) }
}

func TestDrain(t *testing.T) {
	const kind = clusterv1.DrainingSucceededV1Beta1Condition
	at := func(c clusterv1.Condition, age time.Duration) *clusterv1.Condition {
		c.LastTransitionTime = metav1.NewTime(now.Add(-age))
		return &c
	}
	waiting := func(message string) clusterv1.Condition {
		return condition.False(kind, clusterv1.ConditionSeverityInfo, clusterv1.DrainingV1Beta1Reason, "%s", message)
	}
	failed := func(message string) clusterv1.Condition {
		return condition.False(kind, clusterv1.ConditionSeverityWarning, clusterv1.DrainingFailedV1Beta1Reason, "%s", message)
	}
	begun, succeeded := waiting(draining), condition.True(kind)
	terminating, rejected := remainingPods{pods: 2}, remainingPods{pods: 2, rejected: []string{"Pod a/b (no)"}}
	stuck := waiting("Draining the node before deletion; cannot be evicted: Pod a/b (no)")
	cases := map[string]struct {
		reason   string
		machine  *clusterv1.Machine
		gone     bool
		away     error
		left     remainingPods
		fails    error
		want     *clusterv1.Condition
		after    time.Duration
		attempts int
	}{
		"Drained":      {reason: "no Pods are left", machine: machine(withNode), want: &succeeded, attempts: 1},
		"DrainedOnce":  {reason: "the Node was drained before", machine: machine(withNode, since(succeeded, time.Hour)), want: at(succeeded, time.Hour)},
		"Terminating":  {reason: "Pods are terminating", machine: machine(withNode), left: terminating, want: at(begun, 0), after: 2 * time.Second, attempts: 1},
		"Rejected":     {reason: "the message lists the Pod whose eviction was rejected", machine: machine(withNode), left: rejected, want: at(stuck, 0), after: 5 * time.Second, attempts: 1},
		"NowRejected":  {reason: "a new rejection does not restart the timeout", machine: machine(withNode, since(begun, time.Hour)), left: rejected, want: at(stuck, time.Hour), after: 5 * time.Second, attempts: 1},
		"NoRejection":  {reason: "nor does the end of a rejection", machine: machine(withNode, since(stuck, time.Hour)), left: terminating, want: at(begun, time.Hour), after: 2 * time.Second, attempts: 1},
		"Fails":        {reason: "a failure keeps the transition time", machine: machine(withNode, since(begun, time.Hour)), fails: errors.New("no"), want: at(failed("no"), time.Hour), after: 20 * time.Second, attempts: 1},
		"FailsAgain":   {reason: "another message does not restart the timeout", machine: machine(withNode, since(failed("no"), time.Hour)), fails: errors.New("never"), want: at(failed("never"), time.Hour), after: 20 * time.Second, attempts: 1},
		"Recovers":     {reason: "a successful attempt replaces a failure", machine: machine(withNode, since(failed("no"), time.Hour)), left: terminating, want: at(begun, time.Hour), after: 2 * time.Second, attempts: 1},
		"Excluded":     {reason: "an annotation disables draining", machine: machine(withNode, annotated(clusterv1.ExcludeNodeDrainingAnnotation, ""))},
		"LimitPassed":  {reason: "the timeout has passed", machine: machine(withNode, drainLimit(time.Hour), since(begun, time.Hour)), left: rejected, want: at(begun, time.Hour)},
		"LimitNear":    {reason: "the reconcile runs again when the timeout has passed", machine: machine(withNode, drainLimit(time.Hour), since(begun, time.Hour-3*time.Second)), left: rejected, want: at(stuck, time.Hour-3*time.Second), after: 3 * time.Second, attempts: 1},
		"ZeroLimit":    {reason: "zero is no timeout", machine: machine(withNode, drainLimit(0), since(begun, time.Hour)), left: terminating, want: at(begun, time.Hour), after: 2 * time.Second, attempts: 1},
		"NodeGone":     {reason: "the Node does not exist", machine: machine(withNode), gone: true, want: &succeeded},
		"Disconnected": {reason: "deletion waits while a connection is being opened", machine: machine(withNode), away: connecting(t), after: 10 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.workload.Err, w.left, w.drainFails = tc.away, tc.left, tc.fails
			if !tc.gone {
				testenv.Must(t, w.workload.Client.Create(t.Context(), node()))
			}
			r, err := w.step(t, "drain", &scope{machine: tc.machine, cluster: build.Cluster()})
			if err != nil || r.After() != tc.after || r.Ends() != (tc.after > 0) || w.drained != tc.attempts {
				t.Errorf("%s: waits for %q at most %s, drained %d times, err = %v", tc.reason, r.Waiting(), r.After(), w.drained, err)
			}
			if diff := cmp.Diff(tc.want, condition.Get(tc.machine, kind)); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// connecting returns the error of a connection before its first attempt.
func connecting(t *testing.T) error {
	t.Helper()
	w := newWorld(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c-kubeconfig"}}
	testenv.Must(t, w.Client.Create(t.Context(), secret))
	_, err := remote.New(remote.Options{Secrets: struct {
		client.Reader
		cache.Informers
	}{Reader: w.Client}, Scheme: w.Client.Scheme()}).Get(t.Context(), (&scope{machine: machine()}).key())
	if !remote.IsConnecting(err) || !remote.IsNotConnected(err) {
		t.Fatalf("err = %v, want one for a connection that is being opened", err)
	}
	return err
}

func TestRemainsMessage(t *testing.T) {
	cases := map[string]struct {
		reason string
		left   remainingPods
		want   string
	}{
		"Terminating": {"terminating Pods are not listed", remainingPods{pods: 3}, "Draining the node before deletion"},
		"Rejected":    {"rejected evictions are listed", remainingPods{pods: 3, rejected: []string{"a", "b"}}, "Draining the node before deletion; cannot be evicted: a, b"},
		"Many":        {"at most five are listed", remainingPods{pods: 6, rejected: []string{"a", "b", "c", "d", "e", "f"}}, "Draining the node before deletion; cannot be evicted: a, b, c, d, e, ..."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.left.message(); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
