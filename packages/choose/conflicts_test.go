package choose

import (
	stdcmp "cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/components"
	"sigs.k8s.io/cluster-api/packages/inventory"
	"sigs.k8s.io/cluster-api/packages/manifest"
)

const rbac = "apiVersion: rbac.authorization.k8s.io/v1\n"

func parsed(t *testing.T, text string) []unstructured.Unstructured {
	t.Helper()
	objects, err := manifest.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// release returns the components of a provider with labels, as they are installed.
func release(t *testing.T, kind clusterctlv1.ProviderType, name, text string) *components.Components {
	t.Helper()
	p := packages.Provider{Name: name, Type: kind}
	c, err := components.New(p, []byte(text), components.Options{Version: "v2.0.0", TargetNamespace: "ns"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestConflicts: neither init nor upgrades replace objects of others silently.
func TestConflicts(t *testing.T) {
	const (
		role   = rbac + "kind: ClusterRole\nmetadata: {name: r}\nrules: [{apiGroups: [x.io], resources: [things], verbs: [get]}]\n"
		users  = rbac + "kind: ClusterRole\nmetadata: {name: r}\nrules: [{nonResourceURLs: [/foreign], verbs: [get]}]\n"
		config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: ns}\ndata: {a: b}\n"
		other  = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: ns}\ndata: {a: other}\n"
	)
	labeled := func(text string, labels map[string]string) []unstructured.Unstructured {
		objects := parsed(t, text)
		components.AddLabels(objects, labels)
		return objects
	}
	of := func(text, label string) []unstructured.Unstructured {
		return labeled(text, map[string]string{"clusterctl.cluster.x-k8s.io": "", "cluster.x-k8s.io/provider": label})
	}
	const label = "kubectl label clusterrole.rbac.authorization.k8s.io r cluster.x-k8s.io/provider=infrastructure-toy"
	const foreign = "infrastructure-toy v2.0.0: ClusterRole r exists already, and is of no provider: if it is of this one, set its label: " + label
	helm := inventory.Inventory{entry(clusterctlv1.AddonProviderType, "helm", "v1.0.0"), entry(clusterctlv1.BootstrapProviderType, "toy", "v1.0.0")}
	for _, tc := range []struct {
		reason, components string
		existing           []unstructured.Unstructured
		install, upgrade   string
	}{
		{"an object of nobody", role, labeled(users, map[string]string{"team": "a"}), foreign + "; --validate=false overwrites it", foreign + "; otherwise rename or delete it"},
		{"the same content, with what the API server adds", role, labeled(role, map[string]string{"team": "a"}), "", ""},
		{"its own object", role, of(users, "infrastructure-toy"), "", ""},
		{"installed with kubectl", role, labeled(users, map[string]string{"cluster.x-k8s.io/provider": "infrastructure-toy"}), "", ""},
		{"the label of the provider was removed", role, labeled(users, map[string]string{"clusterctl.cluster.x-k8s.io": ""}), "", ""},
		{"left by a provider that is gone", role, of(users, "addon-gone"), "", ""},
		{"of cert-manager", role, labeled(users, map[string]string{"clusterctl.cluster.x-k8s.io": "", "clusterctl.cluster.x-k8s.io/core": "cert-manager"}),
			"ClusterRole r would replace a part of cert-manager", "ClusterRole r would replace a part of cert-manager"},
		{"an object of another provider", config, of(other, "addon-helm"),
			"infrastructure-toy v2.0.0: ConfigMap ns/c belongs to provider addon-helm: delete that provider first", "warning: infrastructure-toy v2.0.0 replaces ConfigMap ns/c of provider addon-helm"},
		{"definitions that providers of a project share", role, of(users, "bootstrap-toy"),
			"warning: infrastructure-toy v2.0.0 replaces ClusterRole r of provider bootstrap-toy", "warning: infrastructure-toy v2.0.0 replaces ClusterRole r"},
		{"an object of users in the namespace", config, parsed(t, other), "", ""},
		{"a namespace", "apiVersion: v1\nkind: Namespace\nmetadata: {name: ns, labels: {a: b}}\n", parsed(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: ns}\n"), "", ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			b := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme)
			for i := range tc.existing {
				b = b.WithObjects(&tc.existing[i])
			}
			c := release(t, clusterctlv1.InfrastructureProviderType, "toy", tc.components)
			s := newSurvey(b.Build(), helm, nil)
			problems, warnings, err := s.newConflicts(t.Context(), []*components.Components{c})
			if err != nil {
				t.Fatal(err)
			}
			shows(t, "install", tc.install, lines("", problems...), lines("warning: ", warnings...))
			problems, texts, err := s.replacements(t.Context(), []*components.Components{c})
			if err != nil {
				t.Fatal(err)
			}
			if len(texts) > 0 {
				texts[0] = "warning: " + texts[0]
			}
			shows(t, "upgrade", tc.upgrade, lines("", problems...), texts)
		})
	}
}

func lines(prefix string, list ...error) []string {
	var texts []string
	for _, err := range list {
		texts = append(texts, prefix+err.Error())
	}
	return texts
}

func shows(t *testing.T, what, want string, got ...[]string) {
	t.Helper()
	var all []string
	for _, list := range got {
		all = append(all, list...)
	}
	text := strings.Join(all, "\n")
	if (want == "") != (text == "") || !strings.Contains(text, want) {
		t.Errorf("%s: want %q, got %q", what, want, text)
	}
}

// TestCollisions: providers that are installed together do not replace each other's objects.
func TestCollisions(t *testing.T) {
	const config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: b}\n"
	first := release(t, clusterctlv1.AddonProviderType, "helm", config)
	for reason, tc := range map[string]struct {
		second *components.Components
		want   []string
	}{
		"the same content": {release(t, clusterctlv1.InfrastructureProviderType, "toy", config), nil},
		"the same project": {release(t, clusterctlv1.InfrastructureProviderType, "helm", strings.Replace(config, "b}", "c}", 1)), nil},
		"another content": {release(t, clusterctlv1.InfrastructureProviderType, "toy", strings.Replace(config, "b}", "c}", 1)),
			[]string{"addon-helm v2.0.0 and infrastructure-toy v2.0.0 both have ConfigMap ns/c: install them in different namespaces or versions, or only one of them"}},
	} {
		s := newSurvey(fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build(), nil, nil)
		problems, _, err := s.newConflicts(t.Context(), []*components.Components{first, tc.second})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, lines("", problems...)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", reason, diff)
		}
	}
}

