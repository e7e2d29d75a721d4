package machine

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
)

// newPod returns a static Pod of the control plane.
func newPod(s *scope, component string) *corev1.Pod {
	name := component + "-" + s.obj.Name
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, Name: name, UID: cloud.UID(string(s.obj.UID), component),
			Labels: map[string]string{"component": component, "tier": "control-plane"},
			// A static Pod: drain ignores it.
			Annotations: map[string]string{corev1.MirrorPodAnnotationKey: string(s.obj.UID)},
		},
		Spec: corev1.PodSpec{
			NodeName: s.obj.Name,
			// kubectl requires it.
			SecurityContext: &corev1.PodSecurityContext{},
			Containers: []corev1.Container{{Name: component,
				Image: "registry.k8s.io/" + component + ":" + s.machine.Spec.Version}},
		},
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: component, Ready: true,
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
		},
	}
}
