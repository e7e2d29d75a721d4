package machines

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
)

func TestMachineNames(t *testing.T) {
	b := kcptest.New(t)
	first := machineName(b.ControlPlane)
	if again := machineName(b.ControlPlane); first != again {
		t.Errorf("the same Machines result in two names, %s and %s", first, again)
	}
	b.Machines = []*snapshot.Machine{{Machine: &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{UID: "a"}}}}
	second := machineName(b.ControlPlane)
	b.Machines[0].UID = "b"
	third := machineName(b.ControlPlane)
	if first == second || second == third || !strings.HasPrefix(first, "cp-") || len(first) != len("cp-")+5 {
		t.Errorf("names %s, %s, %s", first, second, third)
	}
}
