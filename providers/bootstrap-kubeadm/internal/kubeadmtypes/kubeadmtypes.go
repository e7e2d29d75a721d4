// Package kubeadmtypes encodes kubeadm configurations in the API version that kubeadm of a Kubernetes version
// supports.
//
// Our types are those of kubeadm's v1beta3. v1beta2 is the same with fewer fields; v1beta4.go has the differences of v1beta4.
package kubeadmtypes

import (
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
)

const (
	v1beta2 = "kubeadm.k8s.io/v1beta2"
	v1beta3 = "kubeadm.k8s.io/v1beta3"
	v1beta4 = "kubeadm.k8s.io/v1beta4"
)

// versionFor returns the API version for a Kubernetes version. Pre-release identifiers are ignored.
func versionFor(kubernetes string) (string, error) {
	v, err := release(kubernetes)
	switch {
	case err != nil:
		return "", err
	case v.GTE(semver.MustParse("1.31.0")):
		return v1beta4, nil
	case v.GTE(semver.MustParse("1.22.0")):
		return v1beta3, nil
	case v.GTE(semver.MustParse("1.15.0")):
		return v1beta2, nil
	}
	return "", fmt.Errorf("version %q is too old: the lowest supported version of kubeadm is v1.15.0", kubernetes)
}

// release parses a Kubernetes version, without pre-release identifiers.
func release(kubernetes string) (semver.Version, error) {
	v, err := semver.ParseTolerant(strings.TrimPrefix(kubernetes, "v"))
	if err != nil {
		return v, fmt.Errorf("version %q is not a semantic version: %w", kubernetes, err)
	}
	v.Pre, v.Build = nil, nil
	return v, nil
}

// Extra has settings of v1beta4 that our types do not have, or have elsewhere. Earlier versions ignore them.
type Extra struct {
	// EncryptionAlgorithm is that of the keys that kubeadm generates. If empty, or unknown to kubeadm of the version, it is kubeadm's
	// default. kubeadm join reads it from the cluster.
	EncryptionAlgorithm string
	// ControlPlaneTimeout is the time that kubeadm join waits for the components of a control plane. Init takes it from the
	// ClusterConfiguration; kubeadm join reads it from the cluster up to v1beta3. If nil, it is kubeadm's default.
	ControlPlaneTimeout *metav1.Duration
}

// Init returns the configuration of kubeadm init: two YAML documents.
func Init(cluster *bootstrapv1.ClusterConfiguration, init *bootstrapv1.InitConfiguration, extra Extra, kubernetes string) (string, error) {
	first, err := marshal(kubeadm.RenderedCluster(cluster), "ClusterConfiguration", kubernetes,
		func(doc map[string]any) { toCluster(doc, extra, kubernetes) })
	if err != nil {
		return "", err
	}
	rendered := *init
	rendered.NodeRegistration = kubeadm.RenderedNode(init.NodeRegistration)
	second, err := marshal(&rendered, "InitConfiguration", kubernetes,
		func(doc map[string]any) { toNode(doc, cluster.APIServer.TimeoutForControlPlane) })
	if err != nil {
		return "", err
	}
	return "---\n" + first + "---\n" + second, nil
}

// Join returns the configuration of kubeadm join.
func Join(join *bootstrapv1.JoinConfiguration, extra Extra, kubernetes string) (string, error) {
	rendered := *join
	rendered.NodeRegistration = kubeadm.RenderedNode(join.NodeRegistration)
	out, err := marshal(&rendered, "JoinConfiguration", kubernetes, func(doc map[string]any) { toNode(doc, extra.ControlPlaneTimeout) })
	return "---\n" + out, err
}

// marshal encodes a configuration. The function changes it from v1beta3 to v1beta4.
func marshal(config any, kind, kubernetes string, toV1beta4 func(map[string]any)) (string, error) {
	version, err := versionFor(kubernetes)
	if err != nil {
		return "", err
	}
	doc, err := runtime.DefaultUnstructuredConverter.ToUnstructured(config)
	if err != nil {
		return "", fmt.Errorf("converting %s: %w", kind, err)
	}
	doc["apiVersion"], doc["kind"] = version, kind
	switch version {
	case v1beta2:
		dropNewFields(doc)
	case v1beta4:
		toV1beta4(doc)
	}
	raw, err := yaml.Marshal(doc)
	if err != nil {
		return "", fmt.Errorf("rendering %s: %w", kind, err)
	}
	return string(raw), nil
}

// dropNewFields removes fields that v1beta2 does not have: kubeadm rejects unknown fields.
func dropNewFields(doc map[string]any) {
	delete(doc, "skipPhases")
	delete(doc, "patches")
	if registration, ok := doc["nodeRegistration"].(map[string]any); ok {
		delete(registration, "imagePullPolicy")
	}
}
