package management

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/apiversion"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// Discovering returns a client for which CustomResourceDefinitions that the user may not read are made from what all users may discover:
// kinds, versions and schemas. It reports once, to noted, that it does so: labels are missing then, and contracts says which ones they
// probably are. As with the clients of managers, objects are applied, and so compared, in the versions that are stored.
func (c *Cluster) Discovering(
	contracts func(kind schema.GroupKind, versions []string) map[string]string, noted func(),
) (client.Client, error) {
	found, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to %s: %w", c.Host, err)
	}
	live := &discovering{
		Client: c.Client, schemas: found.OpenAPIV3(), contracts: contracts, noted: sync.OnceFunc(noted), documents: map[string]*document{},
	}
	web, err := rest.HTTPClientFor(c.Config)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to %s: %w", c.Host, err)
	}
	lookup := &contract.Lookup{}
	lookup.Use(contract.APIVersions{Reader: live})
	versions, err := apiversion.New(apiversion.Options{
		Config: c.Config, HTTPClient: web, Scheme: live.Scheme(), Registry: conversion.New(lookup.Version), Log: logr.Discard(),
	})
	if err != nil {
		return nil, err
	}
	// The API server converts what is read.
	return versions.CachedClient(live), nil
}

// discovering is a client that reads definitions through the discovery of the API server.
type discovering struct {
	client.Client
	schemas   openapi.Client
	contracts func(schema.GroupKind, []string) map[string]string
	noted     func()

	mu sync.Mutex
	// documents are what was read of the OpenAPI documents, by path.
	documents map[string]*document
}

// document is what definitions need of the OpenAPI document of a group version.
type document struct {
	Paths      map[string]json.RawMessage `json:"paths"`
	Components struct {
		Schemas map[string]map[string]any `json:"schemas"`
	} `json:"components"`
}

// Get implements client.Reader.
func (d *discovering) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := d.Client.Get(ctx, key, obj, opts...)
	if !apierrors.IsForbidden(err) {
		return err
	}
	kind, unknown := d.GroupVersionKindFor(obj)
	if unknown != nil || kind.GroupKind() != apiextensionsv1.Kind("CustomResourceDefinition") {
		return err
	}
	crd, err := d.definition(key.Name)
	if err != nil {
		return err
	}
	d.noted()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	if err != nil {
		return err
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		u.Object = content
		u.SetGroupVersionKind(kind)
		return nil
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(content, obj)
}

// definition returns a definition of that name.
func (d *discovering) definition(name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	plural, group, _ := strings.Cut(name, ".")
	kinds, err := d.RESTMapper().KindsFor(schema.GroupVersionResource{Group: group, Resource: plural})
	if meta.IsNoMatchError(err) || err == nil && len(kinds) == 0 {
		return nil, apierrors.NewNotFound(apiextensionsv1.Resource("customresourcedefinitions"), name)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot discover %s: %w", name, err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kinds[0].Kind, Plural: plural},
		},
	}
	var versions []string
	for _, kind := range kinds {
		v, namespaced, err := d.version(kind, plural)
		if err != nil {
			return nil, fmt.Errorf("cannot discover the schema of %s %s: %w", name, kind.Version, err)
		}
		if namespaced {
			crd.Spec.Scope = apiextensionsv1.NamespaceScoped
		}
		crd.Spec.Versions, versions = append(crd.Spec.Versions, v), append(versions, kind.Version)
	}
	crd.Labels = d.contracts(kinds[0].GroupKind(), versions)
	return crd, nil
}

// version returns one version of a definition, and whether objects have a namespace.
func (d *discovering) version(
	kind schema.GroupVersionKind, plural string,
) (v apiextensionsv1.CustomResourceDefinitionVersion, namespaced bool, err error) {
	v = apiextensionsv1.CustomResourceDefinitionVersion{Name: kind.Version, Served: true}
	doc, err := d.document("apis/" + kind.GroupVersion().String())
	if err != nil {
		return v, false, err
	}
	for path := range doc.Paths {
		if path = strings.TrimPrefix(path, "/apis/"+kind.GroupVersion().String()+"/"); strings.HasSuffix(path, plural+"/{name}/status") {
			v.Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
		}
		namespaced = namespaced || path == "namespaces/{namespace}/"+plural
	}
	for _, s := range doc.Components.Schemas {
		if !isOf(s, kind) {
			continue
		}
		raw, err := json.Marshal(withoutReferences(s))
		if err != nil {
			return v, false, err
		}
		props := &apiextensionsv1.JSONSchemaProps{}
		if err := json.Unmarshal(raw, props); err != nil {
			return v, false, err
		}
		v.Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: props}
		return v, namespaced, nil
	}
	return v, false, fmt.Errorf("the OpenAPI document has no schema of %s", kind.Kind)
}

// document returns an OpenAPI document.
func (d *discovering) document(path string) (*document, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if doc := d.documents[path]; doc != nil {
		return doc, nil
	}
	paths, err := d.schemas.Paths()
	if err != nil {
		return nil, err
	}
	found, ok := paths[path]
	if !ok {
		return nil, fmt.Errorf("the API server has no OpenAPI document of %s", path)
	}
	raw, err := found.Schema(runtime.ContentTypeJSON)
	if err != nil {
		return nil, err
	}
	doc := &document{}
	if err := json.Unmarshal(raw, doc); err != nil {
		return nil, err
	}
	d.documents[path] = doc
	return doc, nil
}

// isOf reports whether a schema is that of a kind.
func isOf(s map[string]any, kind schema.GroupVersionKind) bool {
	kinds, _ := s["x-kubernetes-group-version-kind"].([]any)
	return slices.ContainsFunc(kinds, func(k any) bool {
		m, _ := k.(map[string]any)
		return m["group"] == kind.Group && m["version"] == kind.Version && m["kind"] == kind.Kind
	})
}

// withoutReferences returns a schema without the references that the API server adds for the fields of all objects: definitions do
// not have them.
func withoutReferences(value any) any {
	switch v := value.(type) {
	case map[string]any:
		if isReference(v) {
			return map[string]any{"type": "object"}
		}
		out := make(map[string]any, len(v))
		for key, field := range v {
			out[key] = withoutReferences(field)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = withoutReferences(v[i])
		}
		return out
	default:
		return value
	}
}

// isReference reports whether a schema consists of a reference to another one.
func isReference(s map[string]any) bool {
	if _, ok := s["$ref"].(string); ok {
		return true
	}
	all, _ := s["allOf"].([]any)
	if len(all) != 1 {
		return false
	}
	only, _ := all[0].(map[string]any)
	_, ok := only["$ref"].(string)
	return ok
}
