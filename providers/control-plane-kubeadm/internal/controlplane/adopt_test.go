package controlplane

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

func TestAdopt(t *testing.T) {
	machine := func(version string) *clusterv1.Machine {
		return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m"}, Spec: clusterv1.MachineSpec{Version: version}}
	}
	for version, want := range map[string]bool{"v1.29.9": true, "v1.30.1": true, "v1.31.0": true, "v1.28.0": false, "v1.32.0": false, "v2.30.0": false} {
		m := machine(version)
		b := newBench(t, m)
		b.Orphans = []*clusterv1.Machine{m}
		_, err := b.take(t.Context(), "adopt")
		live := &clusterv1.Machine{}
		testenv.Must(t, b.API.Get(t.Context(), client.ObjectKeyFromObject(m), live))
		if got := metav1.IsControlledBy(live, b.KCP); got != want || (err == nil) != want || b.s.canCreate {
			t.Errorf("version %s: adopted %t, error %v, want %t", version, got, err, want)
		}
	}
}
