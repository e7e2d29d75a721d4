package workload

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
)

// oldCorefile has options that CoreDNS v1.7.0 no longer supports.
const oldCorefile = `.:53 {
    errors
    health
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        upstream
        fallthrough in-addr.arpa ip6.arpa
    }
    prometheus :9153
    forward . /etc/resolv.conf
    cache 30
    loop
    reload
    loadbalance
}
`

// addons returns the add-ons of kubeadm.
func addons() []client.Object {
	pod := func(name, image string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "sidecar", Image: "x:1"}, {Name: name, Image: image}}}}
	}
	proxy := &appsv1.DaemonSet{ObjectMeta: system("kube-proxy")}
	proxy.Spec.Template = pod("kube-proxy", "registry.k8s.io/kube-proxy:v1.28.0")
	dns := &appsv1.Deployment{ObjectMeta: system("coredns")}
	dns.Spec.Template = pod("coredns", "k8s.gcr.io/coredns:1.6.5")
	dns.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "node-role.kubernetes.io/master", Effect: corev1.TaintEffectNoSchedule}}
	dns.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "config-volume", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "coredns"}, Items: []corev1.KeyToPath{{Key: "Corefile-backup", Path: "Corefile"}},
	}}}}
	return []client.Object{
		proxy, dns,
		configMap("coredns", map[string]string{"Corefile": oldCorefile}),
		configMap("kubeadm-config", map[string]string{"ClusterConfiguration": stored129}),
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "system:coredns"},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"endpoints"}, Verbs: []string{"list", "watch"}}},
		},
	}
}

func upgraded() *controlplanev1.KubeadmControlPlane {
	return controlPlane("v1.29.1", &bootstrapv1.ClusterConfiguration{DNS: bootstrapv1.DNS{ImageMeta: bootstrapv1.ImageMeta{ImageTag: "v1.11.1"}}})
}

func TestMaintain(t *testing.T) {
	c, requests := newCluster(t, addons()...)
	for i, want := range [][]string{
		{
			"get ClusterRole kubeadm:get-nodes", "create ClusterRole kubeadm:get-nodes",
			"get ClusterRoleBinding kubeadm:get-nodes", "create ClusterRoleBinding kubeadm:get-nodes",
			"get DaemonSet kube-proxy", "patch DaemonSet kube-proxy",
			"get Deployment coredns",
			"get ClusterRole system:coredns", "patch ClusterRole system:coredns",
			"get ConfigMap kubeadm-config", "patch ConfigMap kubeadm-config",
			"get ConfigMap coredns", "patch ConfigMap coredns",
			"patch Deployment coredns",
		},
		{"get DaemonSet kube-proxy", "get Deployment coredns"},
	} {
		if err := c.Maintain(t.Context(), upgraded()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, requests.requests()); diff != "" {
			t.Errorf("requests of call %d: -want +got:\n%s", i+1, diff)
		}
	}
	checkUpgraded(t, c)
}

// checkUpgraded checks add-ons after the upgrade.
func checkUpgraded(t *testing.T, c *Cluster) {
	t.Helper()
	proxy, dns, role := &appsv1.DaemonSet{}, &appsv1.Deployment{}, &rbacv1.ClusterRole{}
	for name, obj := range map[string]client.Object{"kube-proxy": proxy, "coredns": dns} {
		if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: name}, obj); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: "system:coredns"}, role); err != nil {
		t.Fatal(err)
	}
	got := map[string]any{
		"proxy": proxy.Spec.Template.Spec.Containers, "dns": dns.Spec.Template.Spec.Containers,
		"tolerations": dns.Spec.Template.Spec.Tolerations, "items": dns.Spec.Template.Spec.Volumes[0].ConfigMap.Items, "rules": role.Rules,
	}
	want := map[string]any{
		"proxy": []corev1.Container{{Name: "sidecar", Image: "x:1"}, {Name: "kube-proxy", Image: "registry.k8s.io/kube-proxy:v1.29.1"}},
		"dns":   []corev1.Container{{Name: "sidecar", Image: "x:1"}, {Name: "coredns", Image: "registry.k8s.io/coredns/coredns:v1.11.1"}},
		"tolerations": []corev1.Toleration{
			{Key: "node-role.kubernetes.io/master", Effect: corev1.TaintEffectNoSchedule},
			{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule},
		},
		"items": []corev1.KeyToPath{{Key: "Corefile", Path: "Corefile"}},
		"rules": []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"endpoints"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"list", "watch"}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	corefiles := data(t, c, "coredns")
	if corefiles["Corefile-backup"] != oldCorefile {
		t.Errorf("the old Corefile was not kept:\n%s", corefiles["Corefile-backup"])
	}
	if migrated := corefiles["Corefile"]; strings.Contains(migrated, "upstream") || !strings.Contains(migrated, "forward . /etc/resolv.conf") {
		t.Errorf("the Corefile was not migrated:\n%s", migrated)
	}
	config := document(t, data(t, c, "kubeadm-config")["ClusterConfiguration"])
	if diff := cmp.Diff(map[string]any{"imageTag": "v1.11.1"}, config["dns"]); diff != "" {
		t.Errorf("DNS in the configuration of kubeadm: -want +got:\n%s", diff)
	}
}

