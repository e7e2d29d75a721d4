package certmanager

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"sigs.k8s.io/cluster-api/packages/apply"
	"sigs.k8s.io/cluster-api/packages/components"
	"sigs.k8s.io/cluster-api/packages/config"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/packages/repository"
	"sigs.k8s.io/cluster-api/packages/retry"
)

// newCluster returns a cluster that rejects test certificates as long as failures says so, and whose cert-manager, if
// there is one, carries the label.
func newCluster(served bool, label string, failures *int) client.Client {
	kind := schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Certificate"}
	mapper := meta.NewDefaultRESTMapper(nil)
	if served {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	for _, k := range []string{"CustomResourceDefinition", "Namespace"} {
		mapper.Add(schema.GroupVersionKind{Group: map[string]string{"CustomResourceDefinition": "apiextensions.k8s.io"}[k], Version: "v1", Kind: k}, meta.RESTScopeRoot)
	}
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": certificates, "labels": map[string]any{"clusterctl.cluster.x-k8s.io/core": label}},
	}}
	b := fake.NewClientBuilder().WithRESTMapper(mapper).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if o.GetObjectKind().GroupVersionKind().Group != group {
				return c.Create(ctx, o, opts...)
			}
			options := &client.CreateOptions{}
			options.ApplyOptions(opts)
			if len(options.DryRun) == 0 {
				return errors.New("the test objects must not be kept")
			}
			if *failures > 0 {
				*failures--
				return errors.New("failed calling webhook")
			}
			return nil
		},
	})
	if served {
		b = b.WithObjects(crd)
	}
	return b.Build()
}

func TestPrepareAndApply(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "cert-manager", config.CertManagerVersion)
	if err := os.MkdirAll(folder, 0o750); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "cert-manager.yaml")
	if err := os.WriteFile(file, []byte("{apiVersion: v1, kind: Namespace, metadata: {name: cert-manager}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		reason   string
		served   bool
		label    string
		failures int
		plan     bool
		version  string
		created  bool
		err      string
	}{
		"Works":   {reason: "A working cert-manager is not changed.", served: true},
		"Missing": {reason: "A missing cert-manager is installed and waited for.", failures: 3, plan: true, version: config.CertManagerVersion, created: true},
		"Begun":   {reason: "An interrupted installation is completed.", served: true, label: "cert-manager", failures: 2, plan: true, version: config.CertManagerVersion, created: true},
		"Foreign": {reason: "An externally managed cert-manager is waited for, but not changed.", served: true, failures: 2, plan: true},
		"Never":   {reason: "A cert-manager that does not become ready is an error.", failures: 1 << 30, plan: true, version: config.CertManagerVersion, created: true, err: "cert-manager is not ready after 50ms: failed calling webhook"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(tc.served, tc.label, &tc.failures)
			conf := config.Default(func(string) (string, bool) { return "", false })
			conf.CertManager.URL, conf.CertManager.Timeout = file, time.Hour
			if tc.err != "" {
				conf.CertManager.Timeout = 50 * time.Millisecond
			}
			plan, err := Prepare(t.Context(), c, repository.NewStore(repository.Options{}), conf)
			if err != nil {
				t.Fatal(err)
			}
			if (plan != nil) != tc.plan || (plan != nil && plan.Version != tc.version) {
				t.Fatalf("%s\nPrepare(): got %+v", tc.reason, plan)
			}
			if plan == nil {
				return
			}
			plan.poll = time.Millisecond
			err = plan.Apply(t.Context(), &apply.Writer{Client: c, Backoff: retry.Backoff()})
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("%s\nApply(): want error %q, got: %v", tc.reason, tc.err, err)
			}
			ns := &unstructured.Unstructured{}
			ns.SetAPIVersion("v1")
			ns.SetKind("Namespace")
			err = c.Get(t.Context(), client.ObjectKey{Name: "cert-manager"}, ns)
			if (err == nil) != tc.created {
				t.Errorf("%s\nApply(): created: %v", tc.reason, err)
			}
			if tc.created {
				want := map[string]string{"clusterctl.cluster.x-k8s.io": "", "clusterctl.cluster.x-k8s.io/core": "cert-manager"}
				if diff := cmp.Diff(want, ns.GetLabels()); diff != "" {
					t.Errorf("labels: -want +got:\n%s", diff)
				}
			}
		})
	}
}

// TestOverride: cert-manager has a folder of overrides like providers, and overrides of images.
func TestOverride(t *testing.T) {
	overrides := t.TempDir()
	folder := filepath.Join(overrides, "cert-manager", config.CertManagerVersion)
	if err := os.MkdirAll(folder, 0o750); err != nil {
		t.Fatal(err)
	}
	const mine = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: mine}, spec: {template: {spec: {containers: [{name: c, image: reg.io/controller:v1}]}}}}"
	if err := os.WriteFile(filepath.Join(folder, "cert-manager.yaml"), []byte(mine), 0o600); err != nil {
		t.Fatal(err)
	}
	c := config.Default(func(string) (string, bool) { return "", false })
	c.Images = components.ImageOverrides{"cert-manager": {Repository: "mirror"}}
	objects, images, err := Manifests(t.Context(), repository.NewStore(repository.Options{OverridesFolder: overrides}), c)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"mirror/controller:v1"}, images); diff != "" || len(objects) != 1 || objects[0].GetName() != "mine" {
		t.Errorf("objects %v; images: -want +got:\n%s", objects, diff)
	}
}

