package workload

import (
	"maps"
	"slices"

	"github.com/blang/semver/v4"
)

const (
	v1beta2 = "kubeadm.k8s.io/v1beta2"
	v1beta3 = "kubeadm.k8s.io/v1beta3"
	v1beta4 = "kubeadm.k8s.io/v1beta4"
)

// convert converts a ClusterConfiguration to the API version that kubeadm of a Kubernetes version expects. kubeadm only writes it
// when it initializes a cluster: it warns about an old version when Machines join, and later does not read it at all. It is
// converted as soon as kubeadm of all Machines that may join reads the new version: workers can be three minor versions behind
// the control plane, before v1.28 two.
func convert(doc map[string]any, kubernetes string) {
	version, err := semver.ParseTolerant(kubernetes)
	if err != nil {
		return // Another part of the rollout reports it.
	}
	if doc["apiVersion"] == v1beta2 && version.GTE(semver.MustParse("1.24.0")) { // v1.22 reads v1beta3.
		doc["apiVersion"] = v1beta3
		delete(doc, "useHyperKubeImage")
		if dns, ok := doc["dns"].(map[string]any); ok {
			delete(dns, "type")
		}
	}
	if doc["apiVersion"] == v1beta3 && version.GTE(semver.MustParse("1.34.0")) { // v1.31 reads v1beta4.
		doc["apiVersion"] = v1beta4
		for _, field := range []string{"apiServer", "controllerManager", "scheduler"} {
			if component, ok := doc[field].(map[string]any); ok {
				doc[field] = asOf(doc, component)
			}
		}
		if etcd, ok := doc["etcd"].(map[string]any); ok {
			if local, ok := etcd["local"].(map[string]any); ok {
				etcd["local"] = asOf(doc, local)
			}
		}
	}
}

// asOf converts a component from v1beta3 to the API version of the document. From v1beta4 on, arguments are a list, and the
// timeout of the API server is another field.
func asOf(doc, component map[string]any) map[string]any {
	switch doc["apiVersion"] {
	case "kubeadm.k8s.io/v1beta1", v1beta2, v1beta3:
		return component
	}
	delete(component, "timeoutForControlPlane")
	args, ok := component["extraArgs"].(map[string]any)
	if !ok {
		return component
	}
	list := make([]any, 0, len(args))
	for _, name := range slices.Sorted(maps.Keys(args)) {
		list = append(list, map[string]any{"name": name, "value": args[name]})
	}
	component["extraArgs"] = list
	return component
}
