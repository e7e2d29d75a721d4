package operator

import (
	"cmp"
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/catalog"
	"sigs.k8s.io/cluster-api/packages/inventory"
	"sigs.k8s.io/cluster-api/packages/repository"
)

// PreloadRequest is which releases are stored.
type PreloadRequest struct {
	References []Reference
	// Existing adds the releases of all declared providers whose version is set.
	Existing bool
	// Namespace is that of References without one; empty means that of the components.
	Namespace string
	// Artifact is an OCI artifact with the releases; empty means the repositories of the configuration.
	Artifact string
}

// PlanPreload returns the ConfigMaps of releases. It writes nothing.
func PlanPreload(ctx context.Context, m *management.Cluster, c *catalog.Catalog, r PreloadRequest) ([]*corev1.ConfigMap, error) {
	refs := r.References
	if r.Existing {
		objects, err := inventory.ReadDeclared(ctx, m.Client)
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			if o.Version() != "" {
				refs = append(refs, Reference{Type: o.Type, Namespace: o.GetNamespace(), Ref: packages.Ref{Name: o.GetName(), Version: o.Version()}})
			}
		}
	}
	var list []*corev1.ConfigMap
	for _, ref := range refs {
		release, err := releaseOf(ctx, c, ref, r.Artifact)
		if err != nil {
			return nil, err
		}
		if err := release.Validate(ctx); err != nil {
			return nil, err
		}
		namespace := cmp.Or(ref.Namespace, r.Namespace)
		if namespace == "" {
			built, err := c.Components(ctx, release, catalog.Options{Raw: true})
			if err != nil {
				return nil, err
			}
			namespace = built.TargetNamespace
		}
		configMap, err := Preload(ctx, release, namespace)
		if err != nil {
			return nil, err
		}
		list = append(list, configMap)
	}
	return list, nil
}

// releaseOf returns a release of the configured repository, or of an OCI artifact.
func releaseOf(ctx context.Context, c *catalog.Catalog, r Reference, artifact string) (*catalog.Release, error) {
	if artifact == "" {
		return c.Release(ctx, r.Type, r.Ref)
	}
	client, err := repository.FromOCI(packages.Provider{Name: r.Name, Type: r.Type}, artifact, func(name string) string {
		value, _ := c.Config.Variable(name)
		return value
	}, nil)
	if err != nil {
		return nil, err
	}
	version := r.Version
	if version == "" {
		version, err = client.DefaultVersion(ctx)
	}
	return &catalog.Release{Client: client, Version: version}, err
}

// Store writes the ConfigMap of a release, and its namespace.
func (a *Applier) Store(ctx context.Context, release *corev1.ConfigMap) error {
	if err := a.namespace(ctx, release.Namespace); err != nil {
		return err
	}
	return a.Preload(ctx, release)
}

// namespace creates a namespace if it does not exist.
func (a *Applier) namespace(ctx context.Context, name string) error {
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(name)
	return a.writer().Object(ctx, namespace)
}
