package machines

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

func gateTypes(m *clusterv1.Machine) string {
	var types []string
	for _, gate := range m.Spec.ReadinessGates {
		types = append(types, gate.ConditionType)
	}
	return strings.Join(types, " ")
}

// components are the gates that every Machine has in v1.14, in this order.
const components = "NodeKubeadmLabelsAndTaintsSet APIServerPodHealthy ControllerManagerPodHealthy SchedulerPodHealthy"

func TestReadinessGates(t *testing.T) {
	tests := []struct {
		reason   string
		template []clusterv1.MachineReadinessGate
		external bool
		want     string
	}{
		{reason: "components and the etcd member", want: components + " EtcdPodHealthy EtcdMemberHealthy"},
		{reason: "no Machine has a member of an external etcd", external: true, want: components},
		{
			reason: "gates of the template follow, each once", external: true,
			template: []clusterv1.MachineReadinessGate{{ConditionType: "SchedulerPodHealthy"}, {ConditionType: "example.com/Checked"}},
			want:     components + " example.com/Checked",
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			b := kcptest.New(t)
			b.KCP.Spec.MachineTemplate.Spec.ReadinessGates = tt.template
			if tt.external {
				b.KCP.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External = bootstrapv1.ExternalEtcd{Endpoints: []string{"https://e:2379"}}
			}
			infrastructure := &unstructured.Unstructured{}
			infrastructure.SetName("new")
			m, err := newMachine(t.Context(), b.ControlPlane, "new", infrastructure, "")
			testenv.Must(t, err)
			if got := gateTypes(m); got != tt.want {
				t.Errorf("gates %q, want %q", got, tt.want)
			}
		})
	}
}

// Existing Machines get the gates with one write, and do not become outdated by it. Gates that the template no longer has are removed.
func TestGatesOfExistingMachines(t *testing.T) {
	b, _ := kcptest.Three(t)
	rounds := []struct {
		reason, want string
		template     []clusterv1.MachineReadinessGate
		writes       []string
	}{
		{"the template has a gate", "example.com/Checked", []clusterv1.MachineReadinessGate{{ConditionType: "example.com/Checked"}},
			[]string{"patch Machine a", "patch Machine b", "patch Machine c"}},
		{"nothing has changed", "example.com/Checked", []clusterv1.MachineReadinessGate{{ConditionType: "example.com/Checked"}}, nil},
		{"the template has no gate", "EtcdMemberHealthy", nil, []string{"patch Machine a", "patch Machine b", "patch Machine c"}},
	}
	for _, r := range rounds {
		b.Reload(t)
		b.KCP.Spec.MachineTemplate.Spec.ReadinessGates = r.template
		b.API.Writes = nil
		_, err := manager(b).Propagate(t.Context(), b.ControlPlane)
		testenv.Must(t, err)
		if !slices.Equal(b.API.Writes, r.writes) {
			t.Errorf("%s: writes %q, want %q", r.reason, b.API.Writes, r.writes)
		}
		for _, m := range b.Machines {
			if got := gateTypes(m.Machine); !strings.HasSuffix(got, r.want) || len(m.Outdated) > 0 {
				t.Errorf("%s: Machine %s has the gates %q, outdated: %q", r.reason, m.Name, got, m.Outdated)
			}
		}
	}
}
