package replicas

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestVersions(t *testing.T) {
	of := func(spec, kubelet string) *clusterv1.Machine {
		m := machine("m")
		m.Spec.Version = spec
		if kubelet != "" {
			m.Status.NodeInfo = &corev1.NodeSystemInfo{KubeletVersion: kubelet}
		}
		return m
	}
	got := VersionsOf([]*clusterv1.Machine{
		of("v1.10.0", ""), of("v1.10.0", "v1.9.1"), of("v1.10.0", "v1.10.0"), of("", ""), of("", "v1.9.1"),
	}).Status()
	want := []clusterv1.StatusVersion{{Version: "v1.9.1", Replicas: ptr.To[int32](2)}, {Version: "v1.10.0", Replicas: ptr.To[int32](2)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("versions are those of kubelets, or else of specs, in their order (-want +got):\n%s", diff)
	}
	if got := VersionsOf(nil).Status(); got != nil {
		t.Errorf("no Machines have the versions %v", got)
	}
	many := Versions{}
	for i := range 40 {
		many[fmt.Sprintf("v1.%d.0", i)] = 1
	}
	if got := many.Status(); len(got) != 32 || got[31].Version != "v1.31.0" {
		t.Errorf("of 40 versions, %d are listed, up to %v", len(got), got[len(got)-1].Version)
	}
}
