// Package openapi generates the OpenAPI documents of the runtime hooks: the paths from the catalogs of hooks, the schemas from the Go
// types. Authors of runtime extensions in other languages generate servers from them.
package openapi

import (
	"fmt"
	"reflect"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	hooksv1beta1 "sigs.k8s.io/cluster-api/exp/runtime/hooks/api/v1alpha1"
)

const (
	// File is the name of the document with payloads in v1beta2 and all hooks, as releases of Cluster API v1.14 have it.
	File = "runtime-sdk-openapi.yaml"
	// OlderFile is the name of the document with payloads in v1beta1 and the hooks of Cluster API v1.7.
	OlderFile = "runtime-sdk-openapi-v1beta1.yaml"
)

const (
	mediaType   = "application/json"
	description = "The services that Cluster API calls while it manages the lifecycle of Clusters: " +
		"runtime hooks. Runtime extensions implement them. "
	handlerName = "The name of the handler, unique on the server."
	success     = "The request was processed. Whether it succeeded is in the fields of the response, such as status and message."
	later       = " Defined for later: this version of Cluster API does not call the hook, and does not accept handlers for it."
)

// edition is a document: hooks with their payloads in one version.
type edition struct {
	payloads string
	// hooks adds them to a catalog.
	hooks func(*runtimecatalog.Catalog) error
	// types are the packages with their types.
	types []string
}

func editions() map[string]edition {
	return map[string]edition{
		File: {
			payloads: "Clusters, Machines and definitions of variables are in v1beta2: responses of Discovery request it by payloadVersion.",
			hooks:    runtimehooksv1.AddToCatalog, types: []string{"./api/runtime/hooks/..."},
		},
		OlderFile: {
			payloads: "Clusters and definitions of variables are in v1beta1, which servers get unless they request v1beta2.",
			hooks:    hooksv1beta1.AddToCatalog, types: []string{"./exp/runtime/hooks/api/...", "./api/runtime/hooks/..."},
		},
	}
}

// Generate returns the documents, as YAML, by the names of their files, for the repository at root.
func Generate(root string) (map[string][]byte, error) {
	called := runtimecatalog.New()
	if err := hooksv1beta1.AddToCatalog(called); err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for file, e := range editions() {
		content, err := e.generate(root, called)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out[file] = content
	}
	return out, nil
}

// generate returns the document. Hooks that are not in called are marked.
func (e edition) generate(root string, called *runtimecatalog.Catalog) ([]byte, error) {
	catalog := runtimecatalog.New()
	if err := e.hooks(catalog); err != nil {
		return nil, err
	}
	types, err := load(root, e.types)
	if err != nil {
		return nil, err
	}
	out := document{
		OpenAPI: "3.0.0",
		Info: info{
			Title: "Cluster API - Runtime SDK", Version: "v1alpha1", Description: description + e.payloads,
			License: license{Name: "Apache 2.0", URL: "http://www.apache.org/licenses/LICENSE-2.0.html"},
		},
		Paths: map[string]path{},
	}
	for _, hook := range catalog.Hooks() {
		post, err := operationOf(catalog, hook, types)
		if err != nil {
			return nil, fmt.Errorf("hook %s: %w", hook, err)
		}
		if !called.IsHookRegistered(hook) {
			post.Description += later
		}
		name := ""
		if len(post.Parameters) > 0 {
			name = "{name}"
		}
		out.Paths[runtimecatalog.GVHToPath(hook, name)] = path{Post: post}
	}
	if out.Components.Schemas, err = types.components(); err != nil {
		return nil, err
	}
	return yaml.Marshal(out)
}

func operationOf(catalog *runtimecatalog.Catalog, hook runtimecatalog.GroupVersionHook, types *schemas) (*operation, error) {
	meta, err := catalog.Meta(hook)
	if err != nil {
		return nil, err
	}
	request, err := catalog.NewRequest(hook)
	if err != nil {
		return nil, err
	}
	response, err := catalog.NewResponse(hook)
	if err != nil {
		return nil, err
	}
	accepted, err := types.content(request)
	if err != nil {
		return nil, err
	}
	returned, err := types.content(response)
	if err != nil {
		return nil, err
	}
	post := &operation{
		Tags: meta.Tags, Summary: meta.Summary, Description: meta.Description, Deprecated: meta.Deprecated, OperationID: identifierOf(hook),
		RequestBody: body{Content: accepted}, Responses: map[string]body{"200": {Description: success, Content: returned}},
	}
	if !meta.Singleton {
		post.Parameters = []parameter{
			{Name: "name", In: "path", Required: true, Description: handlerName, Schema: apiextensionsv1.JSONSchemaProps{Type: "string"}},
		}
	}
	return post, nil
}

// identifierOf returns an identifier such as hooksRuntimeClusterV1alpha1Discovery.
func identifierOf(hook runtimecatalog.GroupVersionHook) string {
	words := append(strings.Split(strings.TrimSuffix(hook.Group, ".x-k8s.io"), "."), hook.Version, strings.ToLower(hook.Hook))
	for i := range words[1:] {
		words[i+1] = strings.ToUpper(words[i+1][:1]) + words[i+1][1:]
	}
	return strings.Join(words, "")
}

// content is a body with the type of an object.
func (s *schemas) content(object runtime.Object) (content, error) {
	t := reflect.TypeOf(object).Elem()
	ref, err := s.need(t.PkgPath(), t.Name())
	if err != nil {
		return nil, err
	}
	return content{mediaType: {Schema: apiextensionsv1.JSONSchemaProps{Ref: &ref}}}, nil
}

// document and the types below are those parts of OpenAPI 3.0 that the document has.
type document struct {
	OpenAPI    string          `json:"openapi"`
	Info       info            `json:"info"`
	Paths      map[string]path `json:"paths"`
	Components struct {
		Schemas map[string]apiextensionsv1.JSONSchemaProps `json:"schemas"`
	} `json:"components"`
}

type info struct {
	Title       string  `json:"title"`
	Version     string  `json:"version"`
	Description string  `json:"description"`
	License     license `json:"license"`
}

type license struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

type path struct {
	Post *operation `json:"post"`
}

type operation struct {
	OperationID string          `json:"operationId"`
	Tags        []string        `json:"tags"`
	Summary     string          `json:"summary"`
	Description string          `json:"description"`
	Deprecated  bool            `json:"deprecated,omitempty"`
	Parameters  []parameter     `json:"parameters,omitempty"`
	RequestBody body            `json:"requestBody"`
	Responses   map[string]body `json:"responses"`
}

type parameter struct {
	Name        string                          `json:"name"`
	In          string                          `json:"in"`
	Required    bool                            `json:"required"`
	Description string                          `json:"description"`
	Schema      apiextensionsv1.JSONSchemaProps `json:"schema"`
}

type body struct {
	Description string  `json:"description,omitempty"`
	Content     content `json:"content"`
}

type content map[string]struct {
	Schema apiextensionsv1.JSONSchemaProps `json:"schema"`
}
