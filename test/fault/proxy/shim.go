package proxy

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"sigs.k8s.io/cluster-api/sdk/pki"
)

// redirect replaces the server in the kubeconfigs of workload clusters by the proxy's, in a Secret or a list of Secrets. It
// does not change anything else.
func (p *Proxy) redirect(ctx context.Context, body []byte) ([]byte, error) {
	object := map[string]any{}
	if err := utiljson.Unmarshal(body, &object); err != nil {
		return nil, err
	}
	secrets := []any{object}
	if items, isList := object["items"].([]any); isList {
		secrets = items
	}
	changed := false
	for _, one := range secrets {
		secret, _ := one.(map[string]any)
		did, err := p.redirectSecret(ctx, secret)
		if err != nil {
			return nil, err
		}
		changed = changed || did
	}
	if !changed {
		return body, nil
	}
	return utiljson.Marshal(object)
}

func (p *Proxy) redirectSecret(ctx context.Context, secret map[string]any) (bool, error) {
	namespace, _, _ := unstructured.NestedString(secret, "metadata", "namespace")
	name, _, _ := unstructured.NestedString(secret, "metadata", "name")
	cluster, isKubeconfig := strings.CutSuffix(name, "-"+string(pki.Kubeconfig))
	encoded, hasData, _ := unstructured.NestedString(secret, "data", pki.KubeconfigKey)
	if !isKubeconfig || !hasData {
		return false, nil
	}
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return false, err
	}
	shim, err := p.shim(ctx, types.NamespacedName{Namespace: namespace, Name: cluster}, raw)
	if err != nil {
		return false, fmt.Errorf("redirecting the kubeconfig of %s/%s: %w", namespace, cluster, err)
	}
	config, err := clientcmd.Load(raw)
	if err != nil {
		return false, err
	}
	for _, c := range config.Clusters {
		c.Server = shim.url()
	}
	if raw, err = clientcmd.Write(*config); err != nil {
		return false, err
	}
	return true, unstructured.SetNestedField(secret, base64.StdEncoding.EncodeToString(raw), "data", pki.KubeconfigKey)
}

// shim returns the endpoint for a workload cluster, which is opened for the first kubeconfig. The manager trusts it because
// the cluster's own CA signs its certificate, and it connects with the client certificate of the kubeconfig.
func (p *Proxy) shim(ctx context.Context, cluster types.NamespacedName, kubeconfig []byte) (*endpoint, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := cluster.String() + " " + string(kubeconfig)
	if e := p.shims[key]; e != nil {
		return e, nil
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	authority, err := p.authorityOf(ctx, cluster)
	if err != nil {
		return nil, err
	}
	e, err := p.open(config, authority, cluster.Namespace, cluster.Name)
	if err != nil {
		return nil, err
	}
	p.shims[key] = e
	return e, nil
}

func (p *Proxy) authorityOf(ctx context.Context, cluster types.NamespacedName) (*pki.CA, error) {
	client, err := kubernetes.NewForConfig(p.options.Admin)
	if err != nil {
		return nil, err
	}
	key := pki.SecretKey(cluster, pki.ClusterCA)
	secret, err := get(ctx, client, key)
	if err != nil {
		return nil, err
	}
	return pki.CAFrom(secret)
}

func get(ctx context.Context, client kubernetes.Interface, key types.NamespacedName) (*corev1.Secret, error) {
	return client.CoreV1().Secrets(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
}
