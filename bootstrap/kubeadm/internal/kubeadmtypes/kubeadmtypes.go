// Package kubeadmtypes encodes kubeadm configurations in the API version that kubeadm of a Kubernetes version
// supports.
//
// Our types are those of kubeadm's v1beta3; v1beta2 is the same with fewer fields.
package kubeadmtypes

import (
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
)

const (
	v1beta2 = "kubeadm.k8s.io/v1beta2"
	v1beta3 = "kubeadm.k8s.io/v1beta3"
)

// versionFor returns the API version for a Kubernetes version. Pre-release identifiers are ignored.
func versionFor(kubernetes string) (string, error) {
	v, err := semver.ParseTolerant(strings.TrimPrefix(kubernetes, "v"))
	if err != nil {
		return "", fmt.Errorf("version %q is not a semantic version: %w", kubernetes, err)
	}
	v.Pre, v.Build = nil, nil
	switch {
	case v.GTE(semver.MustParse("1.22.0")):
		return v1beta3, nil
	case v.GTE(semver.MustParse("1.15.0")):
		return v1beta2, nil
	}
	return "", fmt.Errorf("version %q is too old: the lowest supported version of kubeadm is v1.15.0", kubernetes)
}

// Init returns the configuration of kubeadm init: two YAML documents.
func Init(cluster *bootstrapv1.ClusterConfiguration, init *bootstrapv1.InitConfiguration, kubernetes string) (string, error) {
	first, err := marshal(cluster, "ClusterConfiguration", kubernetes)
	if err != nil {
		return "", err
	}
	second, err := marshal(init, "InitConfiguration", kubernetes)
	if err != nil {
		return "", err
	}
	return "---\n" + first + "---\n" + second, nil
}

// Join returns the configuration of kubeadm join.
func Join(join *bootstrapv1.JoinConfiguration, kubernetes string) (string, error) {
	out, err := marshal(join, "JoinConfiguration", kubernetes)
	return "---\n" + out, err
}

func marshal(config any, kind, kubernetes string) (string, error) {
	version, err := versionFor(kubernetes)
	if err != nil {
		return "", err
	}
	doc, err := runtime.DefaultUnstructuredConverter.ToUnstructured(config)
	if err != nil {
		return "", fmt.Errorf("converting %s: %w", kind, err)
	}
	doc["apiVersion"], doc["kind"] = version, kind
	if version == v1beta2 {
		dropNewFields(doc)
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
