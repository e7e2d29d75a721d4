package scale

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/health"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/membership"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/step/steptest"
)

func TestProblemsOfAMachine(t *testing.T) {
	cases := []struct {
		reason string
		edit   func(*snapshot.Machine)
		want   []string
		broken bool
	}{
		{reason: "it is healthy", edit: func(*snapshot.Machine) {}},
		{
			reason: "without a Node nothing else is known", want: []string{"it has no Node"},
			edit: func(m *snapshot.Machine) {
				m.Status.NodeRef, m.Status.Conditions = clusterv1.MachineNodeReference{}, nil
			},
		},
		{
			reason: "an unknown condition is a problem, but the Machine is not broken", want: []string{"EtcdPodHealthy is unknown"},
			edit: func(m *snapshot.Machine) { condition.Delete(m, controlplanev1.MachineEtcdPodHealthyV1Beta1Condition) },
		},
		{
			reason: "an unhealthy component is reported with its reason", want: []string{"EtcdPodHealthy is False (PodMissing)"}, broken: true,
			edit: func(m *snapshot.Machine) {
				condition.Set(m, condition.False(controlplanev1.MachineEtcdPodHealthyV1Beta1Condition, clusterv1.ConditionSeverityError, controlplanev1.PodMissingV1Beta1Reason, ""))
			},
		},
		{
			reason: "a component of unknown state is a problem, but the Machine is not broken", want: []string{"EtcdPodHealthy is Unknown (PodInspectionFailed)"},
			edit: func(m *snapshot.Machine) {
				condition.Set(m, condition.Unknown(controlplanev1.MachineEtcdPodHealthyV1Beta1Condition, controlplanev1.PodInspectionFailedV1Beta1Reason, ""))
			},
		},
		{
			reason: "a health check marked it", broken: true,
			edit: func(m *snapshot.Machine) {
				condition.Set(m, condition.False(clusterv1.MachineHealthCheckSucceededV1Beta1Condition, clusterv1.ConditionSeverityWarning, "", ""))
			},
		},
		{
			reason: "it failed before it had a Node", want: []string{"it has no Node"}, broken: true,
			edit: func(m *snapshot.Machine) {
				m.Status.NodeRef = clusterv1.MachineNodeReference{}
				m.SetV1Beta1Status(clusterv1.MachineV1Beta1DeprecatedStatus{FailureMessage: ptr.To("no quota")})
			},
		},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			w, _ := kcptest.Three(t)
			m := w.Machines[0]
			tc.edit(m)
			got := machine(m, true)
			if diff := cmp.Diff(tc.want, got.Problems); diff != "" || got.Broken != tc.broken {
				t.Errorf("broken %t, problems (-want +got):\n%s", got.Broken, diff)
			}
		})
	}
}

// A change is announced once, when it begins.
func TestPlan(t *testing.T) {
	cases := []struct {
		reason string
		given  func(*controlplanev1.KubeadmControlPlane)
		want   Action
		stated *clusterv1.Condition
	}{
		{
			reason: "as many Machines as desired", want: Action{Kind: Nothing},
			given: func(k *controlplanev1.KubeadmControlPlane) { k.Spec.Replicas = ptr.To[int32](3) },
		},
		{
			reason: "two too many", given: func(*controlplanev1.KubeadmControlPlane) {},
			want: Action{Kind: ScaleDown, Machine: "a", Begins: true},
			stated: ptr.To(condition.False(controlplanev1.ResizedV1Beta1Condition, clusterv1.ConditionSeverityWarning, controlplanev1.ScalingDownV1Beta1Reason,
				"Scaling down control plane to 1 replicas (actual 3)")),
		},
		{
			reason: "the change has begun before", want: Action{Kind: ScaleDown, Machine: "a"},
			given: func(k *controlplanev1.KubeadmControlPlane) {
				condition.Set(k, condition.False(controlplanev1.ResizedV1Beta1Condition, clusterv1.ConditionSeverityWarning, controlplanev1.ScalingDownV1Beta1Reason, ""))
			},
			stated: ptr.To(condition.False(controlplanev1.ResizedV1Beta1Condition, clusterv1.ConditionSeverityWarning, controlplanev1.ScalingDownV1Beta1Reason,
				"Scaling down control plane to 1 replicas (actual 3)")),
		},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			w, f := kcptest.Three(t)
			tc.given(w.KCP)
			observed, err := health.Observe(t.Context(), w.ControlPlane, f)
			if err != nil {
				t.Fatal(err)
			}
			var got Action
			_, err = steptest.Run(t.Context(), w.KCP, membership.State{ControlPlane: w.ControlPlane, Workload: f, Observed: observed},
				step.Do("plan", func(_ context.Context, state membership.State) (result step.Result, err error) {
					got, result = Plan(state, "")
					return result, nil
				}))
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("action (-want +got):\n%s, error %v", diff, err)
			}
			if diff := cmp.Diff(tc.stated, condition.Get(w.KCP, controlplanev1.ResizedV1Beta1Condition)); diff != "" {
				t.Errorf("Resized (-want +got):\n%s", diff)
			}
		})
	}
}
