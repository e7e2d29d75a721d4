package kubeadm

import "testing"

func TestHasKubeletLocalMode(t *testing.T) {
	for version, want := range map[string][2]bool{
		"v1.30.9": {}, "v1.31.0-alpha.1": {true, false}, "v1.31.0": {true, false}, "v1.35.7": {true, false}, "v1.36.0": {false, true},
		"v1.37.1+build": {false, true}, "v2.31.0": {}, "": {}, "latest": {},
	} {
		if has, removed := HasKubeletLocalMode(version); [2]bool{has, removed} != want {
			t.Errorf("version %q: has %t, removed %t, want %v", version, has, removed, want)
		}
	}
}
