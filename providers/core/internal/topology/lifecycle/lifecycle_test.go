package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/lifecycle"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/upgrade"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

const (
	old  = "v1.30.0"
	next = "v1.31.0"
)

func withPending(annotation string) *clusterv1.Cluster {
	c := &clusterv1.Cluster{}
	if annotation != "" {
		c.Annotations = map[string]string{runtimev1.PendingHooksAnnotation: annotation}
	}
	return c
}

func TestPending(t *testing.T) {
	for reason, test := range map[string]struct {
		before string
		change func(*clusterv1.Cluster)
		want   string
	}{
		"the first": {"", func(c *clusterv1.Cluster) { lifecycle.MarkPending(c, lifecycle.AfterControlPlaneInitialized) }, "AfterControlPlaneInitialized"},
		"sorted, and once": {
			"AfterControlPlaneUpgrade", func(c *clusterv1.Cluster) {
				lifecycle.MarkPending(c, lifecycle.AfterControlPlaneUpgrade, lifecycle.AfterClusterUpgrade)
			}, "AfterClusterUpgrade,AfterControlPlaneUpgrade",
		},
		"one of two was called": {
			"AfterClusterUpgrade,AfterControlPlaneUpgrade", func(c *clusterv1.Cluster) { lifecycle.MarkCalled(c, lifecycle.AfterControlPlaneUpgrade) },
			"AfterClusterUpgrade",
		},
		"the last was called":          {"AfterClusterUpgrade", func(c *clusterv1.Cluster) { lifecycle.MarkCalled(c, lifecycle.AfterClusterUpgrade) }, ""},
		"a hook of another release":    {"AfterMoonrise", func(c *clusterv1.Cluster) { lifecycle.MarkPending(c, lifecycle.AfterClusterUpgrade) }, "AfterClusterUpgrade,AfterMoonrise"},
		"nothing changes":              {"AfterClusterUpgrade", func(c *clusterv1.Cluster) { lifecycle.MarkCalled(c); lifecycle.MarkPending(c) }, "AfterClusterUpgrade"},
		"no annotation appears either": {"", func(c *clusterv1.Cluster) { lifecycle.MarkCalled(c); lifecycle.MarkPending(c) }, ""},
	} {
		c := withPending(test.before)
		test.change(c)
		got, exists := c.Annotations[runtimev1.PendingHooksAnnotation]
		if got != test.want || exists != (test.want != "") {
			t.Errorf("%s: %q, want %q", reason, got, test.want)
		}
	}
}

func TestBeforeCreate(t *testing.T) {
	if _, due := lifecycle.BeforeCreate(&clusterv1.Cluster{}); !due {
		t.Error("a new Cluster: not due")
	}
	for reason, spec := range map[string]clusterv1.ClusterSpec{
		"creation began": {
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{Kind: "K", Name: "n"},
			ControlPlaneRef:   clusterv1.ContractVersionedObjectReference{Kind: "K", Name: "n"},
		},
		"a user set one of the references": {ControlPlaneRef: clusterv1.ContractVersionedObjectReference{Kind: "K", Name: "n"}},
	} {
		if _, due := lifecycle.BeforeCreate(&clusterv1.Cluster{Spec: spec}); due {
			t.Errorf("%s: due", reason)
		}
	}
}

