package kubeadm

import "testing"

func TestChangeKubeletLocalMode(t *testing.T) {
	tests := []struct {
		reason, version string
		gates           map[string]bool
		set, remove     bool
	}{
		{reason: "kubeadm does not have the gate yet", version: "v1.30.9"},
		{reason: "the first version that has it", version: "v1.31.0-alpha.1", set: true},
		{reason: "the last version that has it", version: "v1.35.7", gates: map[string]bool{"Other": true}, set: true},
		{reason: "the first version that no longer has it", version: "v1.36.0", remove: true},
		{reason: "a later version", version: "v1.37.1+build", remove: true},
		{reason: "the spec turns it off", version: "v1.31.0", gates: map[string]bool{KubeletLocalMode: false}},
		{reason: "the spec has what is an error", version: "v1.36.0", gates: map[string]bool{KubeletLocalMode: true}},
		{reason: "another major version", version: "v2.31.0"},
		{reason: "no version", version: ""},
		{reason: "an invalid version", version: "latest"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			if set, remove := ChangeKubeletLocalMode(tt.gates, tt.version); set != tt.set || remove != tt.remove {
				t.Errorf("set %t, remove %t, want %t and %t", set, remove, tt.set, tt.remove)
			}
		})
	}
}
