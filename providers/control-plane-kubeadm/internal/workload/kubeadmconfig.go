package workload

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
	"sigs.k8s.io/cluster-api/sdk/expansion"
)

// clusterConfigurationKey is the key of the ClusterConfiguration in the ConfigMap of kubeadm.
const clusterConfigurationKey = "ClusterConfiguration"

// kubeadmConfig is the ConfigMap that kubeadm uploads when kubeadm init completes, and reads when Machines join.
var kubeadmConfig = client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "kubeadm-config"} // a constant

// change changes a ClusterConfiguration of kubeadm, decoded from JSON.
type change func(doc map[string]any) error

// prepareKubeadm updates the configuration of kubeadm, which is used when Machines join, according to the spec.
func (c *Cluster) prepareKubeadm(ctx context.Context, version string, config *bootstrapv1beta1.ClusterConfiguration) error {
	return c.changeKubeadm(ctx, func(doc map[string]any) error {
		doc["kubernetesVersion"] = version
		convert(doc, version)
		if repository, _ := doc["imageRepository"].(string); repository != "" {
			doc["imageRepository"] = current(repository)
		}
		if config != nil {
			if err := adopt(doc, config); err != nil {
				return err
			}
		}
		localMode(doc, version, config)
		return nil
	})
}

// localMode sets the feature gate for kubelets that connect to the API server beside them, unless the spec has it, and removes it for
// versions of kubeadm that no longer know it.
func localMode(doc map[string]any, version string, config *bootstrapv1beta1.ClusterConfiguration) {
	var chosen map[string]bool
	if config != nil {
		chosen = config.FeatureGates
	}
	gates, _ := doc["featureGates"].(map[string]any)
	switch set, remove := kubeadm.ChangeKubeletLocalMode(chosen, version); {
	case set && gates == nil:
		doc["featureGates"] = map[string]any{kubeadm.KubeletLocalMode: true}
	case set:
		gates[kubeadm.KubeletLocalMode] = true
	case remove:
		delete(gates, kubeadm.KubeletLocalMode)
		if len(gates) == 0 {
			delete(doc, "featureGates")
		}
	}
}

// changeKubeadm changes the configuration of kubeadm, without a write if nothing changes.
func (c *Cluster) changeKubeadm(ctx context.Context, do change) error {
	stored := &corev1.ConfigMap{}
	if err := c.Client.Get(ctx, kubeadmConfig, stored); err != nil {
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("ConfigMap %s does not exist: upload it with kubeadm init phase upload-config", kubeadmConfig)
		}
		return fmt.Errorf("reading the configuration of kubeadm, ConfigMap %s: %w", kubeadmConfig, err)
	}
	text, there := stored.Data[clusterConfigurationKey]
	if there && text == "" {
		return nil // Simulated Machines need none. The in-memory provider of Cluster API v1.7 leaves it empty.
	}
	text, changed, err := edit(text, do)
	if err != nil {
		return fmt.Errorf("editing key %q of ConfigMap %s: %w", clusterConfigurationKey, kubeadmConfig, err)
	}
	if !changed {
		return nil
	}
	before := stored.DeepCopy()
	stored.Data[clusterConfigurationKey] = text
	return c.patch(ctx, stored, before)
}

// edit applies a change to a YAML document.
func edit(text string, do change) (string, bool, error) {
	before, err := parse(text)
	if err != nil {
		return "", false, err
	}
	after := runtime.DeepCopyJSON(before)
	if err := do(after); err != nil {
		return "", false, err
	}
	if reflect.DeepEqual(before, after) {
		return text, false, nil
	}
	raw, err := yaml.Marshal(after)
	return string(raw), true, err
}

func parse(text string) (map[string]any, error) {
	if len(text) > maxDocument {
		return nil, fmt.Errorf("it has %d bytes, more than %d", len(text), maxDocument)
	}
	if err := expansion.Check([]byte(text), maxDocument); err != nil {
		return nil, err
	}
	var doc map[string]any
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, err
	}
	if doc == nil {
		return nil, errors.New("it is empty")
	}
	return doc, nil
}

