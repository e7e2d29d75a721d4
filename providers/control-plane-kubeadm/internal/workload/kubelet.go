package workload

import (
	"context"
	"fmt"

	"github.com/blang/semver/v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const (
	// kubeletKey is the key of the kubelet configuration in its ConfigMap.
	kubeletKey = "kubelet"
	// systemd is the default cgroup driver of kubeadm from v1.21 on. The configuration of older clusters has none, and their
	// kubelets would use another one than their container runtimes.
	systemd = "systemd"
)

// kubeletConfigName returns the name of the kubelet configuration for a version. Up to v1.23 there is one per minor version.
func kubeletConfigName(version semver.Version) string {
	if version.Major == 1 && version.Minor < 24 {
		return fmt.Sprintf("kubelet-config-%d.%d", version.Major, version.Minor)
	}
	return "kubelet-config"
}

// prepareKubelet makes sure that there is a kubelet configuration for a version: by default a copy of that of the previous
// minor version. Clusters without such a configuration do not get one.
func (c *Cluster) prepareKubelet(ctx context.Context, version semver.Version) error {
	key := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: kubeletConfigName(version)}
	config := &corev1.ConfigMap{}
	err := c.Client.Get(ctx, key, config)
	if err == nil {
		return c.amendKubelet(ctx, config, version)
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading the kubelet configuration, ConfigMap %s: %w", key, err)
	}
	if version.Minor == 0 {
		return nil
	}
	from := client.ObjectKey{Namespace: key.Namespace, Name: kubeletConfigName(semver.Version{Major: version.Major, Minor: version.Minor - 1})}
	if from == key {
		return nil
	}
	if err := c.Client.Get(ctx, from, config); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("reading the kubelet configuration, ConfigMap %s: %w", from, err)
	}
	made := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Data: config.Data, BinaryData: config.BinaryData,
	}
	if _, err := setCgroupDriver(made, version); err != nil {
		return err
	}
	if err := c.Client.Create(ctx, made); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the kubelet configuration, ConfigMap %s: %w", key, err)
	}
	return nil
}

func (c *Cluster) amendKubelet(ctx context.Context, config *corev1.ConfigMap, version semver.Version) error {
	before := config.DeepCopy()
	changed, err := setCgroupDriver(config, version)
	if err != nil || !changed {
		return err
	}
	return c.patch(ctx, config, before)
}

// setCgroupDriver sets the driver if none is set, and reports whether it did.
func setCgroupDriver(config *corev1.ConfigMap, version semver.Version) (bool, error) {
	text, ok := config.Data[kubeletKey]
	if !ok || (version.Major == 1 && version.Minor < 21) {
		return false, nil
	}
	doc, err := parse(text)
	if err != nil {
		return false, fmt.Errorf("parsing key %q of ConfigMap %s: %w", kubeletKey, client.ObjectKeyFromObject(config), err)
	}
	if driver, _ := doc["cgroupDriver"].(string); driver != "" {
		return false, nil
	}
	doc["cgroupDriver"] = systemd
	raw, err := yaml.Marshal(doc)
	if err != nil {
		return false, fmt.Errorf("encoding the kubelet configuration: %w", err)
	}
	config.Data[kubeletKey] = string(raw)
	return true, nil
}

// patch writes the changes since before. If another client has changed the object since, that is a conflict.
func (c *Cluster) patch(ctx context.Context, changed, before client.Object) error {
	// Lists such as containers are merged by name, so that fields that our version of the API does not know are kept.
	err := c.Client.Patch(ctx, changed, client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return fmt.Errorf("changing %T %s: %w", changed, client.ObjectKeyFromObject(changed), err)
	}
	return nil
}
