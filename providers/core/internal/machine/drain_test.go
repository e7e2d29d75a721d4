package machine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/drain"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
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
	terminating, rejected := drain.Left{Leaving: 2}, drain.Left{Leaving: 1, Rejected: []drain.Rejection{{Pod: "a/b", Reason: "no"}}}
	stuck := waiting("Draining the node before deletion; cannot be evicted: Pod a/b (no)")
	cases := map[string]struct {
		reason   string
		machine  *clusterv1.Machine
		gone     bool
		away     error
		left     drain.Left
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

// TestDrainRules checks which rules a drain follows, and that it evicts no Pod if one of them cannot be read.
func TestDrainRules(t *testing.T) {
	rule := func(namespace string, selector *metav1.LabelSelector) *clusterv1.MachineDrainRule {
		r := &clusterv1.MachineDrainRule{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "r"}}
		r.Spec.Machines = []clusterv1.MachineDrainRuleMachineSelector{{Selector: selector}}
		return r
	}
	matching := &metav1.LabelSelector{MatchLabels: map[string]string{clusterv1.MachineSetNameLabel: "set"}}
	other := &metav1.LabelSelector{MatchLabels: map[string]string{clusterv1.MachineSetNameLabel: "other"}}
	invalid := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
	for name, tc := range map[string]struct {
		rule     *clusterv1.MachineDrainRule
		rules    int
		attempts int
	}{
		"of the Machine":           {rule(metav1.NamespaceDefault, matching), 1, 1},
		"of other Machines":        {rule(metav1.NamespaceDefault, other), 0, 1},
		"of another namespace":     {rule("other", matching), 0, 1},
		"with an invalid selector": {rule(metav1.NamespaceDefault, invalid), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.rule)
			testenv.Must(t, w.workload.Client.Create(t.Context(), node()))
			m := machine(withNode)
			_, err := w.step(t, "drain", &scope{machine: m, cluster: build.Cluster()})
			testenv.Must(t, err)
			if len(w.rules) != tc.rules || w.drained != tc.attempts {
				t.Errorf("%d attempts with %d rules, want %d with %d", w.drained, len(w.rules), tc.attempts, tc.rules)
			}
			c := condition.Get(m, clusterv1.DrainingSucceededV1Beta1Condition)
			if failed := c != nil && c.Reason == clusterv1.DrainingFailedV1Beta1Reason; failed != (tc.attempts == 0) {
				t.Errorf("condition %+v", c)
			}
		})
	}
}

// TestDrainWithoutTheKind checks that Nodes are drained in management clusters with the definitions of v1.7.
func TestDrainWithoutTheKind(t *testing.T) {
	w := newWorld(t)
	testenv.Must(t, w.workload.Client.Create(t.Context(), node()))
	w.Before = func(r fakeapi.Request) error {
		if r.Kind == clusterv1.MachineDrainRuleKind+"List" || r.Kind == clusterv1.MachineDrainRuleKind {
			return &meta.NoKindMatchError{GroupKind: clusterv1.GroupVersion.WithKind(clusterv1.MachineDrainRuleKind).GroupKind()}
		}
		return nil
	}
	_, err := w.step(t, "drain", &scope{machine: machine(withNode), cluster: build.Cluster()})
	if err != nil || w.drained != 1 {
		t.Errorf("drained %d times, error %v", w.drained, err)
	}
}

// unreadable is a cache that never has all MachineDrainRules, as without permission to watch them.
type unreadable struct{ client.Client }

// List implements client.Reader.
func (u unreadable) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, ok := list.(*clusterv1.MachineDrainRuleList); ok {
		<-ctx.Done()
		return ctx.Err()
	}
	return u.Client.List(ctx, list, opts...)
}

// TestDrainWithoutPermission checks that a drain whose rules cannot be read evicts no Pod, and that the condition says why.
func TestDrainWithoutPermission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Controller.Client = unreadable{w.Controller.Client}
		testenv.Must(t, w.workload.Client.Create(t.Context(), node()))
		m := machine(withNode)
		_, err := w.step(t, "drain", &scope{machine: m, cluster: build.Cluster()})
		c := condition.Get(m, clusterv1.DrainingSucceededV1Beta1Condition)
		if err != nil || w.drained != 0 || c == nil || !strings.Contains(c.Message, "the manager must be allowed to list and watch them") {
			t.Errorf("drained %d times, condition %+v, error %v", w.drained, c, err)
		}
	})
}

// TestDrainReports lists what the metav1 conditions say about a drain that has left Pods.
func TestDrainReports(t *testing.T) {
	begun := condition.False(clusterv1.DrainingSucceededV1Beta1Condition, clusterv1.ConditionSeverityInfo, clusterv1.DrainingV1Beta1Reason, "%s", draining)
	left := drain.Left{Running: []string{"a/job"}, Later: []string{"a/store"}}
	for name, tc := range map[string]struct {
		since time.Duration
		ready string
	}{
		"a short drain": {time.Minute, "Machine deletion in progress, stage: DrainingNode"},
		"a long drain":  {6 * time.Minute, "Machine deletion in progress, stage: DrainingNode, delay likely due to Pods not completed yet"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scope{machine: machine(withNode, deleting, since(begun, tc.since)), now: now}
			s.found.pods = &left
			want := "Drain not completed yet (started at " + now.Add(-tc.since).UTC().Format(time.RFC3339) + "):\n* Pod a/job: waiting for completion\n" +
				"After above Pods have been removed from the Node, the following Pods will be evicted: a/store"
			if got := drainStage(s); got != want {
				t.Errorf("stage %q, want %q", got, want)
			}
			if got := s.deletionSummary(clusterv1.MachineDeletingDrainingNodeReason); got != tc.ready {
				t.Errorf("summary %q, want %q", got, tc.ready)
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
