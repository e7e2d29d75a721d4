package kubeadmtypes

import (
	"maps"
	"slices"

	"github.com/blang/semver/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// toCluster changes a ClusterConfiguration from v1beta3 to v1beta4. The timeout of the API server has moved to the configuration
// of each machine, see toNode.
func toCluster(doc map[string]any, extra Extra, kubernetes string) {
	unstructured.RemoveNestedField(doc, "apiServer", "timeoutForControlPlane")
	for _, component := range [][]string{{"apiServer"}, {"controllerManager"}, {"scheduler"}, {"etcd", "local"}} {
		listArgs(doc, append(component, "extraArgs")...)
	}
	if knowsAlgorithm(extra.EncryptionAlgorithm, kubernetes) {
		doc["encryptionAlgorithm"] = extra.EncryptionAlgorithm
	}
}

// toNode changes an InitConfiguration or JoinConfiguration from v1beta3 to v1beta4. controlPlane is the time to wait for the
// components of a control plane, nil for kubeadm's default.
func toNode(doc map[string]any, controlPlane *metav1.Duration) {
	listArgs(doc, "nodeRegistration", "kubeletExtraArgs")
	timeouts := map[string]any{}
	if controlPlane != nil {
		timeouts["controlPlaneComponentHealthCheck"] = controlPlane.Duration.String()
	}
	if discovery, ok := doc["discovery"].(map[string]any); ok {
		if timeout, ok := discovery["timeout"]; ok {
			timeouts["discovery"] = timeout
			delete(discovery, "timeout")
		}
	}
	if len(timeouts) > 0 {
		doc["timeouts"] = timeouts
	}
}

// listArgs changes a map of arguments to a list of names and values, in the order of names.
func listArgs(doc map[string]any, path ...string) {
	parent, ok, _ := unstructured.NestedFieldNoCopy(doc, path[:len(path)-1]...)
	holder, isMap := parent.(map[string]any)
	if !ok || !isMap {
		return
	}
	field := path[len(path)-1]
	args, ok := holder[field].(map[string]any)
	if !ok {
		return
	}
	list := make([]any, 0, len(args))
	for _, name := range slices.Sorted(maps.Keys(args)) {
		list = append(list, map[string]any{"name": name, "value": args[name]})
	}
	holder[field] = list
}

// knowsAlgorithm reports whether kubeadm of a Kubernetes version has an encryptionAlgorithm.
func knowsAlgorithm(algorithm, kubernetes string) bool {
	switch algorithm {
	case "RSA-2048", "RSA-3072", "RSA-4096", "ECDSA-P256":
		return true
	case "ECDSA-P384":
		v, err := release(kubernetes)
		return err == nil && v.GTE(semver.MustParse("1.34.0"))
	}
	return false
}
