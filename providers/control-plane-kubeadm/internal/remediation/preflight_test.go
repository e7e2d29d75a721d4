package remediation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/health"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/membership"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// failing returns the names of the checks that fail for Machine b.
func failing(state membership.State) []string {
	var names []string
	for _, c := range checks() {
		if len(c.Run(request{State: state, machine: state.Named("b")})) > 0 {
			names = append(names, c.Name)
		}
	}
	return names
}

// fails makes a condition of a Machine False.
func fails(m *snapshot.Machine, t clusterv1.ConditionType) {
	condition.Set(m, condition.False(t, clusterv1.ConditionSeverityError, "", ""))
}

func TestPreflight(t *testing.T) {
	external := bootstrapv1.ClusterConfiguration{Etcd: bootstrapv1.Etcd{External: bootstrapv1.ExternalEtcd{CAFile: "ca"}}}
	cases := []struct {
		reason  string
		given   func(*testing.T, *kcptest.World, *membership.State)
		want    []string
		message string
	}{
		{reason: "all checks pass", given: func(*testing.T, *kcptest.World, *membership.State) {}},
		{
			reason: "a replacement would have the old version", want: []string{"VersionPropagated"},
			message: "KubeadmControlPlane can't remediate while waiting for a version upgrade to v1.99.0 to be propagated from Cluster.spec.topology",
			given: func(_ *testing.T, w *kcptest.World, _ *membership.State) {
				w.Cluster.Spec.Topology = clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: "c"}, Version: "v1.99.0"}
				w.Cluster.Generation = 2
				w.Cluster.Status.Conditions = append(w.Cluster.Status.Conditions, metav1.Condition{
					Type: clusterv1.ClusterTopologyReconciledCondition, Status: metav1.ConditionTrue, ObservedGeneration: 1,
				})
			},
		},
		{
			reason: "a replacement cannot join without the only Machine", want: []string{"NotTheOnlyMachine", "HealthyMachineRemains"}, message: "The only Machine of a control plane cannot be replaced",
			given: func(_ *testing.T, w *kcptest.World, _ *membership.State) { w.Machines = w.Machines[1:2] },
		},
		{
			reason: "one Machine at a time", want: []string{"NoMachineDeleting"}, message: "Another Machine is being deleted",
			given: func(t *testing.T, w *kcptest.World, _ *membership.State) {
				w.Deleted(t, "c")
				w.Reload(t)
			},
		},
		{
			reason: "a Machine that is being provisioned may join etcd", want: []string{"NoMachineProvisioning"}, message: "Another Machine is being provisioned",
			given: func(_ *testing.T, w *kcptest.World, _ *membership.State) {
				w.Named("c").Status.NodeRef = clusterv1.MachineNodeReference{}
			},
		},
		{
			reason: "a Machine that has failed before it had a Node does not count", given: func(_ *testing.T, w *kcptest.World, _ *membership.State) {
				w.Named("c").Status.NodeRef = clusterv1.MachineNodeReference{}
				condition.Set(w.Named("c"), condition.False(clusterv1.MachineHealthCheckSucceededV1Beta1Condition, clusterv1.ConditionSeverityWarning, "", ""))
			},
		},
		{
			reason: "the etcd members are unreachable", want: []string{"WorkloadClusterReachable"}, message: "The workload cluster is unreachable",
			given: func(_ *testing.T, _ *kcptest.World, state *membership.State) { state.Observed = nil },
		},
		{
			reason: "the only API server must not be deleted", want: []string{"HealthyMachineRemains"}, message: "No other Machine has healthy control plane components",
			given: func(_ *testing.T, w *kcptest.World, _ *membership.State) {
				fails(w.Named("a"), controlplanev1.MachineAPIServerPodHealthyV1Beta1Condition)
				fails(w.Named("c"), controlplanev1.MachineSchedulerPodHealthyV1Beta1Condition)
			},
		},
		{
			reason: "one healthy Machine is enough", given: func(_ *testing.T, w *kcptest.World, _ *membership.State) {
				fails(w.Named("a"), controlplanev1.MachineAPIServerPodHealthyV1Beta1Condition)
			},
		},
		{
			reason: "the members of an external etcd do not matter", given: func(_ *testing.T, w *kcptest.World, state *membership.State) {
				w.KCP.Spec.KubeadmConfigSpec.ClusterConfiguration, state.Observed = external, nil
			},
		},
		{
			reason: "before the cluster is initialized there is nothing to lose", given: func(_ *testing.T, w *kcptest.World, state *membership.State) {
				w.KCP.Status.Initialization.ControlPlaneInitialized, w.Machines, state.Observed = ptr.To(false), w.Machines[1:2], nil
			},
		},
		{
			reason: "the first check that fails is reported", want: []string{"NotTheOnlyMachine", "WorkloadClusterReachable", "HealthyMachineRemains"}, message: "The only Machine of a control plane cannot be replaced",
			given: func(_ *testing.T, w *kcptest.World, state *membership.State) {
				w.Machines, state.Observed = w.Machines[1:2], nil
			},
		},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			w, f := kcptest.Three(t)
			observed, err := health.Observe(t.Context(), w.ControlPlane, f)
			if err != nil {
				t.Fatal(err)
			}
			state := membership.State{ControlPlane: w.ControlPlane, Workload: f, Observed: observed}
			tc.given(t, w, &state)
			if diff := cmp.Diff(tc.want, failing(state)); diff != "" {
				t.Errorf("failing checks (-want +got):\n%s", diff)
			}
			message := ""
			if failure := firstFailure(state, state.Named("b"), nil, object.Now()); failure != nil {
				message = failure.Reason
			}
			if message != tc.message {
				t.Errorf("message %q, want %q", message, tc.message)
			}
		})
	}
}
