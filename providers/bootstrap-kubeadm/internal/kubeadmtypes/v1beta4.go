package kubeadmtypes

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
)

// defaultAlgorithm is kubeadm's default of encryptionAlgorithm.
const defaultAlgorithm = "RSA-2048"

// toCluster changes a ClusterConfiguration from v1beta3 to v1beta4, and adds what only v1beta4 has. The timeout of the API server has
// moved to the configuration of each machine, see toNode.
func toCluster(doc map[string]any, config *bootstrapv1.ClusterConfiguration, algorithm, kubernetes string) error {
	unstructured.RemoveNestedField(doc, "apiServer", "timeoutForControlPlane")
	for _, component := range [][]string{{"apiServer"}, {"controllerManager"}, {"scheduler"}, {"etcd", "local"}} {
		listArgs(doc, append(component, "extraArgs")...)
	}
	if algorithm == defaultAlgorithm {
		algorithm = "" // The configuration is that of other versions of Cluster API, which do not write what is kubeadm's default.
	}
	if algorithm = cmp.Or(string(config.EncryptionAlgorithm), algorithm); knowsAlgorithm(algorithm, kubernetes) {
		doc["encryptionAlgorithm"] = algorithm
	}
	return kubeadm.AddV1Beta4(doc, config)
}

// toNode changes an InitConfiguration or JoinConfiguration from v1beta3 to v1beta4, and adds what only v1beta4 has. of are its timeouts.
//
// v1beta3 has one timeout for discovery and TLS bootstrap, which is tlsBootstrapSeconds: it is that of discovery, too, unless
// discoverySeconds is set.
func toNode(doc map[string]any, registration bootstrapv1.NodeRegistrationOptions, of bootstrapv1.Timeouts) {
	listArgs(doc, "nodeRegistration", "kubeletExtraArgs")
	unstructured.RemoveNestedField(doc, "discovery", "timeout")
	if fields, ok := doc["nodeRegistration"].(map[string]any); ok && registration.ImagePullSerial != nil {
		fields["imagePullSerial"] = *registration.ImagePullSerial
	}
	timeouts := map[string]any{}
	for name, seconds := range map[string]*int32{
		"controlPlaneComponentHealthCheck": of.ControlPlaneComponentHealthCheckSeconds,
		"kubeletHealthCheck":               of.KubeletHealthCheckSeconds,
		"kubernetesAPICall":                of.KubernetesAPICallSeconds,
		"etcdAPICall":                      of.EtcdAPICallSeconds,
		"tlsBootstrap":                     of.TLSBootstrapSeconds,
		"discovery":                        cmp.Or(of.DiscoverySeconds, of.TLSBootstrapSeconds),
	} {
		if seconds != nil {
			timeouts[name] = (time.Duration(*seconds) * time.Second).String()
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
