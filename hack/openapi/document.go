// Package openapi generates the OpenAPI document of the runtime hooks: the paths from the catalog of hooks, the schemas from the Go types.
// Authors of runtime extensions in other languages generate servers from it.
package openapi

import (
	"fmt"
	"reflect"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/exp/runtime/hooks/api/v1alpha1"
)

// File is the name of the document, also among the files of a release.
const File = "runtime-sdk-openapi.yaml"

const (
	mediaType   = "application/json"
	description = "The services that Cluster API calls while it manages the lifecycle of Clusters: " +
		"runtime hooks. Runtime extensions implement them."
	handlerName = "The name of the handler, unique on the server."
	success     = "The request was processed. Whether it succeeded is in the fields of the response, such as status and message."
)

// typesPatterns are the packages with the types of the hooks.
func typesPatterns() []string {
	return []string{"./exp/runtime/hooks/api/...", "./api/runtime/hooks/..."}
}

// Generate returns the document, as YAML, for the repository at root.
func Generate(root string) ([]byte, error) {
	catalog := runtimecatalog.New()
	if err := runtimehooksv1.AddToCatalog(catalog); err != nil {
		return nil, err
	}
	types, err := load(root)
	if err != nil {
		return nil, err
	}
	out := document{
		OpenAPI: "3.0.0",
		Info: info{
			Title: "Cluster API - Runtime SDK", Version: "v1alpha1", Description: description,
			License: license{Name: "Apache 2.0", URL: "http://www.apache.org/licenses/LICENSE-2.0.html"},
		},
		Paths: map[string]path{},
	}
	for _, hook := range catalog.Hooks() {
		post, err := operationOf(catalog, hook, types)
		if err != nil {
			return nil, fmt.Errorf("hook %s: %w", hook, err)
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
