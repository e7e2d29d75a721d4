package controlplane

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolsrecord "k8s.io/client-go/tools/record"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/step"
)

func TestUnattendedMachines(t *testing.T) {
	of := func() *controlplanev1.KubeadmControlPlane {
		return &controlplanev1.KubeadmControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cp", UID: "cp-uid"}}
	}
	another := of()
	another.UID = "another"
	theirs := owned("m", "cp-uid")
	theirs.OwnerReferences[0].Kind = "OtherControlPlane"
	paused := owned("m", "")
	paused.Annotations[clusterv1.PausedAnnotation] = ""
	cases := []struct {
		reason  string
		machine *clusterv1.Machine
		there   client.Object // in the cache and in the API server
		live    *controlplanev1.KubeadmControlPlane
		stays   bool // it is not being deleted
		held    bool
	}{
		{reason: "its control plane looks after it", machine: owned("m", "cp-uid"), there: of(), held: true},
		{reason: "its control plane is new to the cache", machine: owned("m", "cp-uid"), live: of(), held: true},
		{reason: "its control plane was removed by force", machine: owned("m", "cp-uid")},
		{reason: "its control plane was made anew", machine: owned("m", "cp-uid"), there: another},
		{reason: "its control plane gave it up", machine: owned("m", ""), there: of()},
		{reason: "somebody else controls it", machine: theirs, held: true},
		{reason: "it is not being deleted", machine: owned("m", ""), stays: true, held: true},
		{reason: "it is paused", machine: paused, held: true},
		{
			reason: "its Cluster is paused", machine: owned("m", ""), held: true,
			there: &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}, Spec: clusterv1.ClusterSpec{Paused: true}},
		},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			objects := []client.Object{tc.machine.DeepCopy()}
			if tc.there != nil {
				objects = append(objects, tc.there)
			}
			b := newBench(t, objects...)
			u := &unattended{reader: b.Client, live: b.Client}
			if tc.live != nil {
				u.live = newBench(t, tc.live).Client
			}
			if !tc.stays {
				b.deleted(t, "m")
			}
			runner := u.declared().Runner(step.Outside{Client: b.Client, Live: b.Client, Recorder: toolsrecord.NewFakeRecorder(9), Clock: testclock.NewFakePassiveClock(now)})
			for range 2 {
				if _, err := runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(tc.machine)}); err != nil {
					t.Fatal(err)
				}
			}
			if held := len(b.held(t)) == 1; held != tc.held {
				t.Errorf("it is held: %t, want %t", held, tc.held)
			}
		})
	}
}

// The Machines of a control plane that goes by force are looked at then.
func TestMachinesThatAControlPlaneLeavesBehind(t *testing.T) {
	free := owned("free", "cp-uid")
	free.Annotations = nil
	b := newBench(t, owned("mine", "cp-uid"), owned("others", "another"), owned("nobodys", ""), free)
	u := &unattended{reader: b.Client, live: b.Client}
	var got []string
	for _, r := range u.ofControlPlane(t.Context(), b.kcp) {
		got = append(got, r.Name)
	}
	if len(got) != 2 || got[0] != "mine" || got[1] != "nobodys" {
		t.Errorf("requests for %q", got)
	}
}
