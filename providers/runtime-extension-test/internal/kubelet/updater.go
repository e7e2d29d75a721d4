package kubelet

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Updater changes flags of kubelets.
type Updater struct {
	// Connect connects to the workload cluster of a Cluster.
	Connect func(ctx context.Context, cluster client.ObjectKey) (kubernetes.Interface, error)
}

// Machine is a machine whose kubelet is changed.
type Machine struct {
	Cluster client.ObjectKey
	// ProviderID identifies its Node.
	ProviderID string
}

// Update takes the change one step further, and returns what it waits for; empty when the kubelet runs with the flags. names are those of
// all flags that are set, or removed if they are not among flags. The error of a change that failed is returned once: the next call begins
// again.
func (u *Updater) Update(ctx context.Context, m Machine, names []string, flags []Flag) (waiting string, err error) {
	workload, err := u.Connect(ctx, m.Cluster)
	if err != nil {
		return "", err
	}
	node, err := nodeOf(ctx, workload, m)
	if err != nil {
		return "", err
	}
	wanted, err := newPod(node, names, flags)
	if err != nil {
		return "", err
	}
	pods := workload.CoreV1().Pods(namespace)
	pod, err := pods.Get(ctx, wanted.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		if _, err := pods.Create(ctx, wanted, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return "", fmt.Errorf("cannot create Pod %s/%s on Node %s: %w", namespace, wanted.Name, node.Name, err)
		}
		return fmt.Sprintf("Pod %s/%s to change flags of the kubelet of Node %s", namespace, wanted.Name, node.Name), nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot read Pod %s/%s: %w", namespace, wanted.Name, err)
	}
	remove := func() error {
		err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: ptr.To[int64](0), Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("cannot delete Pod %s/%s, which has ended: %w", namespace, pod.Name, err)
		}
		return nil
	}
	switch pod.Status.Phase {
	case corev1.PodSucceeded:
		if reported := notYet(node, flags); reported != "" {
			return reported, nil
		}
		return "", remove()
	case corev1.PodFailed:
		if err := remove(); err != nil {
			return "", err
		}
		return "", fmt.Errorf("changing flags of the kubelet of Node %s failed: %s", node.Name, failure(pod))
	default:
		return fmt.Sprintf("Pod %s/%s to change flags of the kubelet of Node %s", namespace, pod.Name, node.Name), nil
	}
}

// nodeOf returns the Node of a machine.
func nodeOf(ctx context.Context, workload kubernetes.Interface, m Machine) (*corev1.Node, error) {
	nodes, err := workload.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot list the Nodes of Cluster %s: %w", m.Cluster, err)
	}
	for i := range nodes.Items {
		if n := &nodes.Items[i]; m.ProviderID != "" && n.Spec.ProviderID == m.ProviderID {
			return n, nil
		}
	}
	return nil, fmt.Errorf("cannot find the Node with providerID %q in Cluster %s", m.ProviderID, m.Cluster)
}

// notYet returns what the kubelet has not reported since it was restarted: its Node's capacity for Pods, if that was changed.
func notYet(node *corev1.Node, flags []Flag) string {
	for _, f := range flags {
		if f.Name != "max-pods" {
			continue
		}
		if got := node.Status.Capacity.Pods().String(); got != f.Value {
			return fmt.Sprintf("status.capacity.pods of Node %s to be %s, not %s", node.Name, f.Value, got)
		}
	}
	return ""
}