func TestMaintainIsContinued(t *testing.T) {
	for _, failing := range []string{
		"patch DaemonSet kube-proxy", "patch ClusterRole system:coredns", "patch ConfigMap kubeadm-config",
		"patch ConfigMap coredns", "patch Deployment coredns",
	} {
		t.Run(failing, func(t *testing.T) {
			c, requests := newCluster(t, addons()...)
			requests.fail[failing] = errors.New("the network is down")
			if err := c.Maintain(t.Context(), upgraded()); err == nil || !strings.Contains(err.Error(), "the network is down") {
				t.Fatalf("Maintain(): %v, want that the network is down", err)
			}
			delete(requests.fail, failing)
			if err := c.Maintain(t.Context(), upgraded()); err != nil {
				t.Fatal(err)
			}
			checkUpgraded(t, c)
		})
	}
}

func TestMaintainDoesNotChange(t *testing.T) {
	skipping := upgraded()
	skipping.Annotations = map[string]string{controlplanev1.SkipCoreDNSAnnotation: "", controlplanev1.SkipKubeProxyAnnotation: ""}
	unset := upgraded()
	unset.Spec.KubeadmConfigSpec.ClusterConfiguration = bootstrapv1.ClusterConfiguration{}
	tests := map[string]struct {
		reason  string
		kcp     *controlplanev1.KubeadmControlPlane
		objects []client.Object
		want    []string
	}{
		"Skipped": {reason: "Annotations exclude add-ons.", kcp: skipping, objects: addons()},
		"NotThere": {
			reason: "Add-ons that do not exist are not created.", kcp: upgraded(),
			want: []string{"get DaemonSet kube-proxy", "get Deployment coredns"},
		},
		"Unset": {
			reason: "Without a ClusterConfiguration, CoreDNS does not change.", kcp: unset, objects: addons(),
			want: []string{"get DaemonSet kube-proxy", "patch DaemonSet kube-proxy"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c, requests := newCluster(t, tc.objects...)
			if err := c.Maintain(t.Context(), tc.kcp); err != nil {
				t.Fatal(err)
			}
			const rbac = 4 // read and created
			if diff := cmp.Diff(tc.want, append([]string(nil), requests.requests()[rbac:]...)); diff != "" {
				t.Errorf("%s\nrequests: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDNSDowngradeIsAnError(t *testing.T) {
	c, requests := newCluster(t, addons()...)
	kcp := upgraded()
	kcp.Spec.KubeadmConfigSpec.ClusterConfiguration.DNS.ImageTag = "1.6.2"
	err := c.Maintain(t.Context(), kcp)
	if err == nil || !strings.Contains(err.Error(), "cannot downgrade CoreDNS from 1.6.5 to 1.6.2") {
		t.Errorf("Maintain(): %v", err)
	}
	for _, r := range requests.requests() {
		if strings.HasPrefix(r, "patch") && !strings.Contains(r, "kube-proxy") {
			t.Errorf("unexpected request: %s", r)
		}
	}
}
