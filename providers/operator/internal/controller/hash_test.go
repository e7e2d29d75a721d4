package controller

import (
	"testing"

	"k8s.io/utils/ptr"

	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
)

func TestHash(t *testing.T) {
	base := &operatorv1.CoreProvider{Spec: operatorv1.ProviderSpec{Version: "v1.0.0"}}
	for _, tc := range []struct {
		reason string
		change func(*operatorv1.CoreProvider)
		same   bool
	}{
		{"nothing", func(*operatorv1.CoreProvider) {}, true},
		{"the location of releases", func(p *operatorv1.CoreProvider) { p.Spec.FetchConfig = &operatorv1.FetchConfiguration{URL: "x"} }, true},
		{"the version", func(p *operatorv1.CoreProvider) { p.Spec.Version = "v1.0.1" }, false},
		{"the Secret", func(p *operatorv1.CoreProvider) { p.Spec.SecretName = ptr.To("x") }, false},
		{"the pause", func(p *operatorv1.CoreProvider) { p.Spec.Paused = true }, false},
		{"an annotation of others", func(p *operatorv1.CoreProvider) { annotate(p, "a", "true") }, true},
		{"what the components may contain", func(p *operatorv1.CoreProvider) { annotate(p, operatorv1.AllowAllPermissionsAnnotation, "true") }, false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			changed := base.DeepCopy()
			tc.change(changed)
			if same := hashOf(base) == hashOf(changed); same != tc.same {
				t.Errorf("the hash is the same: %t, want %t", same, tc.same)
			}
		})
	}
}
