package claim

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/poolref"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
)

func TestReports(t *testing.T) {
	no := func(reason string) *clusterv1.Condition {
		c := condition.False("Ready", clusterv1.ConditionSeverityWarning, reason, "why")
		return &c
	}
	yes := condition.True("Ready")
	for _, tt := range []struct {
		reason string
		older  *clusterv1.Condition
		want   metav1.Condition
	}{
		{"it was not reconciled yet", nil, report.None("Ready")},
		{"it has an address", &yes, report.True("Ready", "Ready", "")},
		{"the pool has no address left", no("PoolExhausted"), report.False("Ready", "PoolExhausted", "why")},
		{"the pool does not exist", no("PoolNotReady"), report.False("Ready", "PoolNotReady", "why")},
		{"the pool serves other claims first", no("PoolBusy"), report.False("Ready", "PoolNotReady", "why")},
		{"the address cannot be created", no("AllocationFailed"), report.False("Ready", "AllocationFailed", "why")},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			claim := &ipamv1.IPAddressClaim{}
			if tt.older != nil {
				condition.Set(claim, *tt.older)
			}
			if diff := cmp.Diff([]metav1.Condition{tt.want}, reports(&scope{claim: claim, key: poolref.Key{Kind: "InClusterIPPool"}})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if got := reports(&scope{claim: &ipamv1.IPAddressClaim{}}); len(got) > 0 {
		t.Errorf("a claim of another provider has conditions: %v", got)
	}
}
