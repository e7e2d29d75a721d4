package testenv

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

var server Server

func TestMain(m *testing.M) { server.Main(m) }

const thingCRD = `
apiVersion: v1
kind: ConfigMap
metadata: {name: passed-over}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.env.test}
spec:
  group: env.test
  scope: Namespaced
  names: {plural: things, singular: thing, kind: Thing, listKind: ThingList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

func TestServerServesWhatIsInstalled(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thing.yaml"), []byte(thingCRD), 0o600); err != nil {
		t.Fatal(err)
	}
	server.Start(t, dir)
	e := server.Start(t, dir) // the second time is free
	thing := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "env.test/v1", "kind": "Thing",
		"metadata": map[string]any{"name": "one", "namespace": e.Namespace(t)},
	}}
	if err := e.Client.Create(t.Context(), thing); err != nil {
		t.Fatalf("creating an object of an installed kind: %v", err)
	}
	if thing.GetUID() == "" {
		t.Error("the created object has no UID: it was not written by an API server")
	}
}

func TestNamespacesAreApart(t *testing.T) {
	e := server.Start(t)
	a, b := e.Namespace(t), e.Namespace(t)
	if a == b {
		t.Fatalf("two tests got the same namespace %s", a)
	}
	for _, name := range []string{a, b} {
		if err := e.Client.Get(t.Context(), client.ObjectKey{Name: name}, &corev1.Namespace{}); err != nil {
			t.Errorf("namespace %s: %v", name, err)
		}
	}
}

// TestResponseOfTheLastFinalizer checks what package step relies on: the response to the patch that removes the last finalizer of a
// deleted object has no finalizers, and the resource version from before, so that versions do not show that the object is gone.
func TestResponseOfTheLastFinalizer(t *testing.T) {
	e := server.Start(t)
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace(t), Name: "deleted", Finalizers: []string{"env.test/finalizer"}}}
	Must(t, e.Client.Create(t.Context(), o))
	Must(t, e.Client.Delete(t.Context(), o))
	Must(t, e.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o))
	before := o.ResourceVersion
	patch := `{"metadata": {"finalizers": null, "resourceVersion": "` + before + `"}}`
	Must(t, e.Client.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))))
	if o.DeletionTimestamp == nil || len(o.Finalizers) > 0 || o.ResourceVersion != before {
		t.Errorf("the response is %+v, want version %s", o.ObjectMeta, before)
	}
	if err := e.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
		t.Errorf("reading the object: %v", err)
	}
}

func TestReadCRDs(t *testing.T) {
	root := t.TempDir()
	for path, content := range map[string]string{
		"config/a/crd/thing.yaml":      thingCRD,
		"config/b/crd/deep/thing.yaml": strings.ReplaceAll(thingCRD, "thing", "other"),
		"config/a/crd/README.md":       "kind: CustomResourceDefinition",
		"config/c/crd/broken.yaml":     "kind: [",
	} {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := &Env{Root: root}
	tests := []struct {
		reason  string
		pattern string
		want    []string
		wantErr string
	}{
		{"a folder is read, other files and other objects are passed over", "config/a/crd", []string{"things.env.test"}, ""},
		{"a pattern names several folders, and folders are read to the bottom", "config/[ab]/crd", []string{"things.env.test", "others.env.test"}, ""},
		{"a single file", "config/a/crd/thing.yaml", []string{"things.env.test"}, ""},
		{"a path without a match is an error", "config/x/crd", nil, "no CustomResourceDefinitions"},
		{"a broken file is named", "config/c/crd", nil, "broken.yaml"},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			crds, err := e.ReadCRDs(tc.pattern)
			if (err != nil) != (tc.wantErr != "") || (err != nil && !strings.Contains(err.Error(), tc.wantErr)) {
				t.Fatalf("error is %v, want one with %q", err, tc.wantErr)
			}
			if diff := cmp.Diff(tc.want, names(crds)); diff != "" {
				t.Errorf("definitions (-want +got):\n%s", diff)
			}
		})
	}
}

func names(crds []*apiextensionsv1.CustomResourceDefinition) []string {
	var all []string
	for _, crd := range crds {
		all = append(all, crd.Name)
	}
	return all
}

func TestRepositoryRoot(t *testing.T) {
	root := t.TempDir()
	for dir, module := range map[string]string{"ours": rootModule, "ours/provider": rootModule + "/provider", "theirs": "example.com/provider", "none": ""} {
		if err := os.MkdirAll(filepath.Join(root, dir, "internal"), 0o700); err != nil {
			t.Fatal(err)
		}
		if module == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(root, dir, "go.mod"), []byte("module "+module+"\n\ngo 1.26\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for dir, want := range map[string]string{"ours/internal": "ours", "ours/provider/internal": "ours", "theirs/internal": "theirs"} {
		if got, err := repositoryRoot(filepath.Join(root, dir)); err != nil || got != filepath.Join(root, want) {
			t.Errorf("the root of %s is %q, %v; want %s", dir, got, err, want)
		}
	}
	if got, err := repositoryRoot(filepath.Join(root, "none")); err == nil {
		t.Errorf("the root of a folder without a module is %q", got)
	}
}

func TestRun(t *testing.T) {
	e := server.Start(t)
	namespace, other := e.Namespace(t), e.Namespace(t)
	done := make(chan error, 1)
	requests := e.Run(t, Scheme(t), namespace, func(mgr ctrl.Manager) error {
		return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
			c := mgr.GetClient()
			config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}}
			elsewhere := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "a"}}
			err := errors.Join(c.Create(ctx, config), c.Create(ctx, elsewhere), c.Update(ctx, config.DeepCopy()))
			before := config.DeepCopy()
			config.Data = map[string]string{"a": "b"}
			applied := applycorev1.ConfigMap("b", namespace)
			done <- errors.Join(err, c.Patch(ctx, config, client.MergeFrom(before)), c.Apply(ctx, applied, client.FieldOwner("me")), c.Delete(ctx, config))
			return nil
		}))
	})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"create configmaps": 1, "update configmaps": 1, "patch configmaps": 1, "apply configmaps by me": 1, "delete configmaps": 1}
	if diff := cmp.Diff(want, requests.Take()); diff != "" || len(requests.Take()) > 0 {
		t.Errorf("writes to the namespace, once (-want +got):\n%s", diff)
	}
}
