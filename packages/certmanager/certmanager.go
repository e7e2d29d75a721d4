// Package certmanager installs cert-manager for providers whose components require it.
//
// The caller decides whether they do; this project's own components do not.
package certmanager

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/apply"
	"sigs.k8s.io/cluster-api/packages/components"
	"sigs.k8s.io/cluster-api/packages/config"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/packages/repository"
	"sigs.k8s.io/cluster-api/packages/storageversion"
)

const (
	// Name is cert-manager's name in the configuration of images and in the overrides folder.
	Name = "cert-manager"
	// Namespace is where cert-manager lives.
	Namespace = "cert-manager"

	group        = "cert-manager.io"
	certificates = "certificates.cert-manager.io"
	pollInterval = time.Second
)

// Plan is what has to be done until cert-manager is ready.
type Plan struct {
	// Version is the version to install; empty for an existing cert-manager that is not managed by clusterctl and only
	// has to become ready.
	Version string
	objects []unstructured.Unstructured
	// migrations precede the replacement of CustomResourceDefinitions.
	migrations []*storageversion.Migration
	timeout    time.Duration
	poll       time.Duration
}

// Manifests downloads cert-manager's manifests and returns their objects, as they are installed, and their images.
func Manifests(ctx context.Context, store *repository.Store, c *config.Config) ([]unstructured.Unstructured, []string, error) {
	version := c.CertManager.Version
	repo, err := store.Open(packages.Provider{Name: Name, URL: c.CertManager.URL})
	if err != nil {
		return nil, nil, fmt.Errorf("cert-manager: %w", err)
	}
	raw, err := repo.File(ctx, version, repo.ComponentsFile())
	if err != nil {
		return nil, nil, fmt.Errorf("%w; cert-manager has the keys cert-manager.url and cert-manager.version of its own", err)
	}
	objects, err := manifest.Parse(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("invalid %s of cert-manager %s: %w", repo.ComponentsFile(), version, err)
	}
	images, err := components.OverrideImages(objects, Name, c.Images)
	if err != nil {
		return nil, nil, fmt.Errorf("invalid %s of cert-manager %s: %w", repo.ComponentsFile(), version, err)
	}
	components.AddLabels(objects, map[string]string{
		clusterctlv1.ClusterctlLabel: "", clusterctlv1.ClusterctlCoreLabel: clusterctlv1.ClusterctlCoreLabelCertManagerValue,
	})
	for i := range objects {
		annotations := objects[i].GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[clusterctlv1.CertManagerVersionAnnotation] = version
		objects[i].SetAnnotations(annotations)
	}
	return objects, images, nil
}

// Prepare determines, without writing anything, what has to be done until cert-manager is ready. It returns nil if it is
// ready.
func Prepare(ctx context.Context, c client.Client, store *repository.Store, conf *config.Config) (*Plan, error) {
	if works(ctx, c) == nil {
		return nil, nil
	}
	plan := &Plan{timeout: conf.CertManager.Timeout, poll: pollInterval}
	external, err := installedExternally(ctx, c)
	if err != nil || external {
		return plan, err
	}
	plan.Version = conf.CertManager.Version
	plan.objects, _, err = Manifests(ctx, store, conf)
	return plan, err
}

// Apply installs cert-manager and waits until it is ready.
func (p *Plan) Apply(ctx context.Context, w *apply.Writer) error {
	for _, m := range p.migrations {
		m.Retry = w.Retry
		if err := m.Run(ctx, w.Client, nil); err != nil {
			return fmt.Errorf("cert-manager: %w", err)
		}
	}
	if err := w.Objects(ctx, p.objects); err != nil {
		return fmt.Errorf("cert-manager: %w", err)
	}
	var last error
	err := wait.PollUntilContextTimeout(ctx, p.poll, p.timeout, true, func(ctx context.Context) (bool, error) {
		last = works(ctx, w.Client)
		return last == nil, nil
	})
	if err == nil || ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("cert-manager is not ready after %s: %w: "+
		"see `kubectl -n %s get pods`, or set a longer cert-manager.timeout in the configuration", p.timeout, last, Namespace)
}

// works creates an Issuer and a Certificate as a dry run, which requires the API and its webhook.
func works(ctx context.Context, c client.Client) error {
	issuer := object("Issuer", "test-selfsigned", map[string]any{"selfSigned": map[string]any{}})
	certificate := object("Certificate", "selfsigned-cert", map[string]any{
		"dnsNames": []any{"example.com"}, "secretName": "selfsigned-cert-tls",
		"issuerRef": map[string]any{"name": "test-selfsigned"},
	})
	for _, o := range []*unstructured.Unstructured{issuer, certificate} {
		if err := c.Create(ctx, o, client.DryRunAll); err != nil {
			return err
		}
	}
	return nil
}

func object(kind, namePrefix string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1", "kind": kind,
		"metadata": map[string]any{"generateName": namePrefix + "-", "namespace": "default"},
		"spec":     spec,
	}}
}

// installedExternally reports whether there is a cert-manager that clusterctl did not install and must not change.
func installedExternally(ctx context.Context, c client.Client) (bool, error) {
	_, err := c.RESTMapper().RESTMapping(schema.GroupKind{Group: group, Kind: "Certificate"}, "v1")
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot check whether cert-manager is installed: %w", err)
	}
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind(manifest.KindCRD)
	if err := c.Get(ctx, client.ObjectKey{Name: certificates}, crd); err != nil {
		return false, fmt.Errorf("cannot check whether clusterctl installed cert-manager: %w", err)
	}
	return crd.GetLabels()[clusterctlv1.ClusterctlCoreLabel] != clusterctlv1.ClusterctlCoreLabelCertManagerValue, nil
}
