package machine

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func healthy(n *corev1.Node) {
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	n.Status.NodeInfo.KubeletVersion = "v1.30.0"
}

func unresponsive(n *corev1.Node) {
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
}

func TestNode(t *testing.T) {
	state := func(c clusterv1.Condition) clusterv1.Conditions { return clusterv1.Conditions{c} }
	const kind = clusterv1.MachineNodeHealthyV1Beta1Condition
	provisioning := func(message string) clusterv1.Conditions {
		return state(condition.False(kind, clusterv1.ConditionSeverityWarning, clusterv1.NodeProvisioningV1Beta1Reason, "%s", message))
	}
	isHealthy := state(condition.True(kind))
	known := clusterv1.MachineNodeReference{Name: "node-1"}
	info := &corev1.NodeSystemInfo{KubeletVersion: "v1.30.0"}
	wasHealthy := func(m *clusterv1.Machine) { condition.Set(m, condition.True(kind)) }
	away := fmt.Errorf("%w: refused", remote.ErrNotConnected)
	cases := map[string]struct {
		reason  string
		machine *clusterv1.Machine
		cluster *clusterv1.Cluster
		nodes   []*corev1.Node
		away    error
		want    clusterv1.MachineStatus
		waits   bool
		failed  bool
	}{
		"NoProviderID": {reason: "the Node cannot be found yet", machine: machine(), cluster: build.Cluster(object.Initialized),
			want: clusterv1.MachineStatus{Deprecated: older(state(condition.False(kind, clusterv1.ConditionSeverityInfo, clusterv1.WaitingForNodeRefV1Beta1Reason, "")))}},
		"WorkerBeforeControlPlane": {reason: "a worker cannot join before the control plane is initialized", machine: machine(withProviderID), cluster: build.Cluster(),
			away: fmt.Errorf("unexpected connection"), want: clusterv1.MachineStatus{Deprecated: older(provisioning("Waiting for the control plane to be initialized"))}, waits: true},
		"FirstControlPlane": {reason: "the first control plane Machine joins before the control plane is initialized", machine: machine(withProviderID, object.ControlPlane), cluster: build.Cluster(),
			nodes: []*corev1.Node{node(healthy)}, want: clusterv1.MachineStatus{NodeRef: known, NodeInfo: info, Deprecated: older(isHealthy)}},
		"NotConnected": {reason: "without a connection, the Node is being provisioned", machine: machine(withProviderID), cluster: build.Cluster(object.Initialized), away: away,
			want: clusterv1.MachineStatus{Deprecated: older(provisioning(""))}, waits: true},
		"ConnectionLost": {reason: "the last observed health is kept", machine: machine(withNode, wasHealthy), cluster: build.Cluster(object.Initialized), away: away,
			want: clusterv1.MachineStatus{NodeRef: known, Deprecated: older(isHealthy)}, waits: true},
		"NotFound": {reason: "the Node has not joined", machine: machine(withProviderID), cluster: build.Cluster(object.Initialized), want: clusterv1.MachineStatus{Deprecated: older(provisioning("Waiting for a Node with provider ID " + id))}, waits: true},
		"Gone": {reason: "the Node no longer exists", machine: machine(withNode, wasHealthy), cluster: build.Cluster(object.Initialized), failed: true,
			want: clusterv1.MachineStatus{NodeRef: known, Deprecated: older(state(condition.False(kind, clusterv1.ConditionSeverityError, clusterv1.NodeNotFoundV1Beta1Reason, "Node node-1 with provider ID test:///node-1 no longer exists: delete the Machine to replace it")))}},
		"Twice": {reason: "two Nodes have the provider ID", machine: machine(withProviderID), cluster: build.Cluster(object.Initialized), failed: true,
			nodes: []*corev1.Node{node(), node(func(n *corev1.Node) { n.Name = "node-2" })},
			want:  clusterv1.MachineStatus{Deprecated: older(state(condition.Unknown(kind, clusterv1.NodeInspectionFailedV1Beta1Reason, "Failed to get the Node for this Machine by ProviderID")))}},
		"KeepsReference": {reason: "an existing nodeRef is kept", machine: machine(withNode), cluster: build.Cluster(object.Initialized), nodes: []*corev1.Node{node(healthy)},
			want: clusterv1.MachineStatus{NodeRef: known, NodeInfo: info, Deprecated: older(isHealthy)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, infraMachine(nil))
			w.workload.Err = tc.away
			for _, n := range tc.nodes {
				testenv.Must(t, w.workload.Client.Create(t.Context(), n))
			}
			r, err := w.step(t, "node", &scope{machine: tc.machine, cluster: tc.cluster})
			if (err != nil) != tc.failed || r.Ends() != tc.waits {
				t.Errorf("%s: waits for %q, err = %v", tc.reason, r.Waiting(), err)
			}
			if diff := cmp.Diff(tc.want, tc.machine.Status); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNodeHealth(t *testing.T) {
	type states map[corev1.NodeConditionType]corev1.ConditionStatus
	const yes, no, unknown = corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown
	cases := map[string]struct {
		reason string
		states states
		want   health
	}{
		"Nothing":    {"missing conditions count as healthy", nil, health{yes, ""}},
		"Healthy":    {"all conditions have the desired status", states{corev1.NodeReady: yes, corev1.NodeDiskPressure: no}, health{yes, ""}},
		"NotReady":   {"one condition has the wrong status", states{corev1.NodeReady: no, corev1.NodePIDPressure: unknown}, health{no, "Node condition Ready is False"}},
		"TwoBad":     {"both are reported, in a fixed order", states{corev1.NodePIDPressure: yes, corev1.NodeReady: no}, health{no, "Node condition Ready is False. Node condition PIDPressure is True"}},
		"OneUnknown": {"not all conditions are unknown", states{corev1.NodeReady: unknown, corev1.NodeMemoryPressure: no}, health{yes, ""}},
		"AllUnknown": {"the kubelet is unresponsive", states{corev1.NodeReady: unknown, corev1.NodeMemoryPressure: unknown, corev1.NodeDiskPressure: unknown, corev1.NodePIDPressure: unknown},
			health{unknown, "Node conditions are unknown"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n := node()
			for kind, status := range tc.states {
				n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: kind, Status: status})
			}
			if diff := cmp.Diff(tc.want, healthOf(n), cmp.AllowUnexported(health{})); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNodeChanged(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*corev1.Node)
		want   bool
	}{
		"Heartbeat": {"heartbeats do not count", func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(now)}}
		}, false},
		"NotReady": {"health is copied", func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
		}, true},
		"Unknown": {"NodeReady is reported", func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
		}, true},
		"LabelValue": {"a synced label was changed", func(n *corev1.Node) { n.Labels = map[string]string{"node.cluster.x-k8s.io/a": "other"} }, true},
		"Annotation": {"synced annotations were removed", func(n *corev1.Node) { n.Annotations = nil }, true},
		"Taint":      {"the controller may have to remove a taint", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{clusterv1.NodeUninitializedTaint} }, true},
		"Volumes":    {"deletion waits for volumes", func(n *corev1.Node) { n.Status.VolumesAttached = []corev1.AttachedVolume{{Name: "v"}} }, true},
		"ProviderID": {"the Node may belong to another Machine now", func(n *corev1.Node) { n.Spec.ProviderID = "other" }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := node(func(n *corev1.Node) {
				n.Labels, n.Annotations = map[string]string{"node.cluster.x-k8s.io/a": "b"}, map[string]string{"x": "y"}
				n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
			})
			after := before.DeepCopy()
			tc.change(after)
			if got := nodeChanged(before, after); got != tc.want {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
}

// TestSelection checks which labels and annotations are copied to a Node, and which of those are removed again.
func TestSelection(t *testing.T) {
	s, err := NewSelection([]string{`^cost/`}, []string{`^example\.com/rack$`})
	testenv.Must(t, err)
	m := machine(func(m *clusterv1.Machine) {
		m.Labels = map[string]string{"cost/center": "1", "other": "2"}
		m.Annotations = map[string]string{"example.com/rack": "r1", "example.com/racks": "r2", "node.cluster.x-k8s.io/note": "n"}
	})
	n := node(func(n *corev1.Node) {
		n.Labels = map[string]string{"cost/old": "", "users": ""}
		n.Annotations = map[string]string{
			clusterv1.LabelsFromMachineAnnotation:      "cost/old,users",
			clusterv1.AnnotationsFromMachineAnnotation: "node.cluster.x-k8s.io/old,kept", "node.cluster.x-k8s.io/old": "", "kept": "",
		}
	})
	s.sync(n, m)
	wantLabels := map[string]string{"cost/center": "1", "users": ""}
	wantAnnotations := map[string]string{
		"example.com/rack": "r1", "node.cluster.x-k8s.io/note": "n", "kept": "", clusterv1.LabelsFromMachineAnnotation: "cost/center",
		clusterv1.AnnotationsFromMachineAnnotation: "example.com/rack,node.cluster.x-k8s.io/note",
	}
	if diff := cmp.Diff(wantLabels, n.Labels) + cmp.Diff(wantAnnotations, n.Annotations); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := NewSelection(nil, []string{"("}); err == nil {
		t.Error("an invalid expression must be rejected")
	}
}

// With the feature gate, the taints of a Machine are set on its Node with what else is synced, those for new Nodes the first time only.
func TestSyncTaints(t *testing.T) {
	kept, first := corev1.Taint{Key: "kept", Effect: corev1.TaintEffectNoSchedule}, corev1.Taint{Key: "first", Effect: corev1.TaintEffectNoSchedule}
	m := machine(withNode, func(m *clusterv1.Machine) {
		m.Spec.Taints = []clusterv1.MachineTaint{
			{Key: kept.Key, Effect: kept.Effect, Propagation: clusterv1.MachineTaintPropagationAlways},
			{Key: first.Key, Effect: first.Effect, Propagation: clusterv1.MachineTaintPropagationOnInitialization},
		}
	})
	for name, tc := range map[string]struct {
		reason  string
		enabled bool
		want    [2][]corev1.Taint
	}{
		"enabled":  {"a taint for new Nodes that was removed stays away; the other is set again", true, [2][]corev1.Taint{{kept, first}, {kept}}},
		"disabled": {"taints of Machines have no effect without the feature gate", false, [2][]corev1.Taint{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, infraMachine(fields{}))
			w.taints = tc.enabled
			n := node(func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{clusterv1.NodeUninitializedTaint} })
			testenv.Must(t, w.workload.Client.Create(t.Context(), n))
			for round, want := range tc.want {
				testenv.Must(t, w.syncNode(t.Context(), &scope{machine: m, cluster: build.Cluster()}, w.workload.ForController(), n))
				testenv.Must(t, w.workload.Client.Get(t.Context(), client.ObjectKeyFromObject(n), n))
				if diff := cmp.Diff(want, n.Spec.Taints); diff != "" {
					t.Errorf("round %d, %s (-want +got):\n%s", round, tc.reason, diff)
				}
				n.Spec.Taints = nil
				testenv.Must(t, w.workload.Client.Update(t.Context(), n))
			}
		})
	}
}

