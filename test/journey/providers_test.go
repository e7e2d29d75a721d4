package journey

import (
	"maps"
	"slices"
	"testing"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// TestProvidersOfOtherProjects takes released infrastructure providers of other projects, in place, through what users do with
// clusterctl: init, upgrade plan, generate, plan, apply, explain, describe, plan and do an upgrade of Kubernetes, upgrade the provider, move,
// delete; most of them in soak tests only. cert-manager and webhooks are simulated; the managers, which would call clouds, do not run. When
// every Cluster waits for its infrastructure, simulation stands in for them. What is tested is in the book, in infrastructure.md.
func TestProvidersOfOtherProjects(t *testing.T) {
	t.Parallel()
	releases := providerReleases(managedHost)
	maps.DeleteFunc(releases, func(_ string, r providerRelease) bool { return !r.always && !testenv.Soaks() })
	p := NewProviders(t, ProviderOptions{Tools: shared.Management(t).Tools, Names: slices.Sorted(maps.Keys(releases)), All: true})
	p.Install()
	for _, name := range p.names {
		t.Run("example/"+name, func(t *testing.T) { p.example(t, name) })
	}
	p.Apply()
	if n := int(p.webhooks.calls.Load()); n < 8*len(p.names) {
		t.Errorf("the providers' webhooks were called %d times only", n)
	}
	p.Provision()
	p.Live()
	p.Delete()
}
