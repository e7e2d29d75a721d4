package machinepool

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/bounds"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func TestPhase(t *testing.T) {
	data := func(p *clusterv1.MachinePool) { p.Status.Initialization.BootstrapDataSecretCreated = ptr.To(true) }
	infra := func(p *clusterv1.MachinePool) { p.Status.Initialization.InfrastructureProvisioned = ptr.To(true) }
	count := func(desired, ready int32) func(*clusterv1.MachinePool) {
		return func(p *clusterv1.MachinePool) {
			p.Spec.Replicas = &desired
			p.SetV1Beta1Status(clusterv1.MachinePoolV1Beta1DeprecatedStatus{ReadyReplicas: &ready})
		}
	}
	autoscaler := func(value string) func(*clusterv1.MachinePool) {
		return func(p *clusterv1.MachinePool) {
			p.Annotations = map[string]string{clusterv1.ReplicasManagedByAnnotation: value}
		}
	}
	failed := func(p *clusterv1.MachinePool) {
		older := p.GetV1Beta1Status()
		older.FailureMessage = ptr.To("no")
		p.SetV1Beta1Status(older)
	}
	for name, tc := range map[string]struct {
		reason string
		pool   *clusterv1.MachinePool
		want   clusterv1.MachinePoolPhase
	}{
		"Pending":      {"there is no bootstrap data", pool(), "Pending"},
		"Provisioning": {"there is", pool(data), "Provisioning"},
		"Provisioned":  {"a machine has joined before the infrastructure is ready", pool(data, withNodes("a")), "Provisioned"},
		"Running":      {"all are ready", pool(data, infra, count(2, 2)), "Running"},
		"Empty":        {"none are desired", pool(data, infra, count(0, 0)), "Running"},
		"ScalingUp":    {"too few are ready", pool(data, infra, count(2, 1)), "ScalingUp"},
		"Default":      {"one is desired by default", pool(data, infra), "ScalingUp"},
		"ScalingDown":  {"too many are ready", pool(data, infra, count(1, 2)), "ScalingDown"},
		"Scaling":      {"an autoscaler is at work", pool(data, infra, count(2, 1), autoscaler("")), "Scaling"},
		"ScalingMore":  {"in either direction", pool(data, infra, count(1, 2), autoscaler("karpenter")), "Scaling"},
		"NotScaling":   {"false means that there is none", pool(data, infra, count(1, 2), autoscaler("false")), "ScalingDown"},
		"Scaled":       {"the autoscaler is done", pool(data, infra, count(2, 2), autoscaler("")), "Running"},
		"Failed":       {"a failure is terminal", pool(data, infra, count(1, 1), failed), "Failed"},
		"Deleting":     {"a failed pool can be deleted", pool(failed, object.Deleting), "Deleting"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scope{pool: tc.pool}
			if _, err := phase(t.Context(), s); err != nil || s.pool.Status.GetTypedPhase() != tc.want {
				t.Errorf("%s: phase = %s, err = %v, want %s", tc.reason, s.pool.Status.Phase, err, tc.want)
			}
		})
	}
}

// TestBounds truncates the texts of a hostile provider.
func TestBounds(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	p := pool(func(p *clusterv1.MachinePool) {
		p.SetV1Beta1Status(clusterv1.MachinePoolV1Beta1DeprecatedStatus{FailureReason: ptr.To(long), FailureMessage: ptr.To(long)})
		condition.Set(p, condition.False(clusterv1.InfrastructureReadyV1Beta1Condition, "Error", long, "%s", long))
	})
	if _, err := bound(t.Context(), &scope{pool: p}); err != nil {
		t.Fatal(err)
	}
	c := condition.Get(p, clusterv1.InfrastructureReadyV1Beta1Condition)
	older := p.GetV1Beta1Status()
	got := []int{len(*older.FailureReason), len(*older.FailureMessage), len(c.Reason), len(c.Message)}
	if diff := cmp.Diff([]int{bounds.Token, bounds.Message, bounds.Token, bounds.Message}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