func TestSyncNode(t *testing.T) {
	revision := func(kind interface{ SetAnnotations(map[string]string) }, n string) {
		kind.SetAnnotations(map[string]string{clusterv1.RevisionAnnotation: n})
	}
	w := newWorld(t, infraMachine(fields{"status": fields{"interruptible": true}}))
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "set"}}
	deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "md"}}
	revision(set, "1")
	revision(deployment, "2")
	n := node(func(n *corev1.Node) {
		n.Labels = map[string]string{"mine": "stays", "node.cluster.x-k8s.io/gone": "", "node.cluster.x-k8s.io/users": ""}
		n.Annotations = map[string]string{clusterv1.LabelsFromMachineAnnotation: "node.cluster.x-k8s.io/gone"}
		n.Spec.Taints = []corev1.Taint{clusterv1.NodeUninitializedTaint, {Key: "users", Effect: corev1.TaintEffectNoSchedule}}
	})
	for _, err := range []error{w.Client.Create(t.Context(), set), w.Client.Create(t.Context(), deployment), w.workload.Client.Create(t.Context(), n)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	m := machine(withNode, func(m *clusterv1.Machine) {
		m.Labels[clusterv1.MachineDeploymentNameLabel] = "md"
		for _, key := range []string{"node-role.kubernetes.io/gpu", "a.node-restriction.kubernetes.io/x", "node.cluster.x-k8s.io/y", "example.com/not"} {
			m.Labels[key] = "v"
		}
		m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, clusterv1.GroupVersion.WithKind("MachineSet"))}
	})
	want := node(func(n *corev1.Node) {
		n.Labels = map[string]string{
			"mine": "stays", "node.cluster.x-k8s.io/users": "", "node-role.kubernetes.io/gpu": "v",
			"a.node-restriction.kubernetes.io/x": "v", "node.cluster.x-k8s.io/y": "v", clusterv1.InterruptibleLabel: "",
		}
		n.Annotations = map[string]string{
			clusterv1.ClusterNameAnnotation: "c", clusterv1.ClusterNamespaceAnnotation: "default", clusterv1.MachineAnnotation: "m-1",
			clusterv1.OwnerKindAnnotation: "MachineSet", clusterv1.OwnerNameAnnotation: "set",
			clusterv1.LabelsFromMachineAnnotation: "a.node-restriction.kubernetes.io/x,node-role.kubernetes.io/gpu,node.cluster.x-k8s.io/y",
		}
		n.Spec.Taints = []corev1.Taint{{Key: "users", Effect: corev1.TaintEffectNoSchedule}, clusterv1.NodeOutdatedRevisionTaint}
	})
	w.Writes = nil
	for range 2 {
		testenv.Must(t, w.syncNode(t.Context(), &scope{machine: m, cluster: build.Cluster()}, w.workload.ForController(), n))
		testenv.Must(t, w.workload.Client.Get(t.Context(), client.ObjectKeyFromObject(n), n))
		if diff := cmp.Diff(want, n, cmpopts.IgnoreFields(metav1.ObjectMeta{}, "ResourceVersion"), cmpopts.IgnoreFields(corev1.Node{}, "TypeMeta")); diff != "" {
			t.Errorf("synced metadata is applied, all other metadata is kept, -want +got:\n%s", diff)
		}
	}
	if diff := cmp.Diff([]string{"patch Node node-1"}, w.Writes); diff != "" {
		t.Errorf("one patch, and none if nothing differs, -want +got:\n%s", diff)
	}
}
