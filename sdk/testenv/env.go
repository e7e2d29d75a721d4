package testenv

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

const rootModule = "sigs.k8s.io/cluster-api"

// fieldOwner is the field manager of what this package installs.
const fieldOwner = client.FieldOwner("test-environment")

// Env is a running API server. It is safe for concurrent use.
type Env struct {
	// Config connects as an administrator, without rate limits. Copy it before changing it.
	Config *rest.Config
	// Kubeconfig is the path of a kubeconfig file that connects as an administrator.
	Kubeconfig string
	// Client reads and writes without a cache. It knows the built-in kinds and CustomResourceDefinitions; other kinds
	// work as unstructured objects. NewClient returns one with another scheme.
	Client client.WithWatch
	// Root is the path of the repository: the closest folder above the test with the module sigs.k8s.io/cluster-api, or otherwise with
	// a module.
	Root string

	mu        sync.Mutex
	installed map[string]bool // by CRD name
	converter *httptest.Server
}

func newEnv(root, kubeconfig string, config *rest.Config) (*Env, error) {
	config.QPS = -1
	known := runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(known), apiextensionsv1.AddToScheme(known)); err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: known})
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	return &Env{Config: config, Kubeconfig: kubeconfig, Client: c, Root: root, installed: map[string]bool{}}, nil
}

// Scheme returns a scheme with the kinds of Kubernetes and of Cluster API's core group, CustomResourceDefinitions, and the kinds that the
// functions add.
func Scheme(t testing.TB, add ...func(*runtime.Scheme) error) *runtime.Scheme {
	t.Helper()
	out := runtime.NewScheme()
	for _, add := range append([]func(*runtime.Scheme) error{scheme.AddToScheme, clusterv1.AddToScheme, apiextensionsv1.AddToScheme}, add...) {
		if err := add(out); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// NewClient returns a client without a cache, with the kinds of s.
func (e *Env) NewClient(t testing.TB, s *runtime.Scheme) client.WithWatch {
	t.Helper()
	c, err := client.NewWithWatch(rest.CopyConfig(e.Config), client.Options{Scheme: s})
	if err != nil {
		t.Fatalf("connecting to the API server: %v", err)
	}
	return c
}

// Namespace creates a namespace for the test and returns its name.
func (e *Env) Namespace(t testing.TB) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := e.Client.Create(t.Context(), ns); err != nil {
		t.Fatalf("creating a namespace: %v", err)
	}
	return ns.Name
}

// installCRDs installs all CustomResourceDefinitions in files and folders (see Server.Start) and returns when the
// API server serves them. It may be called several times for a definition.
func (e *Env) installCRDs(t testing.TB, patterns ...string) {
	t.Helper()
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, pattern := range patterns {
		crds, err := e.ReadCRDs(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, crds...)
	}
	e.Install(t, all...)
}

// Install installs definitions that are not in files. A definition whose name is already installed stays as
// it is. Conversion webhooks are answered by this process.
func (e *Env) Install(t testing.TB, crds ...*apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	var waiting []*apiextensionsv1.CustomResourceDefinition
	for _, crd := range crds {
		if e.installed[crd.Name] {
			continue
		}
		if err := e.Client.Create(t.Context(), e.converted(crd), fieldOwner); err != nil {
			t.Fatalf("installing CustomResourceDefinition %s: %v", crd.Name, err)
		}
		waiting = append(waiting, crd)
	}
	for _, crd := range waiting {
		if err := e.waitServed(t.Context(), crd); err != nil {
			t.Fatal(err)
		}
		e.installed[crd.Name] = true
	}
}

// converted returns a definition whose objects this process converts instead of a manager, if its kind has several versions.
func (e *Env) converted(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	if crd.Spec.Conversion == nil || crd.Spec.Conversion.Webhook == nil {
		return crd
	}
	if e.converter == nil {
		e.converter = httptest.NewTLSServer(conversion.Shared().Webhook())
	}
	out := crd.DeepCopy()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: e.converter.Certificate().Raw})
	out.Spec.Conversion.Webhook.ClientConfig = &apiextensionsv1.WebhookClientConfig{
		URL: ptr.To(e.converter.URL + conversion.Path), CABundle: ca,
	}
	return out
}

// waitServed waits for the condition Established and then for the first response for the new resource: the API server
// sets the condition shortly before it serves the resource.
func (e *Env) waitServed(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	i := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Served })
	if i < 0 {
		return fmt.Errorf("CustomResourceDefinition %s has no served version", crd.Name)
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{
		Group: crd.Spec.Group, Version: crd.Spec.Versions[i].Name, Kind: crd.Spec.Names.ListKind,
	})
	if list.Kind == "" {
		list.Kind = crd.Spec.Names.Kind + "List"
	}
	var last error
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, startTimeout, true, func(ctx context.Context) (bool, error) {
		current := &apiextensionsv1.CustomResourceDefinition{}
		if last = e.Client.Get(ctx, client.ObjectKeyFromObject(crd), current); last != nil {
			return false, nil // Retry; the last error is returned.
		}
		if !slices.ContainsFunc(current.Status.Conditions, established) {
			last = fmt.Errorf("its conditions are %v", current.Status.Conditions)
			return false, nil
		}
		last = e.Client.List(ctx, list, client.Limit(1))
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("CustomResourceDefinition %s is not served: %w (%w)", crd.Name, err, last)
	}
	return nil
}

func established(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
	return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
}

// ReadCRDs returns the CustomResourceDefinitions in the files that match pattern, or anywhere below the
// folders that match it (see Server.Start). Other objects are ignored; finding no definition is an error,
// to detect mistyped paths.
func (e *Env) ReadCRDs(pattern string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	if !filepath.IsAbs(pattern) {
		pattern = filepath.Join(e.Root, pattern)
	}
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("looking for CustomResourceDefinitions in %s: %w", pattern, err)
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, path := range paths {
		err := filepath.WalkDir(path, func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".yaml") {
				return err
			}
			found, err := readFile(path)
			crds = append(crds, found...)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("reading CustomResourceDefinitions: %w", err)
		}
	}
	if len(crds) == 0 {
		return nil, fmt.Errorf("no CustomResourceDefinitions in %s", pattern)
	}
	return crds, nil
}

func readFile(path string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err := decoder.Decode(crd)
		if errors.Is(err, io.EOF) {
			return crds, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if crd.Kind == "CustomResourceDefinition" {
			crds = append(crds, crd)
		}
	}
}

// moduleIn returns the name of the module in a folder; empty if there is none.
func moduleIn(dir string) string {
	content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(content), "\n")
	return strings.TrimPrefix(strings.TrimSpace(first), "module ")
}

// withoutVersion returns a configuration for a client that requests plain paths.
func withoutVersion(config *rest.Config) *rest.Config {
	c := rest.CopyConfig(config)
	c.GroupVersion = &schema.GroupVersion{}
	c.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return c
}
