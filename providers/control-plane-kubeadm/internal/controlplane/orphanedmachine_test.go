package controlplane

import (
	"testing"

	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
)

// The Machines of a deleted control plane are reconciled.
func TestMachinesOfADeletedControlPlane(t *testing.T) {
	free := kcptest.Machine("free", "cp-uid")
	free.Annotations = nil
	b := kcptest.New(t, kcptest.Machine("mine", "cp-uid"), kcptest.Machine("others", "another"), kcptest.Machine("orphan", ""), free)
	c := &orphanedMachines{reader: b.Client, live: b.API}
	var got []string
	for _, r := range c.ofControlPlane(t.Context(), b.KCP) {
		got = append(got, r.Name)
	}
	if len(got) != 2 || got[0] != "mine" || got[1] != "orphan" {
		t.Errorf("requests for %q", got)
	}
}
