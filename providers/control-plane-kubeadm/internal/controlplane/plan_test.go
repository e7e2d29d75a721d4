package controlplane

import (
	"strings"
	"testing"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/scale"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// A rollout to etcd 3.6 creates no Machine before all members can be upgraded, and both forms of conditions report why.
func TestARolloutWaitsForTheUpgradeOfEtcd(t *testing.T) {
	const why = "etcd 3.6 cannot join etcd 3.5.15 of Machine a: first set spec.kubeadmConfigSpec.clusterConfiguration.etcd.local.imageTag " +
		"to a tag of 3.5 from 3.5.20 on, such as 3.5.24-0, until all control plane Machines run it"
	tests := []struct {
		reason  string
		running string
		waits   bool
	}{
		{reason: "a member cannot be upgraded", running: "3.5.15", waits: true},
		{reason: "all members can", running: "3.5.24"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			b, f := three(t)
			*b.KCP.Spec.Replicas = 3
			b.KCP.Spec.Version = "v1.34.2"
			f.Versions = map[string]string{"a": tt.running, "b": "3.5.24", "c": "3.5.24"}
			reload(t, b, f)
			for _, m := range b.Machines {
				m.Outdated = []string{"Version v1.33.4, v1.34.2 required"}
				report.Set(m.Machine, m.Generation, object.Now(),
					report.False(clusterv1.MachineUpToDateCondition, clusterv1.NotUpToDateReason, "* Version v1.33.4, v1.34.2 required"))
			}
			_, err := b.take(t.Context(), "plan")
			testenv.Must(t, err)
			if blocked := len(b.s.action.Blocked) > 0; blocked != tt.waits || b.s.action.Kind != scale.ScaleUp {
				t.Errorf("action %+v, want one that is blocked: %t", b.s.action, tt.waits)
			}
			if tt.waits {
				_, err = b.take(t.Context(), "scale")
				testenv.Must(t, err)
				if _, all := b.Count(t); all != 3 {
					t.Errorf("%d Machines, want no new one", all)
				}
			}
			for form, message := range map[string]string{
				"v1beta1": condition.Get(b.KCP, controlplanev1.MachinesSpecUpToDateV1Beta1Condition).Message,
				"v1beta2": b.s.rollingOutReport(b.s.all()).Message,
			} {
				if strings.HasSuffix(message, why) != tt.waits {
					t.Errorf("message of %s: %q, want %q at its end: %t", form, message, why, tt.waits)
				}
			}
		})
	}
}
