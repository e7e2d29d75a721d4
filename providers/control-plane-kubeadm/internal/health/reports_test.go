package health

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/report"
)

func TestNodeReports(t *testing.T) {
	const kind = "NodeKubeadmLabelsAndTaintsSet"
	mark := corev1.Taint{Key: snapshot.NodeRole, Effect: corev1.TaintEffectNoSchedule}
	observe := func(taints ...corev1.Taint) *Observation {
		return &Observation{Nodes: map[string]*corev1.Node{"n": {Spec: corev1.NodeSpec{Taints: taints}}}}
	}
	joined := func(taints *[]corev1.Taint) *bootstrapv1.KubeadmConfig {
		join := bootstrapv1.JoinConfiguration{NodeRegistration: bootstrapv1.NodeRegistrationOptions{Taints: taints}}
		return &bootstrapv1.KubeadmConfig{Spec: bootstrapv1.KubeadmConfigSpec{JoinConfiguration: join}}
	}
	set := []metav1.Condition{report.True(kind, "Set", "")}
	missing := []metav1.Condition{report.False(kind, "NotSet", "Node n does not have taint node-role.kubernetes.io/control-plane:NoSchedule")}
	deleting := metav1.Now()
	for _, tc := range []struct {
		reason   string
		node     string
		deleted  *metav1.Time
		config   *bootstrapv1.KubeadmConfig
		observed *Observation
		want     []metav1.Condition
	}{
		{"there is no Node yet", "", nil, joined(nil), observe(mark), nil},
		{"marked by kubeadm", "n", nil, joined(nil), observe(mark), set},
		{"the taint was removed", "n", nil, joined(nil), observe(), missing},
		{"another effect is another taint", "n", nil, joined(nil), observe(corev1.Taint{Key: snapshot.NodeRole, Effect: corev1.TaintEffectNoExecute}), missing},
		{"the configuration has no taints", "n", nil, joined(&[]corev1.Taint{}), observe(), set},
		{"it lists the taint", "n", nil, joined(&[]corev1.Taint{mark}), observe(), missing},
		{"what kubeadm did is unknown", "n", nil, nil, observe(), set},
		{"without the label, Nodes are not observed", "n", nil, joined(nil), &Observation{},
			[]metav1.Condition{report.False(kind, "NotSet", "Node n with label node-role.kubernetes.io/control-plane does not exist")}},
		{"nothing is observed", "n", nil, joined(nil), nil, []metav1.Condition{report.Unknown(kind, "InspectionFailed", "The workload cluster is unreachable")}},
		{"the Machine is being deleted", "n", &deleting, joined(nil), observe(), []metav1.Condition{report.False(kind, "Deleting", "Machine is deleting")}},
	} {
		m := &snapshot.Machine{Machine: &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: tc.deleted}}, Config: tc.config}
		if tc.node != "" {
			m.Status.NodeRef = clusterv1.MachineNodeReference{Name: tc.node}
		}
		if diff := cmp.Diff(tc.want, NodeReports(m, tc.observed)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
	}
}
