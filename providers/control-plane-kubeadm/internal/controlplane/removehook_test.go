package controlplane

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
)

func TestRemoveHook(t *testing.T) {
	of := func() *controlplanev1.KubeadmControlPlane {
		return &controlplanev1.KubeadmControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cp", UID: "cp-uid"}}
	}
	another := of()
	another.UID = "another"
	theirs := kcptest.Machine("m", "cp-uid")
	theirs.OwnerReferences[0].Kind = "OtherControlPlane"
	paused := kcptest.Machine("m", "")
	paused.Annotations[clusterv1.PausedAnnotation] = ""
	cases := []struct {
		reason  string
		machine *clusterv1.Machine
		there   client.Object // in the cache and the API server
		live    *controlplanev1.KubeadmControlPlane
		stays   bool // not being deleted
		held    bool
	}{
		{reason: "its control plane exists", machine: kcptest.Machine("m", "cp-uid"), there: of(), held: true},
		{reason: "the cache does not show its control plane yet", machine: kcptest.Machine("m", "cp-uid"), live: of(), held: true},
		{reason: "its control plane was removed by force", machine: kcptest.Machine("m", "cp-uid")},
		{reason: "its control plane was created again", machine: kcptest.Machine("m", "cp-uid"), there: another},
		{reason: "it was orphaned", machine: kcptest.Machine("m", ""), there: of()},
		{reason: "it has another controller", machine: theirs, held: true},
		{reason: "it is not being deleted", machine: kcptest.Machine("m", ""), stays: true, held: true},
		{reason: "it is paused", machine: paused, held: true},
		{
			reason: "its Cluster is paused", machine: kcptest.Machine("m", ""), held: true,
			there: &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}, Spec: clusterv1.ClusterSpec{Paused: ptr.To(true)}},
		},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			objects := []client.Object{tc.machine.DeepCopy()}
			if tc.there != nil {
				objects = append(objects, tc.there)
			}
			if tc.live != nil {
				objects = append(objects, tc.live)
			}
			b := kcptest.New(t, objects...)
			if tc.live != nil {
				b.API.Cache.Hide(tc.live)
			}
			c := &orphanedMachines{reader: b.Client, live: b.API}
			if !tc.stays {
				b.Deleted(t, "m")
			}
			runner := c.declared().Runner(b.Clients)
			for range 2 {
				if _, err := runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(tc.machine)}); err != nil {
					t.Fatal(err)
				}
			}
			if held := len(b.Held(t)) == 1; held != tc.held {
				t.Errorf("it is held: %t, want %t", held, tc.held)
			}
		})
	}
}
