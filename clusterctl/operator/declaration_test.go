package operator

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/catalog"
	"sigs.k8s.io/cluster-api/packages/components"
	"sigs.k8s.io/cluster-api/packages/config"
	"sigs.k8s.io/cluster-api/packages/repository"
)

const toyMetadata = `
apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3
kind: Metadata
releaseSeries: [{major: 1, minor: 0, contract: v1beta1}]
`

const toyDeployment = `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, namespace: toy-system}
spec:
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      containers:
      - {name: manager, image: "registry.example/toys/toy:v1.0.0", args: ["--token=${TOY_TOKEN}", "--level=${TOY_LEVEL:=1}"]}
      - {name: proxy, image: "registry.example/proxies/proxy:v9"}
`

// TestDeclare checks what of the configuration gets into the objects.
func TestDeclare(t *testing.T) {
	const namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: toy-system}}\n"
	one := namespace + strings.ReplaceAll(toyDeployment, "NAME", "toy")
	two := one + strings.ReplaceAll(toyDeployment, "NAME", "other")
	for _, tc := range []struct {
		reason     string
		components string
		variables  map[string]string
		images     components.ImageOverrides
		namespace  string
		secret     *client.ObjectKey
		spec       string
		stored     map[string]string
		err        string
	}{
		{
			reason: "values of variables are stored, others are not", components: one,
			variables: map[string]string{"TOY_TOKEN": "hush", "OTHER": "x"},
			spec:      "secretName: infrastructure-toy-variables", stored: map[string]string{"TOY_TOKEN": "hush"},
		},
		{
			reason: "a Secret of the user is referred to", components: one, variables: map[string]string{"TOY_TOKEN": "hush"},
			secret: &client.ObjectKey{Namespace: "mine", Name: "credentials"}, spec: "configSecret: {name: credentials, namespace: mine}",
		},
		{reason: "a missing value is asked for", components: one, err: "required variable TOY_TOKEN"},
		{
			reason: "another namespace", components: one, variables: map[string]string{"TOY_TOKEN": "hush"}, namespace: "elsewhere",
			spec: "secretName: infrastructure-toy-variables", stored: map[string]string{"TOY_TOKEN": "hush"},
		},
		{
			reason: "overrides of images, without the version of those that have none", components: one,
			variables: map[string]string{"TOY_TOKEN": "hush"}, stored: map[string]string{"TOY_TOKEN": "hush"},
			images: components.ImageOverrides{"all": {Repository: "internal.example"}, "infrastructure-toy/proxy": {Tag: "v10"}},
			spec: "{secretName: infrastructure-toy-variables, deployment: {containers: [{name: manager, image: {repository: internal.example}}, " +
				"{name: proxy, image: {repository: internal.example, tag: v10}}]}}",
		},
		{
			reason: "overrides of images of two Deployments", components: two,
			variables: map[string]string{"TOY_TOKEN": "hush"}, stored: map[string]string{"TOY_TOKEN": "hush"},
			images: components.ImageOverrides{"infrastructure-toy/toy": {Tag: "v3"}},
			spec: "{secretName: infrastructure-toy-variables, additionalDeployments: {" +
				"toy: {deployment: {containers: [{name: manager, image: {tag: v3}}]}}, other: {deployment: {containers: [{name: manager, image: {tag: v3}}]}}}}",
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			conf := config.Default(func(name string) (string, bool) { value, ok := tc.variables[name]; return value, ok })
			conf.Images = tc.images
			file := filepath.Join(t.TempDir(), "infrastructure-toy", "v1.0.0", "infrastructure-components.yaml")
			write(t, file, tc.components)
			write(t, filepath.Join(filepath.Dir(file), "metadata.yaml"), toyMetadata)
			conf.Providers = []packages.Provider{{Name: "toy", Type: clusterctlv1.InfrastructureProviderType, URL: file}}
			c := &catalog.Catalog{Config: conf, Store: repository.NewStore(repository.Options{})}
			r := Reference{Ref: packages.Ref{Name: "toy"}, Type: clusterctlv1.InfrastructureProviderType, Namespace: tc.namespace}
			d, err := declare(t.Context(), c, r, tc.secret)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("error %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]any{}
			if err := yaml.Unmarshal([]byte(tc.spec), &want); err != nil {
				t.Fatal(err)
			}
			want["version"] = "v1.0.0"
			want["fetchConfig"] = map[string]any{"selector": map[string]any{"matchLabels": map[string]any{
				"provider.cluster.x-k8s.io/type": "infrastructure", "provider.cluster.x-k8s.io/name": "toy",
			}}}
			if diff := cmp.Diff(want, d.Object.Object["spec"]); diff != "" {
				t.Errorf("spec: -want +got:\n%s", diff)
			}
			var stored map[string]string
			if d.Variables != nil {
				stored = map[string]string{}
				for name, value := range d.Variables.Data {
					stored[name] = string(value)
				}
			}
			if diff := cmp.Diff(tc.stored, stored); diff != "" {
				t.Errorf("variables: -want +got:\n%s", diff)
			}
			if place := d.Object.GetNamespace(); tc.namespace != "" && place != tc.namespace || tc.namespace == "" && place != "toy-system" {
				t.Errorf("namespace %q", place)
			}
			if d.Release == nil || d.Release.Data["components"] != tc.components {
				t.Errorf("the release of a local repository must be stored: %v", d.Release)
			}
		})
	}
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