// TestPublishedReleases: releases of other projects, read in place, can be installed together, and their feature gates are found.
func TestPublishedReleases(t *testing.T) {
	root := filepath.Join(stdcmp.Or(os.Getenv("CAPI_FACTS_DIR"), filepath.Join("..", "..", "..", "shared", "facts")), "data", "providers")
	files, err := filepath.Glob(filepath.Join(root, "*-v*", "components.yaml"))
	if err != nil || len(files) == 0 {
		t.Skipf("there are no published releases: set CAPI_FACTS_DIR to the directory with data/providers (%v)", err)
	}
	gated := map[string]string{"aws": "CAPA_EKS", "azure": "EXP_MACHINE_POOL", "openstack": "EXP_CAPO_PRIORITY_QUEUE", "vsphere": "EXP_NODE_ANTI_AFFINITY"}
	var all []*components.Components
	for _, file := range files {
		name, _, _ := strings.Cut(filepath.Base(filepath.Dir(file)), "-")
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p := packages.Provider{Name: name, Type: clusterctlv1.InfrastructureProviderType}
		c, err := components.New(p, raw, components.Options{Version: "v1.0.0", Variables: func(string) (string, bool) { return "eA==", true }})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
		unreplaced, err := components.New(p, raw, components.Options{Version: "v1.0.0"})
		if err != nil {
			t.Fatal(err)
		}
		var variables []string
		for _, expression := range gatesOf(unreplaced.Objects) {
			if variable, _, ok := variableOf(expression); ok {
				variables = append(variables, variable)
			}
		}
		if want := gated[name]; want != "" && !slices.Contains(variables, want) {
			t.Errorf("%s: the variables of its feature gates are %v", name, variables)
		}
	}
	var problems []error
	for i := range all {
		for j := range i {
			if problem := collision(all[j], all[i]); problem != nil {
				problems = append(problems, problem)
			}
		}
	}
	if len(problems) > 0 {
		t.Errorf("the releases have objects in common: %v", problems)
	}
}
