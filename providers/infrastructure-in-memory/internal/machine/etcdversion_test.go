package machine

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
	"sigs.k8s.io/cluster-api/sdk/pki"
)

// TestEtcdImage is the version of etcd that kubeadm starts: of its configuration, or else the default of the Kubernetes version.
func TestEtcdImage(t *testing.T) {
	for _, tc := range []struct{ reason, configured, want string }{
		{reason: "the default", want: "3.5.15-0"},
		{reason: "the tag of the configuration", configured: "3.5.24-0", want: "3.5.24-0"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			k := newKubeadmWorld(t, pki.ECDSA)
			data := k.initData()
			if tc.configured != "" {
				data = strings.Replace(data, "kind: ClusterConfiguration\n",
					"kind: ClusterConfiguration\n      etcd: {local: {imageTag: "+tc.configured+"}}\n", 1)
			}
			k.add(t, "cp1", true, data)
			k.reconcile(t, "cp1")
			k.token(t, as)
			k.add(t, "cp2", true, k.joinData(goodToken, pki.PublicKeyHash(k.ca.Certificate), true))
			k.reconcile(t, "cp2")
			for _, name := range []string{"cp1", "cp2"} {
				pod, err := store.Get[corev1.Pod](k.group(t), metav1.NamespaceSystem, "etcd-"+name)
				must(t, err)
				if got := pod.Spec.Containers[0].Image; got != "registry.k8s.io/etcd:"+tc.want {
					t.Errorf("%s runs %s, want tag %s", name, got, tc.want)
				}
			}
		})
	}
}