// TestUpgrade: what the plan announces is what is done, whether or not the new versions of providers need cert-manager.
// TestUnreadable: the keys of the configuration are not those of providers.
func TestUnreadable(t *testing.T) {
	c := config.Default(func(string) (string, bool) { return "", false })
	c.CertManager.URL = filepath.Join(t.TempDir(), "cert-manager", "latest", "cert-manager.yaml")
	_, _, err := Manifests(t.Context(), repository.NewStore(repository.Options{}), c)
	if err == nil || !strings.Contains(err.Error(), "cert-manager.url") {
		t.Errorf("Manifests(): want an error that names cert-manager.url, got %v", err)
	}
}

func TestUpgrade(t *testing.T) {
	const published = `
{apiVersion: v1, kind: Namespace, metadata: {name: cert-manager}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: cert-manager, namespace: cert-manager}
spec: {template: {spec: {containers: [{name: c, image: "quay.io/jetstack/controller:v1"}], initContainers: [{name: i, image: "quay.io/jetstack/init:v1"}]}}}
`
	file := filepath.Join(t.TempDir(), "cert-manager", config.CertManagerVersion, "cert-manager.yaml")
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o750), os.WriteFile(file, []byte(published), 0o600)); err != nil {
		t.Fatal(err)
	}
	running, err := manifest.Parse([]byte(published))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason, label, version, repository string
		alone, needed, missing             bool
		due, plan                          bool
		images                             []string
	}{
		"Older":    {reason: "An older version is replaced, even if nobody needs it.", label: "cert-manager", version: "v1.5.0", due: true, plan: true},
		"Images":   {reason: "Other images replace those of the same version.", label: "cert-manager", version: config.CertManagerVersion, repository: "mirror", due: true, plan: true, images: []string{"mirror/controller:v1", "mirror/init:v1"}},
		"Same":     {reason: "The same images are not touched.", label: "cert-manager", version: config.CertManagerVersion, needed: true},
		"Alone":    {reason: "Without its Deployments there is nothing to compare.", label: "cert-manager", version: config.CertManagerVersion, repository: "mirror", alone: true},
		"Newer":    {reason: "A newer version is not touched.", label: "cert-manager", version: "v99.0.0", repository: "mirror"},
		"External": {reason: "A cert-manager of others is not touched.", version: "v1.5.0", repository: "mirror", needed: true},
		"Offline":  {reason: "Manifests that cannot be read do not prevent the upgrade of providers.", label: "cert-manager", version: config.CertManagerVersion, missing: true},
	} {
		t.Run(name, func(t *testing.T) {
			failures := 0
			c := newCluster(true, tc.label, &failures)
			crd := &unstructured.Unstructured{}
			crd.SetAPIVersion("apiextensions.k8s.io/v1")
			crd.SetKind("CustomResourceDefinition")
			crd.SetName(certificates)
			patch := `{"metadata": {"annotations": {"cert-manager.clusterctl.cluster.x-k8s.io/version": "` + tc.version + `"}}}`
			if err := c.Patch(t.Context(), crd, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
				t.Fatal(err)
			}
			for i := range running {
				if err := c.Create(t.Context(), running[i].DeepCopy()); !tc.alone && err != nil {
					t.Fatal(err)
				}
				if tc.alone {
					if err := c.Delete(t.Context(), running[i].DeepCopy()); err != nil {
						t.Fatal(err)
					}
				}
			}
			conf := config.Default(func(string) (string, bool) { return "", false })
			conf.CertManager.URL = file
			if tc.missing {
				conf.CertManager.URL = filepath.Join(t.TempDir(), "cert-manager", config.CertManagerVersion, "cert-manager.yaml")
			}
			if tc.repository != "" {
				conf.Images = components.ImageOverrides{"all": {Repository: tc.repository}}
			}
			store := repository.NewStore(repository.Options{})
			u, err := CheckUpgrade(t.Context(), c, store, conf)
			if err != nil || u.Due() != tc.due || (u.Unchecked != nil) != tc.missing {
				t.Fatalf("%s: got %+v, %v", tc.reason, u, err)
			}
			if diff := cmp.Diff(tc.images, u.Images); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			plan, err := PrepareUpgrade(t.Context(), c, store, conf, tc.needed)
			if err != nil || (plan != nil) != tc.plan {
				t.Fatalf("%s: got the plan %+v, %v", tc.reason, plan, err)
			}
			if plan == nil {
				return
			}
			if err := plan.Apply(t.Context(), &apply.Writer{Client: c, Backoff: retry.Backoff()}); err != nil {
				t.Fatal(err)
			}
			conf.CertManager.Version = config.CertManagerVersion
			if u, err := CheckUpgrade(t.Context(), c, store, conf); err != nil || len(u.Images) > 0 {
				t.Errorf("%s: then %+v, %v", tc.reason, u, err)
			}
		})
	}
}
