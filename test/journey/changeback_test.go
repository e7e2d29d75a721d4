package journey

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// TestChangeAndChangeBack changes the spec of a control plane, and changes it back while the Machine of the rollout is starting, which is a known
// way to lose the quorum of etcd: with one machine, the new member makes two of them the quorum, and is removed at once. The change is
// taken back at different moments. The previous Machines remain, and so does the quorum.
func TestChangeAndChangeBack(t *testing.T) {
	moments := map[string]func(m clusterv1.Machine) bool{
		"Created":     func(clusterv1.Machine) bool { return true },
		"Provisioned": func(m clusterv1.Machine) bool { return m.Spec.ProviderID != nil },
		"Node":        func(m clusterv1.Machine) bool { return m.Status.NodeRef != nil },
		"Member": func(m clusterv1.Machine) bool {
			return ConditionIsTrue(&m, controlplanev1.MachineEtcdMemberHealthyCondition)
		},
	}
	for _, size := range []int{1, 3} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			if size > 1 {
				testenv.Soak(t)
			}
			t.Parallel()
			w := shared.World(t)
			manifest := Plain{ControlPlanes: size, Workers: 1}.String()
			c := w.Plain(strings.Replace(manifest, "spec: {template: {spec: {}}}",
				"spec: {template: {spec: {behaviour: {node: {provisioning: {startupDuration: 300ms}}, etcd: {provisioning: {startupDuration: 300ms}}}}}}", 1))
			c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(size), Workers(1), c.WorkloadMatches)
			before := c.Snapshot()
			workers := c.Always("workers are not replaced", SameMachines((*Snapshot).Workers, before))
			consistent := c.EtcdIsConsistent(size, size+1)
			for _, moment := range []string{"Created", "Provisioned", "Node", "Member"} {
				c.plane(func(k *controlplanev1.KubeadmControlPlane) {
					k.Spec.KubeadmConfigSpec.PreKubeadmCommands = []string{"true"}
				})
				c.Eventually("a rollout has reached "+moment, func(p *Snapshot) error {
					if slices.ContainsFunc(p.ControlPlane(), func(m clusterv1.Machine) bool {
						return m.DeletionTimestamp == nil && isNew(before, m) && moments[moment](m)
					}) {
						return nil
					}
					return errors.New("no new Machine has")
				})
				c.plane(func(k *controlplanev1.KubeadmControlPlane) { k.Spec.KubeadmConfigSpec.PreKubeadmCommands = nil })
				c.Eventually("the change at "+moment+" is taken back", Ready, ControlPlanes(size), c.WorkloadMatches)
			}
			workers()
			consistent()
			c.Gone()
		})
	}
}

// isNew reports whether a Machine did not exist before.
func isNew(before *Snapshot, m clusterv1.Machine) bool {
	return !slices.ContainsFunc(before.ControlPlane(), func(old clusterv1.Machine) bool { return old.UID == m.UID })
}
