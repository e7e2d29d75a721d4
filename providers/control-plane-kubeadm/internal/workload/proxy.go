package workload

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
)

// proxyName is the name of the DaemonSet and container of kube-proxy.
const proxyName = "kube-proxy"

// maintainProxy updates kube-proxy to the version of the control plane. A cluster without kube-proxy does not get one.
func (c *Cluster) maintainProxy(ctx context.Context, kcp *controlplanev1.KubeadmControlPlane) error {
	proxy := &appsv1.DaemonSet{}
	key := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: proxyName}
	if err := c.Client.Get(ctx, key, proxy); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("reading the DaemonSet of kube-proxy %s: %w", key, err)
	}
	container := containerOf(&proxy.Spec.Template.Spec, proxyName)
	if container == nil {
		return nil
	}
	wanted, err := proxyImage(container.Image, kcp)
	if err != nil {
		return fmt.Errorf("reading container %s of DaemonSet %s: %w", proxyName, key, err)
	}
	if container.Image == wanted {
		return nil
	}
	before := proxy.DeepCopy()
	container.Image = wanted
	return c.patch(ctx, proxy, before)
}

func proxyImage(from string, kcp *controlplanev1.KubeadmControlPlane) (string, error) {
	i, err := parseImage(from)
	if err != nil {
		return "", err
	}
	i.repository = current(i.repository)
	if repository := kcp.Spec.KubeadmConfigSpec.ClusterConfiguration.ImageRepository; repository != "" {
		i.repository = strings.TrimSuffix(repository, "/")
	}
	i.tag = strings.ReplaceAll(kcp.Spec.Version, "+", "_") // A tag cannot have build metadata.
	if was, err := parseImage(from); err == nil && was == i {
		return from, nil // It is the same image, maybe with a digest.
	}
	return i.String(), nil
}

// containerOf returns the container with this name, nil if there is none.
func containerOf(pod *corev1.PodSpec, name string) *corev1.Container {
	i := slices.IndexFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &pod.Containers[i]
}
