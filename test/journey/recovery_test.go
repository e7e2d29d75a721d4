package journey

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// TestRecovery takes the power of two of three control plane machines, so that etcd has no quorum, and recovers the control plane from the
// third. Workers and data remain.
//
// The book and the walk of permissions recover a control plane with each change, too.
func TestRecovery(t *testing.T) {
	testenv.Soak(t)
	t.Parallel()
	v := newVault(t)
	c := v.Plain(Plain{ControlPlanes: 3, Workers: 1}.String())
	recovery := &fleetv1.ControlPlaneRecovery{ObjectMeta: v.meta("r"), Spec: fleetv1.ControlPlaneRecoverySpec{
		ClusterName: c.Name, MinimumLossSeconds: ptr.To[int32](0),
	}}
	const completed = fleetv1.OperationCompletedCondition
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(3), Workers(1), c.WorkloadMatches)
	v.create(recovery)
	v.settled(recovery, completed, "False Refused", "etcd has a quorum")
	data := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data"}, Data: map[string]string{"a": "b"}}
	testenv.Must(t, c.Workload().client.Create(t.Context(), data))

	before := c.Snapshot()
	planes := before.ControlPlane()
	slices.SortFunc(planes, func(a, b clusterv1.Machine) int { return cmp.Compare(a.Name, b.Name) })
	survivor, lost := planes[1], []string{planes[0].Name, planes[2].Name}
	gone := []types.UID{planes[0].UID, planes[2].UID} // A new Machine may have the name of one that was deleted.
	workers := c.Always("workers are not replaced", SameMachines((*Snapshot).Workers, before))
	c.faults(fmt.Sprintf(`{"deadMachines": [%q, %q]}`, planes[0].Status.NodeRef.Name, planes[2].Status.NodeRef.Name))
	testenv.Must(t, v.api.Delete(t.Context(), recovery))
	testenv.Eventually(t, "the first recovery is gone", func() error {
		return absent(v.api.Get(t.Context(), client.ObjectKeyFromObject(recovery), recovery))
	})

	recovery = &fleetv1.ControlPlaneRecovery{ObjectMeta: v.meta("r"), Spec: recovery.Spec}
	v.create(recovery)
	v.settled(recovery, completed, "False NotConfirmed", fmt.Sprintf("The member on Machine %s has the highest raft index", survivor.Name))
	for _, m := range recovery.Status.Members {
		if m.Reachable != (m.Machine == survivor.Name) || m.Leader != "" || m.Node == "" {
			t.Errorf("member %+v, want only that of %s to respond, without a leader", m, survivor.Name)
		}
	}
	base := recovery.DeepCopy()
	recovery.Spec.Survivor, recovery.Spec.LostMachines, recovery.Spec.Confirm = survivor.Name, lost, c.Name+"/"+survivor.Name
	testenv.Must(t, v.api.Patch(t.Context(), recovery, client.MergeFrom(base)))
	v.settled(recovery, completed, "True Completed", "")
	c.faults("") // They go by name.
	c.Eventually("the control plane is complete again", Ready, ControlPlanes(3), Workers(1), c.WorkloadMatches, func(p *Snapshot) error {
		for _, m := range p.ControlPlane() {
			if slices.Contains(gone, m.UID) {
				return fmt.Errorf("Machine %s still exists", m.Name)
			}
		}
		return nil
	})
	workers()
	testenv.Must(t, c.Workload().client.Get(t.Context(), client.ObjectKeyFromObject(data), data))
	if !slices.ContainsFunc(c.Snapshot().ControlPlane(), func(m clusterv1.Machine) bool { return m.UID == survivor.UID }) {
		t.Errorf("Machine %s was replaced", survivor.Name)
	}
	var steps []string
	for _, s := range recovery.Status.Steps {
		steps = append(steps, s.Name)
	}
	if got := strings.Join(steps, " "); got != "Hold Check Fence ForceNewCluster Serve RemoveNodes Release" {
		t.Errorf("steps %s", got)
	}
	testenv.Must(t, v.api.Delete(t.Context(), recovery))
	c.Gone()
}

// absent returns an error if an object was found.
func absent(err error) error {
	if err == nil {
		return fmt.Errorf("it exists")
	}
	return client.IgnoreNotFound(err)
}
