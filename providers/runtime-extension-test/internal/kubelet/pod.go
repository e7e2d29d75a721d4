package kubelet

import (
	"cmp"
	"crypto/sha256"
	_ "embed" // The script.
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	// namespace is that of the Pods. It allows privileged Pods in every cluster.
	namespace = metav1.NamespaceSystem
	// deadline is how long a Pod may run, in seconds. It takes five.
	deadline = 120
)

//go:embed script.sh
var script string

// newPod returns the Pod that sets flags on a Node. names are those of all flags that are set or removed. Its name derives from all of it,
// so that every other change is another Pod.
//
// The Pod needs no image of its own: it uses the smallest image that the Node has, and the programs of the Node, in the namespaces of its
// first process. It starts on a Node whose kubelet takes no more Pods, and on one that has any taints.
func newPod(node *corev1.Node, names []string, flags []Flag) (*corev1.Pod, error) {
	image, err := smallestImage(node)
	if err != nil {
		return nil, err
	}
	program := strings.Split("/usr/bin/nsenter --target 1 --mount --ipc -- /bin/sh -c", " ")
	arguments := []string{script, "script.sh", strings.Join(slices.Sorted(slices.Values(names)), "|")}
	for _, f := range flags {
		arguments = append(arguments, f.String())
	}
	hash := sha256.Sum256([]byte(strings.Join(append([]string{string(node.UID)}, arguments...), "\x00")))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "test-extension-kubelet-" + hex.EncodeToString(hash[:8]),
			Labels: map[string]string{"app.kubernetes.io/name": "test-extension"},
		},
		Spec: corev1.PodSpec{
			NodeName: node.Name, RestartPolicy: corev1.RestartPolicyNever, ActiveDeadlineSeconds: ptr.To[int64](deadline),
			HostPID: true, HostNetwork: true, PriorityClassName: "system-node-critical", AutomountServiceAccountToken: ptr.To(false),
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Name: "set-flags", Image: image, ImagePullPolicy: corev1.PullNever, Command: program, Args: arguments,
				SecurityContext:          &corev1.SecurityContext{Privileged: ptr.To(true), RunAsUser: ptr.To[int64](0)},
				TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			}},
		},
	}
	for _, dir := range []string{"usr", "lib", "lib64"} {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
			Name: dir, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/" + dir}},
		})
		c := &pod.Spec.Containers[0]
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: dir, MountPath: "/" + dir, ReadOnly: true})
	}
	return pod, nil
}

// smallestImage returns the name of the smallest image that a Node has: usually that of the sandboxes of Pods.
func smallestImage(node *corev1.Node) (string, error) {
	var named []corev1.ContainerImage
	for _, image := range node.Status.Images {
		if len(image.Names) > 0 {
			named = append(named, image)
		}
	}
	if len(named) == 0 {
		return "", fmt.Errorf("Node %s reports no images in its status: one is needed for a Pod that changes flags of its kubelet", node.Name)
	}
	smallest := slices.MinFunc(named, func(a, b corev1.ContainerImage) int {
		return cmp.Or(cmp.Compare(a.SizeBytes, b.SizeBytes), cmp.Compare(a.Names[0], b.Names[0]))
	})
	return smallest.Names[len(smallest.Names)-1], nil // Names with a tag follow those with a digest.
}

// failure returns why a Pod failed, as far as its status has it.
func failure(pod *corev1.Pod) string {
	for _, s := range pod.Status.ContainerStatuses {
		if t := s.State.Terminated; t != nil {
			return fmt.Sprintf("exit code %d: %s", t.ExitCode, strings.TrimSpace(t.Message))
		}
	}
	return strings.TrimSpace(pod.Status.Reason + " " + pod.Status.Message)
}
