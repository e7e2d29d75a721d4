package remote

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNodesKeepWhatIsRead(t *testing.T) {
	taints := []corev1.Taint{{Key: "a"}}
	conditions := []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	info, volumes := corev1.NodeSystemInfo{KubeletVersion: "v1.30.0"}, []corev1.AttachedVolume{{Name: "v"}}
	in := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "n", UID: "u", ResourceVersion: "1", Labels: map[string]string{"l": "v"}, Finalizers: []string{"f"},
			Annotations: map[string]string{"cluster.x-k8s.io/machine": "m", "network.example.com/state": "large"},
		},
		Spec: corev1.NodeSpec{ProviderID: "p", Taints: taints, Unschedulable: true, PodCIDRs: []string{"10.0.0.0/24"}},
		Status: corev1.NodeStatus{
			Conditions: conditions, NodeInfo: info, VolumesAttached: volumes, Images: []corev1.ContainerImage{{SizeBytes: 1}},
			Capacity: corev1.ResourceList{}, VolumesInUse: []corev1.UniqueVolumeName{"v"},
		},
	}
	want := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "n", UID: "u", ResourceVersion: "1", Labels: map[string]string{"l": "v"},
			Annotations: map[string]string{"cluster.x-k8s.io/machine": "m"},
		},
		Spec:   corev1.NodeSpec{ProviderID: "p", Taints: taints, Unschedulable: true},
		Status: corev1.NodeStatus{Conditions: conditions, NodeInfo: info, VolumesAttached: volumes},
	}
	for range 2 { // What was stripped already is stripped again.
		out, err := Nodes().Transform(in)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, out); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

func TestMemory(t *testing.T) {
	for name, c := range map[string]struct {
		reason      string
		obj         any
		least, most int64
	}{
		"Empty":   {"a structure takes memory without content", &corev1.Node{}, 500, 5000},
		"Texts":   {"strings count", &corev1.Node{Spec: corev1.NodeSpec{ProviderID: string(make([]byte, 1<<20))}}, 1 << 20, 1<<20 + 5000},
		"Entries": {"entries count even if they are empty", &corev1.Node{Spec: corev1.NodeSpec{Taints: make([]corev1.Taint, 1<<16)}}, 48 << 16, 200 << 16},
		"Maps":    {"so do those of maps", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": string(make([]byte, 1<<20))}}}, 1 << 20, 1<<20 + 5000},
	} {
		t.Run(name, func(t *testing.T) {
			if got := memory(c.obj); got < c.least || got > c.most {
				t.Errorf("%s: got %d, want between %d and %d", c.reason, got, c.least, c.most)
			}
		})
	}
}
