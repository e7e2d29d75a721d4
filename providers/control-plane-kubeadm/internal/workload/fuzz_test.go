package workload

import (
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	corev1 "k8s.io/api/core/v1"

	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
)

// seeds adds realistic and hostile documents.
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

// Invalid documents are errors, and changes are idempotent.
func FuzzDocuments(f *testing.F) {
	seeds(f)
	config := &bootstrapv1beta1.ClusterConfiguration{
		ImageRepository: "r", Etcd: bootstrapv1beta1.Etcd{Local: &bootstrapv1beta1.LocalEtcd{}},
		APIServer: bootstrapv1beta1.APIServer{ControlPlaneComponent: bootstrapv1beta1.ControlPlaneComponent{ExtraArgs: map[string]string{"v": "4"}}},
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
		if err == nil && len(edited) > 16*maxDocument {
			t.Errorf("%d bytes become %d", len(text), len(edited))
		}
	})
}

// Migrations are deterministic, and their results are valid.
func FuzzCorefile(f *testing.F) {
	seeds(f)
	for _, text := range []string{
		".:53 {\n    errors\n    health\n    ready\n    kubernetes cluster.local in-addr.arpa ip6.arpa {\n       pods insecure\n       upstream\n       fallthrough in-addr.arpa ip6.arpa\n       ttl 30\n    }\n    prometheus :9153\n    proxy . /etc/resolv.conf\n    cache 30\n    loop\n    reload\n    loadbalance\n}\n",
		"example.org {\n    forward . 1.1.1.1 {\n        max_concurrent 1000\n    }\n}\n.:53 {\n    federation a b\n    autopath @kubernetes\n}\n", "a:53, b:54 {\n}\n", ". {\n    hosts {\n        10.0.0.1 é\n        fallthrough\n    }\n}\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 16<<10 {
			t.Skip("long")
		}
		migrated, err := migrate("1.8.0", "1.11.1", text)
		again, errAgain := migrate("1.8.0", "1.11.1", text)
		if migrated != again || (err == nil) != (errAgain == nil) {
			t.Errorf("%q becomes %q, %v, then %q, %v", text, migrated, err, again, errAgain)
		}
		if err != nil {
			return
		}
		if unchanged, err := migrate("1.11.1", "1.11.1", migrated); err == nil && unchanged != migrated {
			t.Errorf("%q becomes %q, which becomes %q", text, migrated, unchanged)
		}
	})
}

// Parsed images have the same text, except for a digest, and a change has the tag of the configuration.
func FuzzImage(f *testing.F) {
	for _, text := range []string{"registry.k8s.io/coredns/coredns:v1.11.1", "k8s.gcr.io/coredns:1.8.0", "r:5000/x/y:v1.9.3-eks.1", "a:1.8.6_vmware.5", "a@sha256:0123456789012345678901234567890123456789012345678901234567890123", "a:b@sha256:0123456789012345678901234567890123456789012345678901234567890123", "", ":", "é:v1", "A:v1.0.0", "a:v1", "k8s.gcr.io:443/a:v1.8.0", "a/b/:v1.0.0"} {
		f.Add(text, "registry.example.com/dns/", "v1.11.1")
		f.Add(text, "", "v1.99.0")
		f.Add(text, "k8s.gcr.io", "")
	}
	f.Fuzz(func(t *testing.T, text, repository, tag string) {
		parsed, err := parseImage(text)
		if err == nil {
			again, err := parseImage(parsed.String())
			if err != nil || again != parsed || !strings.HasPrefix(text, parsed.String()) {
				t.Errorf("%q is read as %+v, written as %q, read as %+v, %v", text, parsed, parsed, again, err)
			}
		}
		config := &bootstrapv1.ClusterConfiguration{DNS: bootstrapv1.DNS{ImageMeta: bootstrapv1.ImageMeta{ImageRepository: repository, ImageTag: tag}}}
		change, err := dnsChangeOf(text, config)
		if err != nil || change == nil {
			return
		}
		if change.to.LT(change.from) {
			t.Errorf("%q is downgraded from %s to %s", text, change.from, change.to)
		}
		if tag != "" && !strings.HasSuffix(change.image, ":"+tag) {
			t.Errorf("%q with tag %q becomes %q", text, tag, change.image)
		}
		if next, err := dnsChangeOf(change.image, config); err == nil && next != nil {
			t.Errorf("%q becomes %q, which becomes %q", text, change.image, next.image)
		}
	})
}
