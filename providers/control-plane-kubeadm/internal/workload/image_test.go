package workload

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
)

func TestDNSImage(t *testing.T) {
	dns := func(repository, tag string) *bootstrapv1.ClusterConfiguration {
		return &bootstrapv1.ClusterConfiguration{DNS: bootstrapv1.DNS{ImageMeta: bootstrapv1.ImageMeta{ImageRepository: repository, ImageTag: tag}}}
	}
	all := func(repository, tag string) *bootstrapv1.ClusterConfiguration {
		c := dns("", tag)
		c.ImageRepository = repository
		return c
	}
	const digest = "@sha256:0123456789012345678901234567890123456789012345678901234567890123"
	tests := map[string]struct {
		reason  string
		from    string
		config  *bootstrapv1.ClusterConfiguration
		want    string
		wantErr string
	}{
		"NothingAsked":   {reason: "Any image is fine, even one without a version.", from: "example.com/coredns:latest", config: dns("", "")},
		"Same":           {reason: "The image does not change.", from: "example.com/coredns:v1.9.3", config: dns("example.com", "v1.9.3")},
		"Pinned":         {reason: "A digest is kept as long as the tag is.", from: "example.com/coredns:v1.9.3" + digest, config: dns("", "v1.9.3")},
		"PinnedTagMoves": {reason: "A digest belongs to its tag.", from: "example.com/coredns:v1.9.3" + digest, config: dns("", "v1.11.1"), want: "example.com/coredns:v1.11.1"},
		"Tag":            {reason: "The repository stays.", from: "registry.k8s.io/coredns/coredns:v1.9.3", config: dns("", "v1.11.1"), want: "registry.k8s.io/coredns/coredns:v1.11.1"},
		"Repository":     {reason: "The tag stays.", from: "registry.k8s.io/coredns/coredns:v1.9.3", config: dns("example.com/dns/", ""), want: "example.com/dns/coredns:v1.9.3"},
		"AllImages":      {reason: "CoreDNS is where all images are.", from: "registry.k8s.io/coredns/coredns:v1.9.3", config: all("example.com:5000/k8s", ""), want: "example.com:5000/k8s/coredns:v1.9.3"},
		"Default":        {reason: "In the registry of Kubernetes it is one level deeper.", from: "example.com/coredns:v1.9.3", config: all("registry.k8s.io", ""), want: "registry.k8s.io/coredns/coredns:v1.9.3"},
		"DefaultOld":     {reason: "It was not before v1.8.0.", from: "example.com/coredns:1.7.0", config: all("registry.k8s.io", ""), want: "registry.k8s.io/coredns:1.7.0"},
		"Frozen":         {reason: "The old registry has no new images.", from: "k8s.gcr.io/coredns/coredns:v1.8.6", config: dns("", "v1.11.1"), want: "registry.k8s.io/coredns/coredns:v1.11.1"},
		"Moved":          {reason: "It moved one level deeper with v1.8.0.", from: "registry.k8s.io/coredns:1.7.0", config: dns("", "v1.11.1"), want: "registry.k8s.io/coredns/coredns:v1.11.1"},
		"NotFrozen":      {reason: "Only whole names count.", from: "k8s.gcr.io.example.com/coredns:v1.9.3", config: dns("", "v1.11.1"), want: "k8s.gcr.io.example.com/coredns:v1.11.1"},
		"NoRepository":   {reason: "An image need not have a registry.", from: "coredns:v1.9.3", config: dns("", "v1.11.1"), want: "coredns:v1.11.1"},
		"Vendor":         {reason: "Vendors add suffixes to versions.", from: "example.com/coredns:v1.8.6_vmware.5", config: dns("", "v1.9.3_vmware.1"), want: "example.com/coredns:v1.9.3_vmware.1"},
		"Back":           {reason: "Downgrades are errors.", from: "example.com/coredns:v1.9.3", config: dns("", "v1.8.6"), wantErr: "cannot downgrade CoreDNS from v1.9.3 to v1.8.6"},
		"NoVersion":      {reason: "The current version must be known.", from: "example.com/coredns:latest", config: dns("", "v1.9.3"), wantErr: `image tag "latest" must begin with a version`},
		"NoTag":          {reason: "An image without a tag has no version.", from: "example.com/coredns", config: dns("", "v1.9.3"), wantErr: "has no tag"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			change, err := dnsChangeOf(tc.from, tc.config)
			if (err == nil) != (tc.wantErr == "") || (err != nil && !strings.Contains(err.Error(), tc.wantErr)) {
				t.Fatalf("%s\ndnsChangeOf(): %v, want %q", tc.reason, err, tc.wantErr)
			}
			got := ""
			if change != nil {
				got = change.image
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\ndnsChangeOf(): -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestProxyImage(t *testing.T) {
	mirror := &bootstrapv1.ClusterConfiguration{ImageRepository: "example.com/k8s/"}
	tests := map[string]struct {
		reason  string
		from    string
		version string
		config  *bootstrapv1.ClusterConfiguration
		want    string
	}{
		"Same":    {reason: "The image does not change.", from: "registry.k8s.io/kube-proxy:v1.29.0", version: "v1.29.0", want: "registry.k8s.io/kube-proxy:v1.29.0"},
		"Upgrade": {reason: "The tag is the version.", from: "registry.k8s.io/kube-proxy:v1.28.0", version: "v1.29.0", want: "registry.k8s.io/kube-proxy:v1.29.0"},
		"Mirror":  {reason: "It is where all images are.", from: "registry.k8s.io/kube-proxy:v1.29.0", version: "v1.29.0", config: mirror, want: "example.com/k8s/kube-proxy:v1.29.0"},
		"Frozen":  {reason: "The old registry has no new images.", from: "k8s.gcr.io/kube-proxy:v1.24.0", version: "v1.25.0", want: "registry.k8s.io/kube-proxy:v1.25.0"},
		"Build":   {reason: "Tags have no plus sign.", from: "example.com/kube-proxy:v1.28.0", version: "v1.29.0+vendor.1", want: "example.com/kube-proxy:v1.29.0_vendor.1"},
		"Name":    {reason: "Some images have other names.", from: "example.com/kube-proxy-amd64:v1.28.0", version: "v1.29.0", want: "example.com/kube-proxy-amd64:v1.29.0"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := proxyImage(tc.from, controlPlane(tc.version, tc.config))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nproxyImage(): -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
