package kubeadmtypes

import (
	"maps"
	"slices"
	"time"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
)

// toCluster changes a ClusterConfiguration from v1beta3 to v1beta4. The timeout of the API server has moved to the configuration
// of each machine, see toNode.
func toCluster(doc map[string]any, algorithm, kubernetes string) {
	unstructured.RemoveNestedField(doc, "apiServer", "timeoutForControlPlane")
	for _, component := range [][]string{{"apiServer"}, {"controllerManager"}, {"scheduler"}, {"etcd", "local"}} {
		listArgs(doc, append(component, "extraArgs")...)
	}
	if knowsAlgorithm(algorithm, kubernetes) {
		doc["encryptionAlgorithm"] = algorithm
	}
}

// toNode changes an InitConfiguration or JoinConfiguration from v1beta3 to v1beta4. of are its timeouts.
func toNode(doc map[string]any, of bootstrapv1.Timeouts) {
	listArgs(doc, "nodeRegistration", "kubeletExtraArgs")
	timeouts := map[string]any{}
	if seconds := of.ControlPlaneComponentHealthCheckSeconds; seconds != nil {
		timeouts["controlPlaneComponentHealthCheck"] = (time.Duration(*seconds) * time.Second).String()
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
