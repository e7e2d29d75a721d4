package machine

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

func volumeLimit(d time.Duration) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) {
		m.Spec.Deletion.NodeVolumeDetachTimeoutSeconds = ptr.To(int32(d / time.Second))
	}
}

func TestVolumes(t *testing.T) {
	const kind = clusterv1.VolumeDetachSucceededV1Beta1Condition
	waiting := condition.False(kind, clusterv1.ConditionSeverityInfo, clusterv1.WaitingForVolumeDetachV1Beta1Reason, "Waiting for node volumes to be detached")
	at := func(age time.Duration) *clusterv1.Condition {
		c := waiting
		c.LastTransitionTime = metav1.NewTime(now.Add(-age))
		return &c
	}
	succeeded := condition.True(kind)
	detached := func(age time.Duration) *clusterv1.Condition {
		c := succeeded
		c.LastTransitionTime = metav1.NewTime(now.Add(-age))
		return &c
	}
	attached := func(n *corev1.Node) { n.Status.VolumesAttached = []corev1.AttachedVolume{{Name: "v"}} }
	cases := map[string]struct {
		reason  string
		machine *clusterv1.Machine
		node    *corev1.Node
		fails   error
		want    *clusterv1.Condition
		after   time.Duration
	}{
		"None":        {reason: "no volumes are attached", machine: machine(withNode), node: node(), want: &succeeded},
		"NodeGone":    {reason: "the Node does not exist", machine: machine(withNode), want: &succeeded},
		"Attached":    {reason: "an event of the Node ends the wait", machine: machine(withNode), node: node(attached), want: at(0), after: 30 * time.Second},
		"Fails":       {reason: "what cannot be read may be attached, and the timeout counts", machine: machine(withNode), node: node(), fails: errors.New("timeout"), want: at(0), after: 30 * time.Second},
		"Once":        {reason: "nothing is read again when all were detached", machine: machine(withNode, since(succeeded, time.Hour)), node: node(attached), fails: errors.New("timeout"), want: detached(time.Hour)},
		"Unreachable": {reason: "the kubelet cannot detach volumes", machine: machine(withNode, since(waiting, time.Hour)), node: node(attached, unresponsive), want: &succeeded},
		"LimitNear":   {reason: "the reconcile runs again when the timeout has passed", machine: machine(withNode, volumeLimit(time.Hour), since(waiting, time.Hour-5*time.Second)), node: node(attached), want: at(time.Hour - 5*time.Second), after: 5 * time.Second},
		"LimitPassed": {reason: "the timeout has passed", machine: machine(withNode, volumeLimit(time.Hour), since(waiting, time.Hour)), node: node(attached), want: at(time.Hour)},
		"Excluded":    {reason: "an annotation disables the wait", machine: machine(withNode, annotated(clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation, "")), node: node(attached)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.volumesFail = tc.fails
			if tc.node != nil {
				testenv.Must(t, w.workload.Client.Create(t.Context(), tc.node))
			}
			r, err := w.step(t, "volumes", &scope{machine: tc.machine, cluster: build.Cluster()})
			if err != nil || r.After() != tc.after || r.Ends() != (tc.after > 0) {
				t.Errorf("%s: waits for %q at most %s, err = %v", tc.reason, r.Waiting(), r.After(), err)
			}
			if diff := cmp.Diff(tc.want, condition.Get(tc.machine, kind)); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