// adopt copies the fields that may change: images, feature gates, components and etcd, and, if the document is of v1beta4, environment
// variables and the validity of certificates. The validity of CAs never changes.
func adopt(doc map[string]any, config *bootstrapv1beta1.ClusterConfiguration) error {
	newer := onlyV1Beta4(config)
	config = config.DeepCopy()
	config.APIServer.ExtraEnvs, config.ControllerManager.ExtraEnvs, config.Scheduler.ExtraEnvs = nil, nil, nil
	if config.Etcd.Local != nil {
		config.Etcd.Local.ExtraEnvs = nil
	}
	desired, err := runtime.DefaultUnstructuredConverter.ToUnstructured(config)
	if err != nil {
		return fmt.Errorf("converting the ClusterConfiguration: %w", err)
	}
	normalize(desired)
	for _, field := range []string{"featureGates", "apiServer", "controllerManager", "scheduler"} {
		component, ok := desired[field].(map[string]any)
		if !ok || len(component) == 0 {
			delete(doc, field)
			continue
		}
		if field != "featureGates" {
			component = asOf(doc, component)
		}
		doc[field] = component
	}
	if config.ImageRepository != "" {
		doc["imageRepository"] = config.ImageRepository
	}
	if etcd, ok := desired["etcd"].(map[string]any); ok {
		adoptEtcd(doc, etcd)
	}
	if doc["apiVersion"] != v1beta4 {
		return nil
	}
	return kubeadm.AddV1Beta4(doc, newer)
}

// onlyV1Beta4 returns what only v1beta4 has of a configuration, without the validity of CAs.
func onlyV1Beta4(config *bootstrapv1beta1.ClusterConfiguration) *bootstrapv1.ClusterConfiguration {
	environment := func(list []bootstrapv1beta1.EnvVar) *[]bootstrapv1.EnvVar {
		if len(list) == 0 {
			return nil
		}
		return ptr.To(slices.Clone(list))
	}
	out := &bootstrapv1.ClusterConfiguration{CertificateValidityPeriodDays: config.CertificateValidityPeriodDays}
	out.APIServer.ExtraEnvs = environment(config.APIServer.ExtraEnvs)
	out.ControllerManager.ExtraEnvs = environment(config.ControllerManager.ExtraEnvs)
	out.Scheduler.ExtraEnvs = environment(config.Scheduler.ExtraEnvs)
	if config.Etcd.Local != nil {
		out.Etcd.Local.ExtraEnvs = environment(config.Etcd.Local.ExtraEnvs)
	}
	return out
}

// adoptEtcd copies images and arguments of a local etcd, or the endpoints of an external one. It never changes one into the
// other. Fields that are not in the spec keep the values of kubeadm.
func adoptEtcd(doc, etcd map[string]any) {
	stored, _ := doc["etcd"].(map[string]any)
	if stored == nil {
		stored = map[string]any{}
	}
	if external, ok := etcd["external"].(map[string]any); ok && stored["local"] == nil {
		stored["external"] = external
	}
	if desired, ok := etcd["local"].(map[string]any); ok && stored["external"] == nil {
		local, _ := stored["local"].(map[string]any)
		if local == nil {
			local = map[string]any{}
		}
		for _, field := range []string{"imageRepository", "imageTag", "extraArgs", "serverCertSANs", "peerCertSANs"} {
			delete(local, field)
		}
		maps.Copy(local, asOf(doc, desired))
		stored["local"] = local
	}
	if len(stored) > 0 {
		doc["etcd"] = stored
	}
}

// normalize removes empty objects from a converted document, which are not in JSON.
func normalize(doc map[string]any) {
	for name, value := range doc {
		inner, ok := value.(map[string]any)
		if !ok {
			continue
		}
		normalize(inner)
		if len(inner) == 0 && name != "local" {
			delete(doc, name)
		}
	}
}
