package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// Spec is the spec of a control plane, with which Machines are compared. Machines record its kubeadmConfigSpec in annotations, in the
// form of v1beta1: other versions of Cluster API read them, and an empty section differs there from none.
type Spec struct {
	controlplanev1.KubeadmControlPlaneSpec
	older bootstrapv1beta1.KubeadmConfigSpec
	// since is when the control plane was created.
	since metav1.Time
}

// SpecOf returns the spec of a control plane.
func SpecOf(ctx context.Context, kcp *controlplanev1.KubeadmControlPlane) (Spec, error) {
	older := &controlplanev1beta1.KubeadmControlPlane{}
	converted := &controlplanev1.KubeadmControlPlane{
		ObjectMeta: metav1.ObjectMeta{Namespace: kcp.Namespace, Name: kcp.Name, Annotations: kcp.Annotations}, Spec: kcp.Spec,
	}
	if err := conversion.Shared().Convert(ctx, converted, older); err != nil {
		return Spec{}, err
	}
	return Spec{KubeadmControlPlaneSpec: kcp.Spec, older: older.Spec.KubeadmConfigSpec, since: kcp.CreationTimestamp}, nil
}

// ClusterConfiguration returns clusterConfiguration as kubeadm and clients of v1beta1 know it; nil if there is none.
func (s Spec) ClusterConfiguration() *bootstrapv1beta1.ClusterConfiguration {
	return s.older.ClusterConfiguration
}

// ConfigAnnotation is the annotation of Machines with a hash of the kubeadmConfigSpec that they were created from, without
// clusterConfiguration, which is recorded in another annotation. Their KubeadmConfigs may differ from that spec, because third-party
// webhooks may have changed them, as they would change that of a replacement.
const ConfigAnnotation = "controlplane.cluster.x-k8s.io/kubeadm-config-hash"

// Record sets the annotations of a Machine that is created from the spec.
func (s Spec) Record(annotations map[string]string) error {
	recorded, err := json.Marshal(s.older.ClusterConfiguration)
	if err != nil {
		return fmt.Errorf("recording clusterConfiguration: %w", err)
	}
	hash, err := s.hash()
	if err != nil {
		return err
	}
	annotations[ConfigAnnotation] = hash
	annotations[controlplanev1beta1.KubeadmClusterConfigurationAnnotation] = string(recorded)
	return nil
}

// abandonedUpdate is the value of ConfigAnnotation of a Machine whose update in place was abandoned.
const abandonedUpdate = "update-in-place-abandoned"

// RecordAbandoned records on a Machine that an update in place could not be completed. Its objects may be as desired although the machine
// itself is not, so that it is always outdated.
func RecordAbandoned(m *clusterv1.Machine) {
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, ConfigAnnotation, abandonedUpdate)
}

// Abandoned reports whether an update in place of a Machine could not be completed.
func Abandoned(m *clusterv1.Machine) bool { return m.Annotations[ConfigAnnotation] == abandonedUpdate }

// IsRecord reports whether Record sets an annotation.
func IsRecord(annotation string) bool {
	return annotation == ConfigAnnotation || annotation == controlplanev1beta1.KubeadmClusterConfigurationAnnotation
}

// hash returns the value of ConfigAnnotation.
func (s Spec) hash() (string, error) {
	spec := s.older
	spec.ClusterConfiguration = nil
	encoded, err := json.Marshal(spec)
	if err != nil {
		return "", fmt.Errorf("encoding kubeadmConfigSpec: %w", err)
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:]), nil
}

// created reports whether the Machine was created from the current kubeadmConfigSpec. If not, or if that is unknown, it may still be the
// same.
func (s Spec) created(m *Machine) bool {
	recorded, ok := m.Annotations[ConfigAnnotation]
	if !ok {
		return false
	}
	wanted, err := s.hash()
	return err == nil && wanted == recorded
}
