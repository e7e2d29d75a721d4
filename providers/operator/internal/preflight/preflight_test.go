package preflight

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/providers/operator/internal/providerobject"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// at returns the metadata of the object that was created in this minute.
func at(minute int, namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name),
		CreationTimestamp: metav1.NewTime(time.Date(2030, 1, 1, 0, minute, 0, 0, time.UTC))}
}

func core(minute int, namespace, name string, change func(*operatorv1.CoreProvider)) providerobject.Provider {
	p := &operatorv1.CoreProvider{ObjectMeta: at(minute, namespace, name)}
	if change != nil {
		change(p)
	}
	return providerobject.Provider{Type: clusterctlv1.CoreProviderType, Object: p}
}

func infrastructure(minute int, namespace string, change func(*operatorv1.InfrastructureProvider)) providerobject.Provider {
	p := &operatorv1.InfrastructureProvider{ObjectMeta: at(minute, namespace, "aws")}
	if change != nil {
		change(p)
	}
	return providerobject.Provider{Type: clusterctlv1.InfrastructureProviderType, Object: p}
}

func ready(p *operatorv1.CoreProvider) { condition.Set(p, condition.True(operatorv1.ReadyCondition)) }

func TestCheck(t *testing.T) {
	version := func(installed, wanted string) func(*operatorv1.InfrastructureProvider) {
		return func(p *operatorv1.InfrastructureProvider) {
			p.Spec.Version = wanted
			if installed != "" {
				p.Status.InstalledVersion = ptr.To(installed)
			}
		}
	}
	cluster := core(0, "capi-system", "cluster-api", ready)
	for _, tc := range []struct {
		reason string
		p      providerobject.Provider
		others []providerobject.Provider
		want   *Failure
	}{
		{reason: "a core provider alone", p: core(0, "n", "cluster-api", nil)},
		{reason: "another one when the core provider is ready", p: infrastructure(1, "n", nil), others: []providerobject.Provider{cluster}},
		{reason: "no core provider", p: infrastructure(1, "n", nil),
			want: &Failure{Reason: "WaitingForCoreProviderReady", Message: "Waiting for a CoreProvider to exist"}},
		{reason: "the core provider is not ready", p: infrastructure(1, "n", nil), others: []providerobject.Provider{core(0, "n", "cluster-api", nil)},
			want: &Failure{Reason: "WaitingForCoreProviderReady", Message: "Waiting for CoreProvider n/cluster-api to be ready"}},
		{reason: "other core providers, which are not installed, do not matter", p: infrastructure(1, "n", nil),
			others: []providerobject.Provider{core(0, "a", "capi", nil), core(1, "a", "cluster-api", nil), cluster}},
		{reason: "an installed one does not wait for it", p: infrastructure(1, "n", version("v1.0.0", "v1.0.1")), others: []providerobject.Provider{core(0, "n", "cluster-api", nil)}},
		{reason: "no version", p: infrastructure(1, "n", version("", "latest")), others: []providerobject.Provider{cluster},
			want: &Failure{Reason: "IncorrectVersionFormat", Message: `spec.version "latest" is not a semantic version with the prefix v, such as v1.7.4`}},
		{reason: "no prefix", p: infrastructure(1, "n", version("", "1.0.0")), others: []providerobject.Provider{cluster},
			want: &Failure{Reason: "IncorrectVersionFormat", Message: `spec.version "1.0.0" is not a semantic version with the prefix v, such as v1.7.4`}},
		{reason: "an older minor version", p: infrastructure(1, "n", version("v1.2.0", "v1.1.9")), others: []providerobject.Provider{cluster},
			want: &Failure{Reason: "UnsupportedProviderDowngradeReason",
				Message: "spec.version v1.1.9 is of an older minor version than the installed v1.2.0: downgrades are not supported"}},
		{reason: "an older patch version", p: infrastructure(1, "n", version("v1.2.3", "v1.2.1")), others: []providerobject.Provider{cluster}},
		{reason: "the name of the core provider", p: core(0, "n", "capi", nil),
			want: &Failure{Reason: "IncorrectCoreProviderNameReason", Message: "metadata.name of a CoreProvider must be cluster-api"}},
		{reason: "an unknown provider", p: providerobject.Provider{Type: clusterctlv1.AddonProviderType, Object: &operatorv1.AddonProvider{ObjectMeta: at(1, "n", "mine")}},
			others: []providerobject.Provider{cluster}, want: &Failure{Reason: "UnknownProvider",
				Message: "the location of AddonProvider mine is not built in: set spec.fetchConfig, or correct metadata.name"}},
		{reason: "two locations", p: infrastructure(1, "n", func(p *operatorv1.InfrastructureProvider) {
			p.Spec.FetchConfig = &operatorv1.FetchConfiguration{URL: "https://x", Selector: &metav1.LabelSelector{}}
		}), others: []providerobject.Provider{cluster},
			want: &Failure{Reason: "FetchConfigValidationError", Message: "spec.fetchConfig must have exactly one of url, selector and oci"}},
		{reason: "the second object for a provider", p: infrastructure(2, "n", nil), others: []providerobject.Provider{cluster, infrastructure(1, "m", nil)},
			want: &Failure{Reason: "MoreThanOneExists",
				Message: "InfrastructureProvider m/aws exists: a management cluster can have one of each provider: delete one of both objects"}},
		{reason: "the first of two objects goes on", p: infrastructure(1, "m", nil), others: []providerobject.Provider{cluster, infrastructure(2, "n", nil)}},
		{reason: "of the same age, the namespace decides", p: infrastructure(1, "n", nil), others: []providerobject.Provider{cluster, infrastructure(1, "m", nil)},
			want: &Failure{Reason: "MoreThanOneExists",
				Message: "InfrastructureProvider m/aws exists: a management cluster can have one of each provider: delete one of both objects"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got := Check(tc.p, append([]providerobject.Provider{tc.p}, tc.others...), packages.Defaults())
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