func TestUpgrade(t *testing.T) {
	cp := func(version string) upgrade.ControlPlane { return upgrade.ControlPlane{Exists: true, Version: version} }
	workers := func(version string, change ...func(*upgrade.Workers)) []upgrade.Workers {
		w := upgrade.Workers{TopologyName: "md", Object: "c-md", Exists: true, Version: version}
		for _, f := range change {
			f(&w)
		}
		return []upgrade.Workers{w}
	}
	const all, both = "AfterClusterUpgrade,AfterControlPlaneUpgrade", "AfterClusterUpgrade,AfterWorkersUpgrade"
	for reason, test := range map[string]struct {
		pending string
		in      upgrade.Input
		want    []lifecycle.Call
	}{
		"nothing to upgrade": {"", upgrade.Input{ControlPlane: cp(next), MachineDeployments: workers(next)}, nil},
		"the upgrade starts": {"", upgrade.Input{ControlPlane: cp(old), MachineDeployments: workers(old)}, []lifecycle.Call{
			{Hook: lifecycle.BeforeClusterUpgrade, From: old, To: next}, {Hook: lifecycle.BeforeControlPlaneUpgrade, From: old, To: next},
		}},
		"the upgrade has started, and its first step is held": {
			"AfterClusterUpgrade", upgrade.Input{ControlPlane: cp(old), MachineDeployments: workers(old)},
			[]lifecycle.Call{{Hook: lifecycle.BeforeControlPlaneUpgrade, From: old, To: next}},
		},
		"workers are still being upgraded to the previous version": {
			"", upgrade.Input{ControlPlane: cp(old), MachineDeployments: workers(old, func(w *upgrade.Workers) { w.Upgrading = true })}, nil,
		},
		"the control plane is scaling": {"", upgrade.Input{ControlPlane: upgrade.ControlPlane{Exists: true, Version: old, Scaling: true}}, nil},
		"a new Cluster":                {"", upgrade.Input{}, nil},
		"the control plane is being upgraded": {
			all, upgrade.Input{ControlPlane: upgrade.ControlPlane{Exists: true, Version: next, Upgrading: true}, MachineDeployments: workers(old)}, nil,
		},
		"the control plane has been upgraded": {
			all, upgrade.Input{ControlPlane: cp(next), MachineDeployments: workers(old)},
			[]lifecycle.Call{{Hook: lifecycle.AfterControlPlaneUpgrade, To: next}, {Hook: lifecycle.BeforeWorkersUpgrade, From: old, To: next}},
		},
		"scaling does not matter then": {
			all, upgrade.Input{ControlPlane: upgrade.ControlPlane{Exists: true, Version: next, Scaling: true}, MachineDeployments: workers(old)},
			[]lifecycle.Call{{Hook: lifecycle.AfterControlPlaneUpgrade, To: next}},
		},
		"the workers come first": {
			"AfterClusterUpgrade", upgrade.Input{ControlPlane: cp(next), MachineDeployments: workers(old)},
			[]lifecycle.Call{{Hook: lifecycle.BeforeWorkersUpgrade, From: old, To: next}},
		},
		"others of them have started": {
			both, upgrade.Input{ControlPlane: cp(next), MachineDeployments: append(workers(next), workers(old)...)}, nil,
		},
		"some Machines are left": {
			both, upgrade.Input{ControlPlane: cp(next), MachineDeployments: workers(next, func(w *upgrade.Workers) { w.Upgrading = true })}, nil,
		},
		"an upgrade is deferred": {
			both, upgrade.Input{ControlPlane: cp(next), MachineDeployments: workers(old, func(w *upgrade.Workers) { w.Deferred = true })}, nil,
		},
		"all have been upgraded": {
			both, upgrade.Input{ControlPlane: cp(next), MachineDeployments: workers(next)},
			[]lifecycle.Call{{Hook: lifecycle.AfterWorkersUpgrade, To: next}, {Hook: lifecycle.AfterClusterUpgrade, To: next}},
		},
		"the hook of the control plane comes before that of the Cluster": {
			all, upgrade.Input{ControlPlane: cp(next)}, []lifecycle.Call{{Hook: lifecycle.AfterControlPlaneUpgrade, To: next}},
		},
	} {
		cluster := withPending(test.pending)
		test.in.Version = next
		plan := upgrade.Compute(test.in)
		var got []lifecycle.Call
		for _, due := range []func() (lifecycle.Call, bool){
			func() (lifecycle.Call, bool) { return lifecycle.AfterControlPlane(cluster, test.in, plan) },
			func() (lifecycle.Call, bool) { return lifecycle.BeforeUpgrade(cluster, plan) },
			func() (lifecycle.Call, bool) { return lifecycle.BeforeControlPlane(plan) },
			func() (lifecycle.Call, bool) { return lifecycle.BeforeWorkers(cluster, plan) },
		} {
			if call, is := due(); is {
				got = append(got, call)
			}
		}
		got = append(got, lifecycle.AfterUpgrade(cluster, plan)...)
		if diff := cmp.Diff(test.want, got, cmpopts.IgnoreFields(lifecycle.Call{}, "Remaining")); diff != "" {
			t.Errorf("%s:\n%s", reason, diff)
		}
	}
}

func TestInitialized(t *testing.T) {
	cluster := withPending("AfterControlPlaneInitialized")
	if got, due := lifecycle.Initialized(cluster); due {
		t.Errorf("not initialized: %v", got)
	}
	condition.Set(cluster, condition.True(clusterv1.ControlPlaneInitializedV1Beta1Condition))
	if got, due := lifecycle.Initialized(cluster); !due || got.Hook != lifecycle.AfterControlPlaneInitialized {
		t.Errorf("initialized: %v, %v", got, due)
	}
}

func TestOutcome(t *testing.T) {
	none := lifecycle.Outcome{}
	if none.Message() != "" || none.RetryAfter() != 0 || none.HoldsCreation() {
		t.Errorf("nothing blocks: %+v", none)
	}
	two := lifecycle.Outcome{Blocking: []lifecycle.Blocked{
		{Hook: lifecycle.AfterControlPlaneUpgrade, Answer: lifecycle.Answer{RetryAfter: time.Minute, Message: "add-ons", Extensions: []string{"a.x", "b.y"}}},
		{Hook: lifecycle.BeforeClusterUpgrade, Answer: lifecycle.Answer{RetryAfter: time.Second}},
	}}
	const want = `hook "AfterControlPlaneUpgrade" is blocking: add-ons (extension a.x, b.y); hook "BeforeClusterUpgrade" is blocking`
	if two.Message() != want || two.RetryAfter() != time.Second || two.HoldsCreation() {
		t.Errorf("%q, %s", two.Message(), two.RetryAfter())
	}
}
