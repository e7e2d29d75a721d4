package packages

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestContractsOfCore(t *testing.T) {
	for _, tt := range []struct {
		reason string
		core   Core
		want   []string
	}{
		{"v1.10 and older know one contract", Core{"cluster-api", "v1.7.9", "v1beta1"}, []string{"v1beta1"}},
		{"v1.11 and later also know the one before", Core{"cluster-api", "v1.14.0", "v1beta2"}, []string{"v1beta1", "v1beta2"}},
		{"ours knows both, for either metadata", Core{"cluster-api", "v2.0.0", "v1beta1"}, []string{"v1beta1", "v1beta2"}},
		{"ours knows both without metadata", Core{"cluster-api", "v2.1.0-rc.1", ""}, []string{"v1beta1", "v1beta2"}},
		{"a version that no longer does says so", Core{"cluster-api", "v2.9.0", "v1beta3"}, []string{"v1beta3"}},
		{"nothing is known of later ones", Core{"cluster-api", "v3.0.0", ""}, nil},
		{"another core is as its metadata says", Core{"fork", "v2.0.0", "v1beta1"}, []string{"v1beta1"}},
		{"an old one", Core{"cluster-api", "v0.4.8", "v1alpha4"}, []string{"v1alpha4"}},
		{"nothing is known without metadata", Core{"cluster-api", "v1.9.0", ""}, nil},
	} {
		if diff := cmp.Diff(tt.want, tt.core.Contracts()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
		}
	}
}
