package source

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/providers/operator/internal/providerobject"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

const (
	metadataFile   = "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries: [{major: 1, minor: 0, contract: v1beta1}]\n"
	componentsFile = `
{apiVersion: v1, kind: Namespace, metadata: {name: default-place}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: default-place}
spec: {template: {spec: {containers: [{name: manager, image: "docker.io/x/manager:v1", args: ["--a=${A}", "--b=${B}", "--c=${C:=default}"]}]}}}
`
)

// world is a provider with a local repository, and a configuration of clusterctl.
type world struct {
	*Reader
	folder string
	env    map[string]string
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{folder: t.TempDir(), env: map[string]string{}}
	w.write(t, "infrastructure-x/v1.0.0/metadata.yaml", metadataFile)
	w.write(t, "infrastructure-x/v1.0.0/infrastructure-components.yaml", componentsFile)
	w.Reader = &Reader{
		Live: fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).Build(),
		Config: ConfigFile(filepath.Join(w.folder, "clusterctl.yaml"), func(name string) (string, bool) {
			value, ok := w.env[name]
			return value, ok
		}),
	}
	return w
}

func (w *world) write(t *testing.T, name, content string) {
	t.Helper()
	file := filepath.Join(w.folder, name)
	testenv.Must(t, os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(content), 0o600))
}

func (w *world) location() string {
	return filepath.Join(w.folder, "infrastructure-x/latest/infrastructure-components.yaml")
}

// container returns the container of the provider's Deployment.
func (w *world) container(t *testing.T, spec operatorv1.ProviderSpec) (map[string]any, error) {
	t.Helper()
	p := providerobject.Provider{Type: clusterctlv1.InfrastructureProviderType, Object: &operatorv1.InfrastructureProvider{
		ObjectMeta: metav1.ObjectMeta{Namespace: "place", Name: "x"}, Spec: spec,
	}}
	release, err := w.Find(t.Context(), p, nil)
	if err != nil {
		return nil, err
	}
	list, err := release.Components(p)
	if err != nil {
		return nil, err
	}
	inner, _ := list.Objects[1].Object["spec"].(map[string]any)
	for _, field := range []string{"template", "spec"} {
		inner, _ = inner[field].(map[string]any)
	}
	containers, _ := inner["containers"].([]any)
	container, _ := containers[0].(map[string]any)
	return container, nil
}

func TestConfigFile(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "place", Name: "s"}, Data: map[string][]byte{"A": []byte("of-secret")}}
	w := newWorld(t, secret)
	w.env["A"], w.env["B"] = "of-environment", "of-environment"
	ownLocation := operatorv1.ProviderSpec{SecretName: ptr.To("s"), FetchConfig: &operatorv1.FetchConfiguration{URL: w.location()}}
	got, err := w.container(t, ownLocation)
	testenv.Must(t, err)
	want := map[string]any{"name": "manager", "image": "docker.io/x/manager:v1", "args": []any{"--a=of-secret", "--b=of-environment", "--c=default"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("without a file: -want +got:\n%s", diff)
	}
	if _, err := w.container(t, operatorv1.ProviderSpec{SecretName: ptr.To("s")}); err == nil {
		t.Error("a provider without a location is found")
	}

	w.write(t, "clusterctl.yaml", "B: of-file\nC: of-file\nimages: {all: {repository: registry.internal}, infrastructure-x: {tag: v2}}\n"+
		"providers: [{name: x, type: InfrastructureProvider, url: "+w.location()+"}]\n")
	delete(w.env, "B")
	want = map[string]any{"name": "manager", "image": "registry.internal/manager:v2", "args": []any{"--a=of-secret", "--b=of-file", "--c=of-file"}}
	for reason, spec := range map[string]operatorv1.ProviderSpec{"its own location": ownLocation, "the location in the file": {SecretName: ptr.To("s")}} {
		got, err := w.container(t, spec)
		testenv.Must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", reason, diff)
		}
	}

	w.write(t, "clusterctl.yaml", "images: 3\n")
	if _, err := w.container(t, ownLocation); err == nil || !strings.Contains(err.Error(), "invalid clusterctl configuration") {
		t.Errorf("an invalid file: %v", err)
	}
}

func TestSecret(t *testing.T) {
	w := newWorld(t)
	_, err := w.container(t, operatorv1.ProviderSpec{SecretName: ptr.To("missing"), FetchConfig: &operatorv1.FetchConfiguration{URL: w.location()}})
	if err == nil || !strings.Contains(err.Error(), "Secret place/missing") {
		t.Errorf("got %v", err)
	}
}

// TestCredentialsAreNotForComponents: a release must not get what it was downloaded with.
func TestCredentialsAreNotForComponents(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "place", Name: "s"}, Data: map[string][]byte{}}
	for _, name := range []string{"OCI_USERNAME", "OCI_PASSWORD", "OCI_ACCESS_TOKEN", "OCI_REFRESH_TOKEN", "GITHUB_TOKEN"} {
		secret.Data[name] = []byte("hidden")
	}
	w := newWorld(t, secret)
	w.env["GITHUB_TOKEN"] = "hidden"
	spec := operatorv1.ProviderSpec{SecretName: ptr.To("s"), FetchConfig: &operatorv1.FetchConfiguration{URL: w.location()}}
	for name := range secret.Data {
		release := func(expression string) {
			w.write(t, "infrastructure-x/v1.0.0/infrastructure-components.yaml",
				strings.NewReplacer("${A}", expression, "${B}", "", "${C:=default}", "").Replace(componentsFile))
		}
		release("${" + name + "}")
		if _, err := w.container(t, spec); err == nil || !strings.Contains(err.Error(), "credentials for downloads are not passed on to components: use a release without "+name) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v", name, err)
		}
		release("${" + name + ":-none}")
		got, err := w.container(t, spec)
		testenv.Must(t, err)
		if diff := cmp.Diff([]any{"--a=none", "--b=", "--c="}, got["args"]); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}
