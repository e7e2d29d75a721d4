package taint

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	always = clusterv1.MachineTaintPropagationAlways
	once   = clusterv1.MachineTaintPropagationOnInitialization
)

func of(key, value string, propagation clusterv1.MachineTaintPropagation) clusterv1.MachineTaint {
	return clusterv1.MachineTaint{Key: key, Value: value, Effect: corev1.TaintEffectNoSchedule, Propagation: propagation}
}

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		reason      string
		off         bool
		old, taints []clusterv1.MachineTaint
		want        string
	}{
		"none without the gate": {reason: "most objects have none", off: true},
		"without the gate": {
			reason: "they would have no effect", off: true, taints: []clusterv1.MachineTaint{of("a", "", always)},
			want: "spec.taints: Forbidden: taints require the feature gate MachineTaintPropagation",
		},
		"from before the gate was disabled": {
			reason: "other fields can still be changed", off: true,
			old: []clusterv1.MachineTaint{of("a", "", always)}, taints: []clusterv1.MachineTaint{of("a", "", always)},
		},
		"valid": {
			reason: "users set such taints",
			taints: []clusterv1.MachineTaint{
				of("gpu", "yes", always), of("example.com/gpu", "", once), of("node.kubernetes.io/out-of-service", "nodeshutdown", always),
				of("node-role.kubernetes.io/control-plane", "", once), of("node.cluster.x-k8s.io/own", "", always),
			},
		},
		"of Cluster API": {
			reason: "the Machine controller removes it", taints: []clusterv1.MachineTaint{of("node.cluster.x-k8s.io/uninitialized", "", always)},
			want: `spec.taints[0].key: Invalid value: "node.cluster.x-k8s.io/uninitialized": taints with this key are managed by Cluster API`,
		},
		"of old revisions": {
			reason: "the Machine controller sets it", taints: []clusterv1.MachineTaint{of("node.cluster.x-k8s.io/outdated-revision", "", always)},
			want: `spec.taints[0].key: Invalid value: "node.cluster.x-k8s.io/outdated-revision": taints with this key are managed by Cluster API`,
		},
		"of Kubernetes": {
			reason: "the node lifecycle controller sets it", taints: []clusterv1.MachineTaint{of("a", "", always), of("node.kubernetes.io/not-ready", "", always)},
			want: `spec.taints[1].key: Invalid value: "node.kubernetes.io/not-ready": taints with this key are managed by Kubernetes`,
		},
		"of control planes before v1.24": {
			reason: "kubeadm set it", taints: []clusterv1.MachineTaint{of("node-role.kubernetes.io/master", "", always)},
			want: `spec.taints[0].key: Invalid value: "node-role.kubernetes.io/master": taints with this key are managed by Kubernetes`,
		},
		"of cloud providers": {
			reason: "the cloud provider removes it", taints: []clusterv1.MachineTaint{of("node.cloudprovider.kubernetes.io/shutdown", "", once)},
			want: `spec.taints[0].key: Invalid value: "node.cloudprovider.kubernetes.io/shutdown": taints with this key are managed by the cloud provider`,
		},
		"value": {
			reason: "the API server of the Node would reject it for ever", taints: []clusterv1.MachineTaint{of("a", "x y", always)},
			want: `spec.taints[0].value: Invalid value: "x y": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', ` +
				`and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is ` +
				`'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
		},
		"key": {
			reason: "the API server of the Node would reject it for ever", taints: []clusterv1.MachineTaint{of("example.com/"+long, "", always)},
			want: `spec.taints[0].key: Invalid value: "example.com/` + long + `": name part must be no more than 63 bytes`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := Check(!tc.off, tc.old, tc.taints, field.NewPath("spec", "taints")).ToAggregate(); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// long is a name of more than 63 characters.
const long = "a-name-that-is-longer-than-the-sixty-three-characters-of-a-label-name"

func TestSync(t *testing.T) {
	const list = clusterv1.TaintsFromMachineAnnotation
	node := func(annotation string, taints ...corev1.Taint) *corev1.Node {
		n := &corev1.Node{Spec: corev1.NodeSpec{Taints: taints}}
		if annotation != "-" {
			n.Annotations = map[string]string{list: annotation}
		}
		return n
	}
	is := func(key, value string) corev1.Taint {
		return corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffectNoSchedule}
	}
	since := metav1.Now()
	dated := corev1.Taint{Key: "a", Value: "1", Effect: corev1.TaintEffectNoSchedule, TimeAdded: &since}
	for name, tc := range map[string]struct {
		reason     string
		taints     []clusterv1.MachineTaint
		initialize bool
		node, want *corev1.Node
	}{
		"none": {reason: "a Node without taints is not written", initialize: true, node: node("-", is("other", "")), want: node("-", is("other", ""))},
		"new Node": {
			reason: "all are set; only those that are kept are listed", initialize: true,
			taints: []clusterv1.MachineTaint{of("b", "2", always), of("a", "1", always), of("c", "3", once)},
			node:   node("-", is("other", "")), want: node("a:NoSchedule,b:NoSchedule", is("other", ""), is("b", "2"), is("a", "1"), is("c", "3")),
		},
		"known Node": {
			reason: "the taint for new Nodes was removed, and stays away",
			taints: []clusterv1.MachineTaint{of("a", "1", always), of("c", "3", once)},
			node:   node("a:NoSchedule"), want: node("a:NoSchedule", is("a", "1")),
		},
		"added for new Nodes only": {
			reason: "the annotation marks the Node as initialized for other versions of Cluster API, too",
			taints: []clusterv1.MachineTaint{of("c", "3", once)}, node: node("-"), want: node(""),
		},
		"value": {
			reason: "it is updated in place, beside one with another effect", taints: []clusterv1.MachineTaint{of("a", "2", always)},
			node: node("a:NoSchedule", is("a", "1"), corev1.Taint{Key: "a", Effect: corev1.TaintEffectNoExecute}),
			want: node("a:NoSchedule", is("a", "2"), corev1.Taint{Key: "a", Effect: corev1.TaintEffectNoExecute}),
		},
		"unchanged": {
			reason: "the time at which it was added stays", taints: []clusterv1.MachineTaint{of("a", "1", always)},
			node: node("a:NoSchedule", dated), want: node("a:NoSchedule", dated),
		},
		"removed": {
			reason: "the Machine no longer has it; that of another client stays",
			node:   node("a:NoSchedule", is("a", "1"), is("other", "")), want: node("", is("other", "")),
		},
		"removed, set by another client": {
			reason: "it did not come from the Machine", taints: []clusterv1.MachineTaint{of("b", "", always)},
			node: node("b:NoSchedule", is("b", ""), is("a", "")), want: node("b:NoSchedule", is("b", ""), is("a", "")),
		},
		"no longer kept": {
			reason: "it belongs to other clients from now on", taints: []clusterv1.MachineTaint{of("a", "1", once)},
			node: node("a:NoSchedule", is("a", "1")), want: node("", is("a", "1")),
		},
		"forged list": {
			reason: "users of the workload cluster cannot have taints of Kubernetes removed",
			node:   node("node.kubernetes.io/unreachable:NoSchedule", is("node.kubernetes.io/unreachable", "")),
			want:   node("", is("node.kubernetes.io/unreachable", "")),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if !tc.initialize {
				for _, n := range []*corev1.Node{tc.node, tc.want} {
					metav1.SetMetaDataAnnotation(&n.ObjectMeta, clusterv1.ClusterNameAnnotation, "c")
				}
			}
			for range 2 {
				Sync(tc.node, tc.taints)
				if len(tc.node.Spec.Taints) == 0 {
					tc.node.Spec.Taints = nil
				}
				if diff := cmp.Diff(tc.want, tc.node); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
			}
		})
	}
}
