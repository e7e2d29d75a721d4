// Package kubeadmtypes encodes kubeadm configurations in the API version that kubeadm of a Kubernetes version
// supports.
//
// Package providers/internal/kubeadm converts ours to kubeadm's v1beta3. v1beta2 is the same with fewer fields; v1beta4.go has the
// differences of v1beta4.
package kubeadmtypes

import (
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
	"sigs.k8s.io/yaml"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
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

// Cluster is what kubeadm init must know about a cluster that a ClusterConfiguration does not have. What is empty is kubeadm's default.
type Cluster struct {
	// Name is the name of the cluster.
	Name string
	// Version is the Kubernetes version of the control plane.
	Version string
	// ServiceSubnet and PodSubnet are address ranges, separated by commas.
	ServiceSubnet, PodSubnet string
	// DNSDomain is the domain of Services.
	DNSDomain string
	// EncryptionAlgorithm is that of the keys that kubeadm generates, from v1beta4, unless the ClusterConfiguration has one. If unknown to
	// kubeadm of the version, it is kubeadm's default. kubeadm join reads it from the cluster.
	EncryptionAlgorithm string
}

// networking returns the networking of a ClusterConfiguration.
func (c Cluster) networking() map[string]any {
	out := map[string]any{}
	fill(out, "serviceSubnet", c.ServiceSubnet)
	fill(out, "podSubnet", c.PodSubnet)
	fill(out, "dnsDomain", c.DNSDomain)
	return out
}

func fill(doc map[string]any, field, value string) {
	if value != "" {
		doc[field] = value
	}
}

// Init returns the configuration of kubeadm init: two YAML documents.
func Init(
	config *bootstrapv1.ClusterConfiguration, init *bootstrapv1.InitConfiguration, cluster Cluster, kubernetes string,
) (string, error) {
	doc, err := kubeadm.RenderedCluster(config, init.Timeouts)
	if err != nil {
		return "", err
	}
	doc["networking"] = cluster.networking()
	fill(doc, "clusterName", cluster.Name)
	fill(doc, "kubernetesVersion", cluster.Version)
	first, err := marshal(doc, "ClusterConfiguration", kubernetes,
		func(doc map[string]any) error { return toCluster(doc, config, cluster.EncryptionAlgorithm, kubernetes) })
	if err != nil {
		return "", err
	}
	doc, err = kubeadm.RenderedInit(init)
	if err != nil {
		return "", err
	}
	second, err := marshal(doc, "InitConfiguration", kubernetes, func(doc map[string]any) error {
		toNode(doc, init.NodeRegistration, init.Timeouts)
		return nil
	})
	if err != nil {
		return "", err
	}
	return "---\n" + first + "---\n" + second, nil
}

// Join returns the configuration of kubeadm join. Up to v1beta3, kubeadm reads the timeout for the components of a control plane from the
// cluster.
func Join(join *bootstrapv1.JoinConfiguration, kubernetes string) (string, error) {
	doc, err := kubeadm.RenderedJoin(join)
	if err != nil {
		return "", err
	}
	out, err := marshal(doc, "JoinConfiguration", kubernetes, func(doc map[string]any) error {
		toNode(doc, join.NodeRegistration, join.Timeouts)
		return nil
	})
	return "---\n" + out, err
}

// marshal encodes a configuration. The function changes it from v1beta3 to v1beta4.
func marshal(doc map[string]any, kind, kubernetes string, toV1beta4 func(map[string]any) error) (string, error) {
	version, err := versionFor(kubernetes)
	if err != nil {
		return "", err
	}
	doc["apiVersion"], doc["kind"] = version, kind
	switch version {
	case v1beta2:
		dropNewFields(doc)
	case v1beta4:
		if err := toV1beta4(doc); err != nil {
			return "", err
		}
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
