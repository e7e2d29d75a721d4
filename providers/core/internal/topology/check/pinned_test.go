package check

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// pinnedTopology returns a topology with MachineDeployments md-0, md-1 and so on with versions of their own, empty for none.
func pinnedTopology(version string, groups ...string) *clusterv1.Topology {
	t := &clusterv1.Topology{Version: version}
	for i, v := range groups {
		t.Workers.MachineDeployments = append(t.Workers.MachineDeployments, clusterv1.MachineDeploymentTopology{Name: fmt.Sprintf("md-%d", i), Version: v})
	}
	return t
}

func TestPinnedWorkers(t *testing.T) {
	topology := pinnedTopology("v1.30.0", "", "v1.29.0")
	topology.Workers.MachinePools = []clusterv1.MachinePoolTopology{{Name: "md-0", Version: "v1.28.0"}, {Name: "mp"}}
	var got []string
	for _, p := range PinnedWorkers(topology, field.NewPath("topology")) {
		got = append(got, fmt.Sprintf("%s %s at %s", p, p.Version, p.Path))
	}
	want := []string{
		"MachineDeployment md-1 v1.29.0 at topology.workers.machineDeployments[1].version",
		"MachinePool md-0 v1.28.0 at topology.workers.machinePools[0].version",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestBelow(t *testing.T) {
	for _, tt := range []struct {
		reason       string
		old, current *clusterv1.Topology
		want         []string
	}{
		{reason: "the same version", old: &clusterv1.Topology{}, current: pinnedTopology("v1.30.0", "v1.30.0")},
		{reason: "a higher patch version", old: &clusterv1.Topology{}, current: pinnedTopology("v1.30.0", "v1.30.1"),
			want: []string{`workers.machineDeployments[0].version: Invalid value: "v1.30.1": must not be higher than v1.30.0, the version of the topology`}},
		{reason: "three minor versions are the limit", old: &clusterv1.Topology{}, current: pinnedTopology("v1.33.0", "v1.30.9")},
		{reason: "four are too many", old: pinnedTopology("v1.33.0", "v1.29.0"), current: pinnedTopology("v1.33.0", "v1.29.1"),
			want: []string{`workers.machineDeployments[0].version: Invalid value: "v1.29.1": must be v1.30 or later, because kubelets may be at most 3 minor versions older than v1.33.0, the version of the topology`}},
		{reason: "the version of the topology leaves a group behind", old: pinnedTopology("v1.33.0", "v1.33.0", "v1.30.0"), current: pinnedTopology("v1.34.0", "v1.33.0", "v1.30.0"),
			want: []string{`version: Invalid value: "v1.34.0": MachineDeployment md-1 is pinned to v1.30.0, and kubelets may be at most 3 minor versions older: first raise workers.machineDeployments[1].version to v1.31 or later, or remove it`}},
		{reason: "before v1.28, two minor versions are the limit", old: pinnedTopology("v1.26.0", "v1.24.0"), current: pinnedTopology("v1.27.0", "v1.24.0"),
			want: []string{`version: Invalid value: "v1.27.0": MachineDeployment md-0 is pinned to v1.24.0, and kubelets may be at most 2 minor versions older: first raise workers.machineDeployments[0].version to v1.25 or later, or remove it`}},
		{reason: "v1.28 is the first with three", old: pinnedTopology("v1.27.0", "v1.25.0"), current: pinnedTopology("v1.28.0", "v1.25.0")},
		{reason: "a group that is behind already does not prevent other changes", old: pinnedTopology("v1.34.0", "v1.30.0"), current: pinnedTopology("v1.34.0", "v1.30.0")},
		{reason: "a lower version of the topology", old: pinnedTopology("v1.34.0", "v1.34.0"), current: pinnedTopology("v1.33.0", "v1.34.0"),
			want: []string{`workers.machineDeployments[0].version: Invalid value: "v1.34.0": must not be higher than v1.33.0, the version of the topology`}},
	} {
		var got []string
		for _, p := range PinnedWorkers(tt.current, nil) {
			for _, err := range p.Below(tt.old, tt.current, nil) {
				got = append(got, err.Error())
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tt.reason, diff)
		}
	}
}

func TestRaised(t *testing.T) {
	p := Pinned{Version: "v1.30.1", Path: field.NewPath("version")}
	for _, was := range []string{"v1.29.9", "v1.30.0", "v1.30.1"} {
		if errs := p.Raised(was); len(errs) > 0 {
			t.Errorf("%s to v1.30.1: %v", was, errs)
		}
	}
	const want = `version: Invalid value: "v1.30.1": must not be lower than the previous version v1.30.2`
	if errs := p.Raised("v1.30.2"); len(errs) != 1 || errs[0].Error() != want {
		t.Errorf("got %v, want %s", errs, want)
	}
}
