package workload

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/blang/semver/v4"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
)

// seeds are documents as they are, and as whoever runs a workload cluster could make them.
func seeds(f *testing.F) {
	f.Helper()
	for _, text := range []string{
		"", "\x00", "[]", "a", "{", "- a", "null", "1", "apiVersion: kubeadm.k8s.io/v1beta4\netcd: 1", "etcd: {local: [], external: 3}", "etcd: {external: {}}",
		"apiVersion: kubeadm.k8s.io/v1beta3\nkind: ClusterConfiguration\nimageRepository: k8s.gcr.io\netcd:\n  local:\n    dataDir: /x\n",
		"imageRepository: []", "kind: [a]\napiVersion: {}", "a: &a [*a]", "a: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]", strings.Repeat("[", 1000), strings.Repeat("{a: ", 1000),
		"cgroupDriver: 1", "cgroupDriver: [systemd]", "? {a: b}\n: c", "1: 2", "~: x", "!!binary x", "a: 1e999",
		".:53 {\n    errors\n    health {\n       lameduck 5s\n    }\n    kubernetes cluster.local\n    forward . /etc/resolv.conf\n}\n",
		"{", "}", ".:53 {", "a {\n b {\n c {", "import x", "(snip) {\n}", "\"", "{$ENV}", "{{", ".:53 { }\n }",
	} {
		f.Add(text)
	}
}

// Whatever a workload cluster holds is an error at worst.
func FuzzDocuments(f *testing.F) {
	seeds(f)
	config := &bootstrapv1.ClusterConfiguration{
		ImageRepository: "r", Etcd: bootstrapv1.Etcd{Local: &bootstrapv1.LocalEtcd{}},
		APIServer: bootstrapv1.APIServer{ControlPlaneComponent: bootstrapv1.ControlPlaneComponent{ExtraArgs: map[string]string{"v": "4"}}},
	}
	f.Fuzz(func(t *testing.T, text string) {
		do := func(doc map[string]any) error { return adopt(doc, config) }
		edited, changed, err := edit(text, do)
		if err == nil && changed {
			if _, again, err := edit(edited, do); again || err != nil {
				t.Errorf("%q becomes %q, which is changed again: %t, error %v", text, edited, again, err)
			}
		}
		kubelet := &corev1.ConfigMap{Data: map[string]string{kubeletKey: text}}
		if changed, err := setCgroupDriver(kubelet, semver.MustParse("1.30.0")); err == nil && changed {
			if again, err := setCgroupDriver(kubelet, semver.MustParse("1.30.0")); again || err != nil {
				t.Errorf("%q becomes %q, which is changed again: %t, error %v", text, kubelet.Data[kubeletKey], again, err)
			}
		}
		_, _ = migrate("1.8.0", "1.11.1", text)
	})
}
