package choose

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/catalog"
	"sigs.k8s.io/cluster-api/packages/config"
	"sigs.k8s.io/cluster-api/packages/inventory"
	"sigs.k8s.io/cluster-api/packages/repository"
)

// gated is a Deployment with feature gates.
func gated(text string) string {
	return `apiVersion: apps/v1
kind: Deployment
metadata: {name: toy, namespace: infrastructure-toy-system, labels: {cluster.x-k8s.io/provider: infrastructure-toy}}
spec:
  selector: {matchLabels: {app: toy}}
  template:
    metadata: {labels: {app: toy}}
    spec: {containers: [{name: manager, image: i, args: [--v=1, "--feature-gates=` + text + `"]}]}
`
}

// gatedReleases returns a catalog with releases of a provider that have these feature gates.
func gatedReleases(t *testing.T, env map[string]string, versions map[string]string) *catalog.Catalog {
	t.Helper()
	root := t.TempDir()
	for version, text := range versions {
		folder := filepath.Join(root, "infrastructure-toy", version)
		if err := os.MkdirAll(folder, 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "infrastructure-components.yaml"), []byte(gated(text)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	conf := config.Default(func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	url := filepath.Join(root, "infrastructure-toy", "latest", "infrastructure-components.yaml")
	conf.Providers = []packages.Provider{{Name: "toy", Type: clusterctlv1.InfrastructureProviderType, URL: url}}
	return &catalog.Catalog{Config: conf, Store: repository.NewStore(repository.Options{})}
}

// TestGatesAreKept: an upgrade does not switch off what users have switched on, only because a variable is not set this time.
func TestGatesAreKept(t *testing.T) {
	const before, after = "A=${EXP_A:=false},B=${EXP_B:=false},C=true", "A=${EXP_A:=false},B=${EXP_B:=true},D=${EXP_D:=false}"
	both := map[string]string{"v1.0.0": before, "v1.1.0": after}
	const keeping = "Keeping feature gate A=true of infrastructure-toy; to change it, set EXP_A"
	for _, tc := range []struct {
		reason   string
		versions map[string]string
		env      map[string]string
		live     string
		want     string
		notes    []string
	}{
		{"what was switched on stays on; a default that has changed is the new one", both, nil, "A=true,B=false,C=true", "A=true,B=true,D=false", []string{keeping}},
		{"what was switched off by hand stays off", map[string]string{"v1.0.0": after, "v1.1.0": after}, nil, "A=false,B=false", "A=false,B=false,D=false",
			[]string{"Keeping feature gate B=false of infrastructure-toy; to change it, set EXP_B"}},
		{"a variable that is set counts", both, map[string]string{"EXP_A": "false"}, "A=true,B=false", "A=false,B=true,D=false", nil},
		{"defaults stay defaults", both, nil, "A=false,B=false,C=true", "A=false,B=true,D=false", nil},
		{"without the installed version, a change is announced", map[string]string{"v1.1.0": after}, nil, "A=true,B=true", "A=false,B=true,D=false",
			[]string{"warning: feature gate A of infrastructure-toy changes from true to false, because EXP_A is not set: to keep it, set EXP_A=true"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			c := gatedReleases(t, tc.env, tc.versions)
			p := &UpgradePlanner{Catalog: c}
			wanted := Wanted{Installed: infrastructure("v1.0.0"), Version: "v1.1.0"}
			release, err := c.Release(t.Context(), clusterctlv1.InfrastructureProviderType, packages.Ref{Name: "toy", Version: "v1.1.0"})
			if err != nil {
				t.Fatal(err)
			}
			rendered, err := c.Components(t.Context(), release, catalog.Options{TargetNamespace: wanted.Installed.Namespace})
			if err != nil {
				t.Fatal(err)
			}
			kept, notes, warnings, err := (&gateKeeper{p.Catalog}).keep(t.Context(), wanted, rendered, parsed(t, gated(tc.live)))
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range warnings {
				notes = append(notes, "warning: "+w)
			}
			if diff := cmp.Diff(tc.notes, notes); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			var list []string
			found := gatesOf(kept.Objects)
			for _, g := range sortedGates(found) {
				list = append(list, g.name+"="+found[g])
			}
			if got := strings.Join(list, ","); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// TestGatesOfInit: init says that it does not change feature gates of installed providers, and what does.
func TestGatesOfInit(t *testing.T) {
	for _, tc := range []struct {
		reason, live string
		env          map[string]string
		versions     map[string]string
		want         []string
	}{
		{"another value", "A=false", map[string]string{"EXP_A": "true"}, map[string]string{"v1.0.0": "A=${EXP_A:=false}"}, []string{
			"EXP_A is true, but feature gate A of infrastructure-toy stays false, because init does not change installed providers: " +
				"run `clusterctl upgrade apply --infrastructure toy:v1.0.0` with that variable"}},
		{"the same value", "A=true", map[string]string{"EXP_A": "true"}, map[string]string{"v1.0.0": "A=${EXP_A:=false}"}, nil},
		{"not set", "A=true", nil, map[string]string{"v1.0.0": "A=${EXP_A:=false}"}, nil},
		{"an unknown version", "A=false", map[string]string{"EXP_A": "true"}, nil, nil},
	} {
		objects := parsed(t, gated(tc.live))
		b := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(&objects[0])
		p := infrastructure("v1.0.0")
		var got []string
		planner := &InstallPlanner{Catalog: gatedReleases(t, tc.env, tc.versions), Client: b.Build(), Warn: func(err error) { got = append(got, err.Error()) }}
		planner.lookUpGates(t.Context(), []clusterctlv1.Provider{p})()
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
		}
	}
}

// TestGatesOfSilentRepository: a repository that does not respond neither fails nor delays init by more than a moment.
func TestGatesOfSilentRepository(t *testing.T) {
	c := gatedReleases(t, map[string]string{"EXP_A": "true"}, map[string]string{"v1.0.0": "A=${EXP_A:=false}"})
	far := entry(clusterctlv1.AddonProviderType, "far", "v1.0.0")
	c.Config.Providers = append(c.Config.Providers, packages.Provider{
		Name: "far", Type: clusterctlv1.AddonProviderType, URL: "https://github.com/o/r/releases/latest/addon-components.yaml"})
	near := parsed(t, gated("A=false"))[0]
	other := *near.DeepCopy()
	other.SetNamespace(far.Namespace)
	other.SetLabels(map[string]string{"cluster.x-k8s.io/provider": far.ManifestLabel()})
	cluster := managed(t, inventory.Inventory{core("v1.0.0"), infrastructure("v1.0.0"), far}, &near, &other)
	synctest.Test(t, func(t *testing.T) {
		server := &silent{}
		c.Store = repository.NewStore(repository.Options{HTTP: &http.Client{Transport: server}})
		var warnings []error
		p := &InstallPlanner{Catalog: c, Client: cluster, Warn: func(err error) { warnings = append(warnings, err) }}
		begin := time.Now()
		if _, err := p.Plan(t.Context(), InstallOptions{Selection: Selection{Infrastructure: []string{"toy"}}}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > time.Second || server.requests.Load() == 0 {
			t.Errorf("it took %s, with %d requests", took, server.requests.Load())
		}
		shows(t, "init", "EXP_A is true, but feature gate A of infrastructure-toy stays false", lines("", warnings...))
	})
}

// silent is a network that does not respond.
type silent struct{ requests atomic.Int32 }

func (s *silent) RoundTrip(r *http.Request) (*http.Response, error) {
	s.requests.Add(1)
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestFlagValues: both forms of the flag are read.
func TestFlagValues(t *testing.T) {
	for text, want := range map[string]string{
		"[--feature-gates=A=true]": "A=true", "[--feature-gates, A=true]": "A=true", "[--feature-gates]": "", "[--feature-gatesX=A=true]": "",
	} {
		objects := parsed(t, fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {template: {spec: {containers: [{name: m, args: %s}]}}}}", text))
		got := gatesOf([]unstructured.Unstructured{objects[0]})
		if value, ok := got[gate{"d", "m", "A"}]; ok != (want != "") || ok && "A="+value != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
