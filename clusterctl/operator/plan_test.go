package operator

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/packages/catalog"
	"sigs.k8s.io/cluster-api/packages/components"
	"sigs.k8s.io/cluster-api/packages/replace"
	"sigs.k8s.io/cluster-api/packages/template"
)

// The error names what the user has to set: variables, image overrides or both.
func TestChanges(t *testing.T) {
	image := replace.Difference{Object: "Deployment a/m", Images: []string{"x/m:v1 instead of y/m:v1"}}
	role := replace.Difference{Object: "ClusterRole r", Other: true}
	const begin = "infrastructure-toy v1.0.0 is installed, and the operator would change "
	const end = " that it was installed with, or --validate=false to let the operator change it"
	for _, tc := range []struct {
		reason      string
		differences replace.Differences
		want        string
	}{
		{"images alone", replace.Differences{image},
			begin + "Deployment a/m (image x/m:v1 instead of y/m:v1): set the image overrides" + end},
		{"anything else", replace.Differences{role}, begin + "ClusterRole r: set the variables (it has A, B)" + end},
		{"both", replace.Differences{image, role},
			begin + "Deployment a/m (image x/m:v1 instead of y/m:v1), ClusterRole r: set the variables (it has A, B) and the image overrides" + end},
		{"many", replace.Differences{role, role, role, role, role, role, role},
			begin + "ClusterRole r, ClusterRole r, ClusterRole r, ClusterRole r, ClusterRole r and 2 more: set the variables (it has A, B)" + end},
	} {
		d := &Declaration{components: &components.Components{Variables: []template.Variable{{Name: "A"}, {Name: "B"}}}}
		d.Type, d.Name, d.Version = clusterctlv1.InfrastructureProviderType, "toy", "v1.0.0"
		if err := changes(d, tc.differences); err == nil || err.Error() != tc.want {
			t.Errorf("%s:\ngot  %v\nwant %s", tc.reason, err, tc.want)
		}
	}
}

// The operator replaces no objects of users and other programs, like providers; objects of an interrupted installation are its own.
func TestForeignObjects(t *testing.T) {
	const name = "ClusterRole capi-operator-manager-role"
	role := func(labels map[string]string, resource string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "capi-operator-manager-role"},
			"rules": []any{map[string]any{"apiGroups": []any{""}, "resources": []any{resource}, "verbs": []any{"get"}}},
		}}
		o.SetLabels(labels)
		return o
	}
	for _, tc := range []struct {
		reason   string
		existing *unstructured.Unstructured
		want     string
	}{
		{"of users", role(map[string]string{"team": "a"}, "pods"), "capi-operator v2.0.0: " + name + " exists already, and is not of capi-operator: if it is, set its label"},
		{"of a provider", role(map[string]string{"cluster.x-k8s.io/provider": "cluster-api"}, "pods"), "capi-operator v2.0.0: " + name + " belongs to provider cluster-api"},
		{"with the same content", role(map[string]string{"team": "a"}, "secrets"), ""},
		{"of an interrupted installation", role(Labels(), "pods"), ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			scheme, err := management.Scheme()
			if err != nil {
				t.Fatal(err)
			}
			core := &clusterctlv1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "cluster-api", Namespace: "capi-system"}, ProviderName: "cluster-api", Type: "CoreProvider", Version: "v2.0.0"}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(core, tc.existing).Build()
			all := releases(t, "v2.0.0")
			manifests := filepath.Join(filepath.Dir(filepath.Dir(all.Config.Providers[0].URL)), "v2.0.0", manifestsFile)
			content, err := yaml.Marshal(role(nil, "secrets").Object)
			if err == nil {
				content = append(content, "---\n{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: n}}\n"...)
				err = os.WriteFile(manifests, content, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			streams, buffers := iostreams.Test()
			p := &Planner{IO: streams, Catalog: all, Cluster: &management.Cluster{Client: c}}
			have := &state{inventory: []clusterctlv1.Provider{*core}}
			for what, got := range map[string]error{
				"init":    p.operator(t.Context(), have, Request{}, &Plan{}),
				"upgrade": (&Applier{IO: streams, Client: writeless{c}}).Replace(t.Context(), p.Cluster, read(t, all)),
			} {
				if tc.want == "" && (got == nil || errors.Is(got, errWrite)) {
					continue
				}
				if tc.want == "" || got == nil || !strings.HasPrefix(got.Error(), tc.want) {
					t.Errorf("%s: got %v, want %q", what, got, tc.want)
				}
			}
			if err := p.operator(t.Context(), have, Request{Lenient: true}, &Plan{}); err != nil || strings.Contains(buffers.Err.String(), "Warning") != (tc.want != "") {
				t.Errorf("with --validate=false: %v, %s", err, buffers.Err)
			}
		})
	}
}

func read(t *testing.T, c *catalog.Catalog) *Manifests {
	t.Helper()
	m, err := Read(t.Context(), c, "v2.0.0", Namespace)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var errWrite = errors.New("a write")

// writeless fails all writes.
type writeless struct{ client.WithWatch }

func (writeless) Create(context.Context, client.Object, ...client.CreateOption) error {
	return errWrite
}

func (writeless) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return errWrite
}

func (writeless) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return errWrite
}
