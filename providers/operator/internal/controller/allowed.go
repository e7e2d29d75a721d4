package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages/inventory"
	"sigs.k8s.io/cluster-api/packages/live"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/providers/operator/internal/inspect"
	"sigs.k8s.io/cluster-api/providers/operator/internal/providerobject"
)

// allowed returns what the components may contain. It requests nothing if all of them exist, and are the provider's.
func (c *Controller) allowed(ctx context.Context, s *scope, components, additional []unstructured.Unstructured) (inspect.Options, error) {
	installed, err := inventory.Read(ctx, c.engine.Client)
	if err != nil {
		return inspect.Options{}, err
	}
	surroundings := &surroundings{
		c: c, scope: manifest.ScopeOf(components), label: s.Identity().ManifestLabel(),
		owner: componentOwners(ctx, c.cached), listed: map[schema.GroupVersionKind]map[string]live.Owner{},
	}
	return inspect.Options{
		Find:  func(o *unstructured.Unstructured) (live.Owner, error) { return surroundings.find(ctx, o) },
		Roles: func() ([]rbacv1.ClusterRole, error) { return c.roles(ctx) },
		Installed: func(label string) bool {
			return slices.ContainsFunc(s.all, func(p providerobject.Provider) bool { return p.Identity().ManifestLabel() == label }) ||
				slices.ContainsFunc(installed, func(p clusterctlv1.Provider) bool { return p.ManifestLabel() == label })
		},
		Label: surroundings.label, Additional: additional, AllPermissions: allPermissions(s.Object),
	}, nil
}

// surroundings is what inspections read of the management cluster.
type surroundings struct {
	c     *Controller
	scope manifest.Scope
	label string
	owner func(manifest.Key) string
	// listed has what is known of the objects of a kind without namespaces, by name.
	listed map[schema.GroupVersionKind]map[string]live.Owner
}

// find returns what is known of an object. Objects without a namespace are listed if the cache does not show that they are the provider's.
func (s *surroundings) find(ctx context.Context, o *unstructured.Unstructured) (live.Owner, error) {
	if owner := s.owner(manifest.KeyOf(o)); owner != "" || s.scope.Namespaced(o) {
		return live.Owner{Provider: owner}, nil
	}
	kind := o.GroupVersionKind()
	if s.listed[kind] == nil {
		found, err := s.list(ctx, kind)
		if err != nil {
			return live.Owner{}, fmt.Errorf("listing the %ss that exist: %w", kind.Kind, err)
		}
		s.listed[kind] = found
	}
	return s.listed[kind][o.GetName()], nil
}

func (s *surroundings) list(ctx context.Context, kind schema.GroupVersionKind) (map[string]live.Owner, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	found := map[string]live.Owner{}
	if err := s.c.engine.Client.List(ctx, list); meta.IsNoMatchError(err) {
		return found, nil // The components define the kind.
	} else if err != nil {
		return nil, err
	}
	for i := range list.Items {
		found[list.Items[i].Name] = live.OwnerOf(kind.Kind, &list.Items[i])
	}
	return found, nil
}

func (c *Controller) roles(ctx context.Context) ([]rbacv1.ClusterRole, error) {
	list := &rbacv1.ClusterRoleList{}
	if err := c.engine.Client.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing ClusterRoles: %w", err)
	}
	return list.Items, nil
}

// refusal identifies what a refusal of the components depends on: the spec, other providers, and the labels of objects.
func (s *scope) refusal() string {
	labels := make([]string, 0, len(s.all))
	for _, p := range s.all {
		labels = append(labels, p.Identity().ManifestLabel())
	}
	slices.Sort(labels)
	return fmt.Sprint(s.demand(), strings.Join(labels, " "), s.others)
}
