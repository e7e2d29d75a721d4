package check

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/sdk/pki"
)

// addServers tells which API servers the workload clusters have.
func (s *source) addServers(w *workloads) {
	for cluster := range s.facts.clusters {
		key := pki.SecretKey(cluster, pki.Kubeconfig)
		if server := serverIn(s.objects[keyOf(secretResource.GroupResource(), key.Namespace, key.Name)]); server != "" {
			w.add(cluster.String(), server)
		}
	}
}

// serverIn returns the address in the kubeconfig of an encoded Secret, or nothing.
func serverIn(secret []byte) string {
	var o struct {
		Data map[string]string `json:"data"`
	}
	if json.Unmarshal(secret, &o) != nil {
		return ""
	}
	kubeconfig, err := base64.StdEncoding.DecodeString(o.Data[pki.KubeconfigKey])
	if err != nil {
		return ""
	}
	config, err := pki.LoadKubeconfig(kubeconfig)
	if err != nil {
		return ""
	}
	context := config.Contexts[config.CurrentContext]
	if context == nil || config.Clusters[context.Cluster] == nil {
		return ""
	}
	return strings.TrimSuffix(config.Clusters[context.Cluster].Server, "/")
}

// keyFrom returns the name in the text of a NamespacedName.
func keyFrom(text string) types.NamespacedName {
	namespace, name, _ := strings.Cut(text, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}
