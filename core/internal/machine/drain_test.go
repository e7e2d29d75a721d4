package machine

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/remote"
)

// since states a condition that holds for an hour already.
func since(c clusterv1.Condition, d time.Duration) func(*clusterv1.Machine) {
	c.LastTransitionTime = metav1.NewTime(now.Add(-d))
	return func(m *clusterv1.Machine) { condition.Set(m, c) }
}

func drainLimit(d time.Duration) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) { m.Spec.NodeDrainTimeout = &metav1.Duration{Duration: d} }
}

func TestDrain(t *testing.T) {
	const kind = clusterv1.DrainingSucceededCondition
	at := func(c clusterv1.Condition, age time.Duration) *clusterv1.Condition {
		c.LastTransitionTime = metav1.NewTime(now.Add(-age))
		return &c
	}
	waiting := func(message string) clusterv1.Condition {
		return condition.False(kind, clusterv1.ConditionSeverityInfo, clusterv1.DrainingReason, "%s", message)
	}
	failed := func(message string) clusterv1.Condition {
		return condition.False(kind, clusterv1.ConditionSeverityWarning, clusterv1.DrainingFailedReason, "%s", message)
	}
	begun, succeeded := waiting(draining), condition.True(kind)
	leaving, refused := remainingPods{pods: 2}, remainingPods{pods: 2, rejected: []string{"Pod a/b (no)"}}
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
		"Drained":      {reason: "the Node is empty", machine: machine(withNode), want: &succeeded, attempts: 1},
		"DrainedOnce":  {reason: "it was empty before", machine: machine(withNode, since(succeeded, time.Hour)), want: at(succeeded, time.Hour)},
		"Leaving":      {reason: "Pods are on their way", machine: machine(withNode), left: leaving, want: at(begun, 0), after: 2 * time.Second, attempts: 1},
		"Refused":      {reason: "a budget holds one: it is named", machine: machine(withNode), left: refused, want: at(stuck, 0), after: 5 * time.Second, attempts: 1},
		"NowRefused":   {reason: "which Pods does not restart the limit", machine: machine(withNode, since(begun, time.Hour)), left: refused, want: at(stuck, time.Hour), after: 5 * time.Second, attempts: 1},
		"NowLeaving":   {reason: "nor does that it goes on", machine: machine(withNode, since(stuck, time.Hour)), left: leaving, want: at(begun, time.Hour), after: 2 * time.Second, attempts: 1},
		"Fails":        {reason: "a failure is told, with the time that draining began", machine: machine(withNode, since(begun, time.Hour)), fails: errors.New("no"), want: at(failed("no"), time.Hour), after: 20 * time.Second, attempts: 1},
		"FailsAnew":    {reason: "another text does not restart the limit", machine: machine(withNode, since(failed("no"), time.Hour)), fails: errors.New("never"), want: at(failed("never"), time.Hour), after: 20 * time.Second, attempts: 1},
		"FailsNoMore":  {reason: "a failure is over once Pods could be asked", machine: machine(withNode, since(failed("no"), time.Hour)), left: leaving, want: at(begun, time.Hour), after: 2 * time.Second, attempts: 1},
		"Excluded":     {reason: "its owner does not want it", machine: machine(withNode, annotated(clusterv1.ExcludeNodeDrainingAnnotation, ""))},
		"LimitPassed":  {reason: "it was tried for long enough", machine: machine(withNode, drainLimit(time.Hour), since(begun, time.Hour)), left: refused, want: at(begun, time.Hour)},
		"LimitNear":    {reason: "it comes back when the limit has passed", machine: machine(withNode, drainLimit(time.Hour), since(begun, time.Hour-3*time.Second)), left: refused, want: at(stuck, time.Hour-3*time.Second), after: 3 * time.Second, attempts: 1},
		"ZeroLimit":    {reason: "zero is no limit", machine: machine(withNode, drainLimit(0), since(begun, time.Hour)), left: leaving, want: at(begun, time.Hour), after: 2 * time.Second, attempts: 1},
		"NodeGone":     {reason: "nothing is left to drain", machine: machine(withNode), gone: true, want: &succeeded},
		"Disconnected": {reason: "while it is being connected deletion waits", machine: machine(withNode), away: connecting(t), after: 10 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.away, w.left, w.drainFails = tc.away, tc.left, tc.fails
			if !tc.gone {
				if err := w.workload.Create(t.Context(), node()); err != nil {
					t.Fatal(err)
				}
			}
			r, err := w.step(t, "drain", &scope{machine: tc.machine, cluster: cluster()})
			if err != nil || r.After() != tc.after || r.Ends() != (tc.after > 0) || w.drained != tc.attempts {
				t.Errorf("%s: waits for %q at most %s, drained %d times, err = %v", tc.reason, r.Waiting(), r.After(), w.drained, err)
			}
			if diff := cmp.Diff(tc.want, condition.Get(tc.machine, kind)); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// connecting is what connections say that have not been tried yet.
func connecting(t *testing.T) error {
	t.Helper()
	w := newWorld(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c-kubeconfig"}}
	if err := w.Client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	_, err := remote.New(remote.Options{Secrets: struct {
		client.Reader
		cache.Informers
	}{Reader: w.Client}, Scheme: w.Client.Scheme()}).Get(t.Context(), (&scope{machine: machine()}).key())
	if !remote.IsConnecting(err) || !remote.IsNotConnected(err) {
		t.Fatalf("err = %v, want one that says that the cluster is being connected", err)
	}
	return err
}

func TestRemainsMessage(t *testing.T) {
	cases := map[string]struct {
		reason string
		left   remainingPods
		want   string
	}{
		"Leaving": {"nobody needs to act", remainingPods{pods: 3}, "Draining the node before deletion"},
		"Refused": {"somebody may", remainingPods{pods: 3, rejected: []string{"a", "b"}}, "Draining the node before deletion; cannot be evicted: a, b"},
		"Many":    {"five are enough to start with", remainingPods{pods: 6, rejected: []string{"a", "b", "c", "d", "e", "f"}}, "Draining the node before deletion; cannot be evicted: a, b, c, d, e, ..."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.left.message(); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
