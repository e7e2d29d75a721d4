package machine

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
	"sigs.k8s.io/cluster-api/sdk/step"
)

const (
	// clusterInfoName and clusterInfoKey are the ConfigMap in kube-public that kubeadm init publishes, and its key.
	clusterInfoName, clusterInfoKey = "cluster-info", "kubeconfig"

	joinersGroup = "system:bootstrappers:kubeadm:default-node-token"
	corefile     = `.:53 {
    errors
    health
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa
    forward . /etc/resolv.conf
    cache 30
}
`
)

// addons creates the objects that kubeadm, and the API server itself, create in a new cluster.
func (c *Controller) addons(_ context.Context, s *scope) (step.Result, error) {
	version := s.machine.Spec.Version
	proxy, dns := newProxy(version), newDNS()
	steps := []func() error{
		func() error { _, err := store.Ensure(s.group, apiService(s)); return err },
		func() error { _, err := store.Ensure(s.group, kubeadmConfig(s, version)); return err },
		func() error { return ensureClusterInfo(s) },
		func() error { _, err := store.Ensure(s.group, nodeReader()); return err },
		func() error { _, err := store.Ensure(s.group, nodeReaderBinding()); return err },
		func() error { _, err := store.Ensure(s.group, proxy); return err },
		func() error { _, err := store.Ensure(s.group, dnsConfig()); return err },
		func() error { _, err := store.Ensure(s.group, dns); return err },
	}
	for _, ensure := range steps {
		if err := ensure(); err != nil {
			return step.Done(), fmt.Errorf("creating kubeadm's objects: %w", err)
		}
	}
	return step.Done(), nil
}

// apiService returns the Service that every API server creates for itself. Its presence tells clients that the start has completed.
func apiService(s *scope) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Name: "kubernetes", Labels: map[string]string{"component": "apiserver", "provider": "kubernetes"},
		},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, SessionAffinity: corev1.ServiceAffinityNone, ClusterIP: "10.96.0.1",
			ClusterIPs: []string{"10.96.0.1"},
			Ports: []corev1.ServicePort{{Name: "https", Protocol: corev1.ProtocolTCP, Port: 443,
				TargetPort: intstr.FromInt32(s.cluster.Spec.ControlPlaneEndpoint.Port)}},
		},
	}
}

func system(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name}
}

func kubeadmConfig(s *scope, version string) *corev1.ConfigMap {
	config := fmt.Sprintf("apiVersion: kubeadm.k8s.io/v1beta3\nkind: ClusterConfiguration\nclusterName: %s\ncontrolPlaneEndpoint: %s\n"+
		"kubernetesVersion: %s\n",
		s.cluster.Name, s.cluster.Spec.ControlPlaneEndpoint.String(), version)
	switch {
	case s.externalEtcd:
		// The endpoints are unknown after a restart without journals. JSON is YAML, too.
		endpoints, _ := json.Marshal(s.data.ExternalEtcd) // Strings always encode.
		config += "etcd:\n  external:\n    endpoints: " + string(endpoints) + "\n"
	case s.data.EtcdTag != "":
		tag, _ := json.Marshal(s.data.EtcdTag)
		config += "etcd:\n  local:\n    imageTag: " + string(tag) + "\n"
	}
	return &corev1.ConfigMap{ObjectMeta: system(kubeadmConfigName), Data: map[string]string{clusterConfigurationKey: config}}
}

// ensureClusterInfo creates the ConfigMap by which machines that join recognize the cluster.
func ensureClusterInfo(s *scope) error {
	authority := s.endpoint.Authority()
	if authority == nil {
		return nil
	}
	if _, err := store.Get[corev1.ConfigMap](s.group, metav1.NamespacePublic, clusterInfoName); !apierrors.IsNotFound(err) {
		return err
	}
	trusted, err := cert.EncodeCertificates(authority)
	if err != nil {
		return err
	}
	if s.data.CA != "" {
		trusted = []byte(s.data.CA) // After a rotation, it may be another one.
	}
	config, err := clientcmd.Write(clientcmdapi.Config{Clusters: map[string]*clientcmdapi.Cluster{"": {
		Server: "https://" + s.cluster.Spec.ControlPlaneEndpoint.String(), CertificateAuthorityData: trusted,
	}}})
	if err != nil {
		return err
	}
	_, err = store.Ensure(s.group, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespacePublic, Name: clusterInfoName},
		Data:       map[string]string{clusterInfoKey: string(config)},
	})
	return err
}

func nodeReader() *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "kubeadm:get-nodes"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}}},
	}
}

func nodeReaderBinding() *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "kubeadm:get-nodes"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "kubeadm:get-nodes"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: joinersGroup}},
	}
}

func podsOf(app, image string) (*metav1.LabelSelector, corev1.PodTemplateSpec) {
	labels := map[string]string{"k8s-app": app}
	return &metav1.LabelSelector{MatchLabels: labels}, corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: app, Image: image}}},
	}
}

func newProxy(version string) *appsv1.DaemonSet {
	selector, template := podsOf("kube-proxy", "registry.k8s.io/kube-proxy:"+version)
	return &appsv1.DaemonSet{ObjectMeta: system("kube-proxy"), Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template}}
}

func dnsConfig() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: system("coredns"), Data: map[string]string{"Corefile": corefile}}
}

func newDNS() *appsv1.Deployment {
	selector, template := podsOf("coredns", "registry.k8s.io/coredns/coredns:v1.10.1")
	template.Spec.Volumes = []corev1.Volume{{Name: "config-volume", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "coredns"}, Items: []corev1.KeyToPath{{Key: "Corefile", Path: "Corefile"}},
	}}}}
	return &appsv1.Deployment{ObjectMeta: system("coredns"),
		Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](2), Selector: selector, Template: template}}
}
