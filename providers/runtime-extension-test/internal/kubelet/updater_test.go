package kubelet

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// world is a workload cluster with one Node.
type world struct {
	t       *testing.T
	api     *fake.Clientset
	updater *Updater
	names   []string
	flags   []Flag
}

func newWorld(t *testing.T) *world {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node", UID: "node-uid"}, Spec: corev1.NodeSpec{ProviderID: "docker:////node"},
		Status: corev1.NodeStatus{
			Images: []corev1.ContainerImage{
				{Names: []string{"example.com/large:v1"}, SizeBytes: 100}, {SizeBytes: 1},
				{Names: []string{"example.com/pause@sha256:0", "example.com/pause:v1"}, SizeBytes: 10},
			},
			Capacity: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("100")},
		},
	}
	w := &world{t: t, api: fake.NewClientset(node), names: []string{"v", "max-pods"}, flags: []Flag{{"max-pods", "50"}}}
	w.updater = &Updater{Connect: func(context.Context, client.ObjectKey) (kubernetes.Interface, error) { return w.api, nil }}
	return w
}

// update calls Update, and returns what it waits for, or its error.
func (w *world) update() string {
	w.t.Helper()
	waiting, err := w.updater.Update(w.t.Context(), Machine{Cluster: client.ObjectKey{Namespace: "ns", Name: "c"}, ProviderID: "docker:////node"}, w.names, w.flags)
	if err != nil {
		return "error: " + err.Error()
	}
	return waiting
}

func (w *world) pods() []corev1.Pod {
	w.t.Helper()
	list, err := w.api.CoreV1().Pods("kube-system").List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// ended reports the phase of the only Pod, as a kubelet does.
func (w *world) ended(phase corev1.PodPhase, message string) {
	w.t.Helper()
	pod := w.pods()[0]
	pod.Status.Phase = phase
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: message}}}}
	if _, err := w.api.CoreV1().Pods("kube-system").UpdateStatus(w.t.Context(), &pod, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// capacity changes the Node as a kubelet does that was restarted.
func (w *world) capacity(pods string) {
	w.t.Helper()
	node, err := w.api.CoreV1().Nodes().Get(w.t.Context(), "node", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	node.Status.Capacity[corev1.ResourcePods] = resource.MustParse(pods)
	if _, err := w.api.CoreV1().Nodes().UpdateStatus(w.t.Context(), node, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// TestUpdate takes a Node through a change. Every call is made twice, as if its response was lost.
func TestUpdate(t *testing.T) {
	w := newWorld(t)
	for range 2 {
		if got := w.update(); !strings.HasPrefix(got, "Pod kube-system/test-extension-kubelet-") || !strings.HasSuffix(got, " to change flags of the kubelet of Node node") {
			t.Errorf("waits for %q, want the Pod", got)
		}
	}
	pods := w.pods()
	if len(pods) != 1 {
		t.Fatalf("%d Pods, want 1", len(pods))
	}
	c := pods[0].Spec.Containers[0]
	if got := strings.Join(c.Args[1:], " "); got != "script.sh max-pods|v --max-pods=50" || c.Image != "example.com/pause:v1" || pods[0].Spec.NodeName != "node" {
		t.Errorf("the Pod runs %q with image %s on Node %s", got, c.Image, pods[0].Spec.NodeName)
	}
	w.ended(corev1.PodSucceeded, "")
	for range 2 {
		if got, want := w.update(), "status.capacity.pods of Node node to be 50, not 100"; got != want {
			t.Errorf("waits for %q, want %q", got, want)
		}
	}
	w.capacity("50")
	if got := w.update(); got != "" {
		t.Errorf("waits for %q, want nothing", got)
	}
	if left := w.pods(); len(left) > 0 {
		t.Errorf("%d Pods are left", len(left))
	}
	// The response was lost: the script runs again, and finds nothing to do.
	w.update()
	if pods := w.pods(); len(pods) != 1 {
		t.Errorf("%d Pods, want another one", len(pods))
	}
}

func TestUpdateFails(t *testing.T) {
	w := newWorld(t)
	w.update()
	w.ended(corev1.PodFailed, "the kubelet does not run with --max-pods=50: its flags are rolled back\n")
	const want = "error: changing flags of the kubelet of Node node failed: exit code 1: the kubelet does not run with --max-pods=50: its flags are rolled back"
	if got := w.update(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if left := w.pods(); len(left) > 0 {
		t.Errorf("%d Pods are left: the next call must begin again", len(left))
	}
	w.flags = []Flag{{"max-pods", "60"}}
	w.update()
	w.flags = []Flag{{"max-pods", "50"}}
	w.update()
	if pods := w.pods(); len(pods) != 2 || pods[0].Name == pods[1].Name {
		t.Errorf("%d Pods, want one per change", len(pods))
	}
}

func TestUpdateWithoutNode(t *testing.T) {
	w := newWorld(t)
	if err := w.api.CoreV1().Nodes().Delete(t.Context(), "node", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, want := w.update(), `error: cannot find the Node with providerID "docker:////node" in Cluster ns/c`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
