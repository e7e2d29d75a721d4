package kubeadm

import (
	"testing"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"
)

func TestDefaultEtcdTag(t *testing.T) {
	for version, want := range map[string]string{
		"v1.21.3": "3.4.13-0", "v1.22.0": "3.5.0-0", "v1.31.2": "3.5.15-0", "v1.33.0": "3.5.21-0", "v1.34.1": "3.6.4-0", "v1.36.0": "3.6.8-0",
		"v1.40.0": "3.6.8-0", "": "3.6.8-0",
	} {
		got := DefaultEtcdTag(version)
		if got != want {
			t.Errorf("%s: got %s, want %s", version, got, want)
		}
		if minimum, known := EtcdOf(version, ""); known && version != "" {
			if v, _ := ParseEtcd(got); v.LT(minimum) {
				t.Errorf("%s: %s is older than %s, the least version", version, got, minimum)
			}
		}
	}
}

func TestEtcdOf(t *testing.T) {
	cases := []struct {
		reason, kubernetes, tag string
		want                    string
	}{
		{"a tag of kubeadm", "v1.33.4", "3.5.21-0", "3.5.21"},
		{"a tag with a v", "v1.33.4", "v3.5.9", "3.5.9"},
		{"a tag of a vendor", "v1.33.4", "v3.5.9_vmware.4", "3.5.9"},
		{"a tag without a patch version", "v1.33.4", "3.5", ""},
		{"four numbers are no version of etcd", "v1.33.4", "3.5.9.1", ""},
		{"a date is no version of etcd", "v1.34.0", "2025.10.01", ""},
		{"a custom tag", "v1.34.0", "stable", ""},
		{"a number that no version has", "v1.34.0", "3.5.99999999999999999999", ""},
		{"the patch version of the default is unknown", "v1.33.4", "", ""},
		{"the first default of 3.6", "v1.34.0", "", "3.6.0"},
		{"the newest known version", "v1.36.3", "", "3.6.0"},
		{"later versions are treated like the newest one", "v1.37.0-alpha.1", "", "3.6.0"},
		{"a version that is invalid", "1.34", "", ""},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			got := ""
			if v, known := EtcdOf(tc.kubernetes, tc.tag); known {
				got = v.String()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("etcd (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEtcdTooOld(t *testing.T) {
	cases := []struct {
		reason, member, joining string
		want                    bool
	}{
		{"3.6 takes voters of the last unfit version for learners", "3.5.19", "3.6.0", true},
		{"the first fit version", "3.5.20", "3.6.0", false},
		{"no minor version is left out", "3.4.13", "3.6.5", true},
		{"within a minor version", "3.5.3", "3.5.24", false},
		{"one minor version up", "3.4.13", "3.5.15", false},
		{"down", "3.6.5", "3.5.24", false},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			if got := EtcdTooOld(semver.MustParse(tc.member), semver.MustParse(tc.joining)); got != tc.want {
				t.Errorf("too old: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestEtcdStarts(t *testing.T) {
	cases := []struct {
		reason, kubernetes, etcd string
		want                     bool
	}{
		{"kubeadm has flags for either version of etcd", "v1.35.2", "3.5.24", true},
		{"kubeadm has flags of 3.6 only", "v1.36.0", "3.5.24", false},
		{"with its own version", "v1.36.0", "3.6.8", true},
		{"later versions are treated like the newest one", "v1.37.1", "3.5.24", false},
		{"an unknown version of Kubernetes", "latest", "3.5.24", true},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			if got := EtcdStarts(tc.kubernetes, semver.MustParse(tc.etcd)); got != tc.want {
				t.Errorf("starts: %t, want %t", got, tc.want)
			}
		})
	}
}
