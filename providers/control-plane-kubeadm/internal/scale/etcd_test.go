package scale

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/health"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/membership"
	"sigs.k8s.io/cluster-api/providers/internal/preflight"
)

func TestOldEtcd(t *testing.T) {
	const first = ": first set spec.kubeadmConfigSpec.clusterConfiguration.etcd.local.imageTag to a tag of 3.5 from 3.5.20 on, such as 3.5.24-0, " +
		"until all control plane Machines run it"
	cases := []struct {
		reason       string
		version, tag string
		external     bool
		running      map[string]string
		want         string
	}{
		{reason: "etcd 3.6 by default", version: "v1.34.2", running: map[string]string{"a": "3.5.15", "b": "3.5.24", "c": "3.5.19"},
			want: "etcd 3.6 cannot join etcd 3.5.15 of Machine a, 3.5.19 of Machine c" + first},
		{reason: "etcd 3.6 by its tag", version: "v1.33.4", tag: "3.6.5-0", running: map[string]string{"a": "3.5.15"},
			want: "etcd 3.6 cannot join etcd 3.5.15 of Machine a" + first},
		{reason: "a build of an old version", version: "v1.34.2", running: map[string]string{"a": "3.5.15+vendor.1"},
			want: "etcd 3.6 cannot join etcd 3.5.15 of Machine a" + first},
		{reason: "all can be upgraded", version: "v1.34.2", running: map[string]string{"a": "3.5.20", "b": "3.5.24", "c": "3.6.5"}},
		{reason: "the tag is one of 3.5", version: "v1.34.2", tag: "3.5.24-0", running: map[string]string{"a": "3.5.15"}},
		{reason: "the default is 3.5", version: "v1.33.4", running: map[string]string{"a": "3.5.15"}},
		{reason: "the tag is a custom one", version: "v1.34.2", tag: "ours", running: map[string]string{"a": "3.5.15"}},
		{reason: "members do not report their versions", version: "v1.34.2", running: map[string]string{"a": "not a version"}},
		{reason: "external etcd", version: "v1.34.2", external: true, running: map[string]string{"a": "3.5.15"}},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			w, f := kcptest.Three(t)
			w.KCP.Spec.Version = tc.version
			config := &w.KCP.Spec.KubeadmConfigSpec.ClusterConfiguration
			config.Etcd.Local.ImageTag = tc.tag
			if tc.external {
				config.Etcd.External = bootstrapv1.ExternalEtcd{Endpoints: []string{"https://e"}}
			}
			f.Versions = tc.running
			observed, err := health.Observe(t.Context(), w.ControlPlane, f)
			if err != nil {
				t.Fatal(err)
			}
			got := input(membership.State{ControlPlane: w.ControlPlane, Workload: f, Observed: observed}, "").OldEtcd
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("why etcd cannot join (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEtcdUpgradable(t *testing.T) {
	const old = "etcd is old"
	blocked := []preflight.Failure{{Check: EtcdUpgradable, Reason: old}}
	cases := []struct {
		reason   string
		machines string
		desired  int
		surge    int
		want     Action
	}{
		{reason: "no Machine joins during a rollout", machines: "a,outdated b,outdated c,outdated", desired: 3, surge: 1,
			want: Action{Kind: ScaleUp, Rollout: true, Blocked: blocked}},
		{reason: "none joins for one that was remediated", machines: "a b", desired: 3, want: Action{Kind: ScaleUp, Blocked: blocked}},
		{reason: "a rollout without surge deletes none", machines: "a,outdated b,outdated c,outdated", desired: 3,
			want: Action{Kind: ScaleDown, Rollout: true, Machine: "a", Blocked: blocked}},
		{reason: "old Machines can be deleted if there are more than desired", machines: "a,outdated b,outdated c,outdated d", desired: 3, surge: 1,
			want: Action{Kind: ScaleDown, Rollout: true, Machine: "a"}},
		{reason: "scale down", machines: "a b c", desired: 1, want: Action{Kind: ScaleDown, Machine: "a"}},
		{reason: "nothing to do", machines: "a b c", desired: 3, want: Action{Kind: Nothing}},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			in := Input{Desired: tc.desired, MaxSurge: tc.surge, Initialized: true, Machines: parse(t, tc.machines), OldEtcd: old}
			if diff := cmp.Diff(tc.want, Next(in)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
