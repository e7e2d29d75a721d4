package v1alpha3

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestProvider(t *testing.T) {
	type facts struct {
		Type         ProviderType
		Order        int
		Label        string
		InstanceName string
	}
	tests := map[string]struct {
		reason string
		kind   string
		want   facts
	}{
		"Core":           {reason: "no prefix", kind: "CoreProvider", want: facts{CoreProviderType, 0, "x", "ns/n"}},
		"Bootstrap":      {reason: "prefixed", kind: "BootstrapProvider", want: facts{BootstrapProviderType, 1, "bootstrap-x", "ns/n"}},
		"ControlPlane":   {reason: "prefixed", kind: "ControlPlaneProvider", want: facts{ControlPlaneProviderType, 2, "control-plane-x", "ns/n"}},
		"Infrastructure": {reason: "prefixed", kind: "InfrastructureProvider", want: facts{InfrastructureProviderType, 3, "infrastructure-x", "ns/n"}},
		"IPAM":           {reason: "prefixed", kind: "IPAMProvider", want: facts{IPAMProviderType, 4, "ipam-x", "ns/n"}},
		"Extension":      {reason: "prefixed", kind: "RuntimeExtensionProvider", want: facts{RuntimeExtensionProviderType, 5, "runtime-extension-x", "ns/n"}},
		"Addon":          {reason: "prefixed", kind: "AddonProvider", want: facts{AddonProviderType, 6, "addon-x", "ns/n"}},
		"Unknown":        {reason: "last of all", kind: "Elsewhere", want: facts{ProviderTypeUnknown, 99, "x", "ns/n"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := &Provider{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "n"}, ProviderName: "x", Type: tc.kind}
			got := facts{p.GetProviderType(), p.GetProviderType().Order(), p.ManifestLabel(), p.InstanceName()}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSameAs(t *testing.T) {
	p := Provider{ProviderName: "x", Type: "IPAMProvider", Version: "v1.0.0"}
	tests := map[string]struct {
		reason string
		other  Provider
		want   bool
	}{
		"Version": {reason: "versions do not matter", other: Provider{ProviderName: "x", Type: "IPAMProvider"}, want: true},
		"Name":    {reason: "another name is another provider", other: Provider{ProviderName: "y", Type: "IPAMProvider"}},
		"Type":    {reason: "another type is another provider", other: Provider{ProviderName: "x", Type: "AddonProvider"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := p.SameAs(tc.other); got != tc.want {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
}

func TestReleaseSeries(t *testing.T) {
	m := &Metadata{ReleaseSeries: []ReleaseSeries{
		{Major: 1, Minor: 7, Contract: "v1beta1"},
		{Major: 0, Minor: 9, Contract: "v1beta1"},
		{Major: 0, Minor: 4, Contract: "v1alpha4"},
		{Major: 1, Minor: 2, Contract: "v1beta1"},
	}}
	tests := map[string]struct {
		reason string
		get    func() *ReleaseSeries
		want   *ReleaseSeries
	}{
		"Version": {
			reason: "found by major and minor",
			get:    func() *ReleaseSeries { return m.GetReleaseSeriesForVersion(1, 2) },
			want:   &ReleaseSeries{Major: 1, Minor: 2, Contract: "v1beta1"},
		},
		"VersionUnknown": {
			reason: "nil for a version that is not listed",
			get:    func() *ReleaseSeries { return m.GetReleaseSeriesForVersion(0, 7) },
		},
		"Contract": {
			reason: "the newest, wherever it is listed",
			get:    func() *ReleaseSeries { return m.GetReleaseSeriesForContract("v1beta1") },
			want:   &ReleaseSeries{Major: 1, Minor: 7, Contract: "v1beta1"},
		},
		"ContractUnknown": {
			reason: "nil for a contract that is not listed",
			get:    func() *ReleaseSeries { return m.GetReleaseSeriesForContract("v1beta2") },
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.get()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
