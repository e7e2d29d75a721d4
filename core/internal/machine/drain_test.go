package machine

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/internal/condition"
	"sigs.k8s.io/cluster-api/internal/remote"
)

// since states a condition that holds for an hour already.
func since(c clusterv1.Condition, d time.Duration) func(*clusterv1.Machine) {
	c.LastTransitionTime = metav1.NewTime(now.Add(-d))
	return func(m *clusterv1.Machine) { condition.Set(m, c) }
}

func drainLimit(d time.Duration) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) { m.Spec.NodeDrainTimeout = &metav1.Duration{Duration: d} }
}

func volumeLimit(d time.Duration) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) { m.Spec.NodeVolumeDetachTimeout = &metav1.Duration{Duration: d} }
}

func TestDrain(t *testing.T) {
	const kind = clusterv1.DrainingSucceededCondition
	at := func(c clusterv1.Condition, age time.Duration) *clusterv1.Condition {
		c.LastTransitionTime = metav1.NewTime(now.Add(-age))
		return &c
	}
	draining := condition.False(kind, clusterv1.ConditionSeverityInfo, clusterv1.DrainingReason, "Draining the node before deletion")
	failed := func(message string) clusterv1.Condition {
		return condition.False(kind, clusterv1.ConditionSeverityWarning, clusterv1.DrainingFailedReason, "%s", message)
	}
	succeeded := condition.True(kind)
	cases := map[string]struct {
		reason        string
		machine       *clusterv1.Machine
		gone          bool
		away          error
		cordon, evict error
		want          *clusterv1.Condition
		after         time.Duration
		drained       int
	}{
		"Drained":      {reason: "the Node is empty", machine: machine(withNode), want: &succeeded, drained: 1},
		"DrainedOnce":  {reason: "it was empty before", machine: machine(withNode, since(succeeded, time.Hour)), want: at(succeeded, time.Hour)},
		"NotYet":       {reason: "Pods are left", machine: machine(withNode), evict: errors.New("pod a"), want: at(draining, 0), after: 20 * time.Second, drained: 1},
		"StillNotYet":  {reason: "which Pods does not restart the limit", machine: machine(withNode, since(draining, time.Hour)), evict: errors.New("pod b"), want: at(draining, time.Hour), after: 20 * time.Second, drained: 1},
		"CordonFails":  {reason: "a failure is told, with the time that draining began", machine: machine(withNode, since(draining, time.Hour)), cordon: errors.New("no"), want: at(failed("no"), time.Hour), after: 20 * time.Second},
		"FailsAnew":    {reason: "another text does not restart the limit", machine: machine(withNode, since(failed("no"), time.Hour)), cordon: errors.New("never"), want: at(failed("never"), time.Hour), after: 20 * time.Second},
		"Excluded":     {reason: "its owner does not want it", machine: machine(withNode, annotated(clusterv1.ExcludeNodeDrainingAnnotation, ""))},
		"LimitPassed":  {reason: "it was tried for long enough", machine: machine(withNode, drainLimit(time.Hour), since(draining, time.Hour)), evict: errors.New("pod"), want: at(draining, time.Hour)},
		"LimitNear":    {reason: "it comes back when the limit has passed", machine: machine(withNode, drainLimit(time.Hour), since(draining, time.Hour-5*time.Second)), evict: errors.New("pod"), want: at(draining, time.Hour-5*time.Second), after: 5 * time.Second, drained: 1},
		"ZeroLimit":    {reason: "zero is no limit", machine: machine(withNode, drainLimit(0), since(draining, time.Hour)), evict: errors.New("pod"), want: at(draining, time.Hour), after: 20 * time.Second, drained: 1},
		"NodeGone":     {reason: "nothing is left to drain", machine: machine(withNode), gone: true, want: &succeeded},
		"Unreachable":  {reason: "without a way to the cluster deletion goes on", machine: machine(withNode), away: fmt.Errorf("%w: refused", remote.ErrNotConnected)},
		"Disconnected": {reason: "while it is being connected deletion waits", machine: machine(withNode), away: connecting(t), after: 10 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.away, w.cordon, w.evict = tc.away, tc.cordon, tc.evict
			if !tc.gone {
				if err := w.workload.Create(t.Context(), node()); err != nil {
					t.Fatal(err)
				}
			}
			r, err := w.drain(t.Context(), &scope{machine: tc.machine, cluster: cluster()})
			if err != nil || r.After() != tc.after || r.Ends() != (tc.after > 0) || w.drained != tc.drained {
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
	_, err := remote.New(remote.Options{Secrets: w.Client}).Get(t.Context(), (&scope{machine: machine()}).key())
	if !remote.IsConnecting(err) || !remote.IsNotConnected(err) {
		t.Fatalf("err = %v, want one that says that the cluster is being connected", err)
	}
	return err
}

func TestVolumes(t *testing.T) {
	const kind = clusterv1.VolumeDetachSucceededCondition
	waiting := condition.False(kind, clusterv1.ConditionSeverityInfo, clusterv1.WaitingForVolumeDetachReason, "Waiting for node volumes to be detached")
	at := func(age time.Duration) *clusterv1.Condition {
		c := waiting
		c.LastTransitionTime = metav1.NewTime(now.Add(-age))
		return &c
	}
	succeeded := condition.True(kind)
	attached := func(n *corev1.Node) { n.Status.VolumesAttached = []corev1.AttachedVolume{{Name: "v"}} }
	cases := map[string]struct {
		reason  string
		machine *clusterv1.Machine
		node    *corev1.Node
		away    error
		want    *clusterv1.Condition
		after   time.Duration
	}{
		"None":        {reason: "nothing is attached", machine: machine(withNode), node: node(), want: &succeeded},
		"NodeGone":    {reason: "nor here", machine: machine(withNode), want: &succeeded},
		"Attached":    {reason: "the Node tells when they are gone", machine: machine(withNode), node: node(attached), want: at(0), after: 30 * time.Second},
		"LimitNear":   {reason: "or the limit passes", machine: machine(withNode, volumeLimit(time.Hour), since(waiting, time.Hour-5*time.Second)), node: node(attached), want: at(time.Hour - 5*time.Second), after: 5 * time.Second},
		"LimitPassed": {reason: "as it did here", machine: machine(withNode, volumeLimit(time.Hour), since(waiting, time.Hour)), node: node(attached), want: at(time.Hour)},
		"Excluded":    {reason: "its owner does not want it", machine: machine(withNode, annotated(clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation, "")), node: node(attached)},
		"Unreachable": {reason: "without a way to the cluster deletion goes on", machine: machine(withNode), away: remote.ErrNotConnected},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.away = tc.away
			if tc.node != nil {
				if err := w.workload.Create(t.Context(), tc.node); err != nil {
					t.Fatal(err)
				}
			}
			r, err := w.volumes(t.Context(), &scope{machine: tc.machine, cluster: cluster()})
			if err != nil || r.After() != tc.after || r.Ends() != (tc.after > 0) {
				t.Errorf("%s: waits for %q at most %s, err = %v", tc.reason, r.Waiting(), r.After(), err)
			}
			if diff := cmp.Diff(tc.want, condition.Get(tc.machine, kind)); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	cases := map[string]struct {
		reason string
		node   *corev1.Node
		want   bool
	}{
		"Fine": {"its kubelet answers", node(healthy), false},
		"Silent": {"nobody knows its state", node(func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
		}), true},
		"Tainted": {"the node lifecycle controller says so", node(func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable}} }), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := unreachable(tc.node); got != tc.want {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
}
