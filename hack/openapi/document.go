// Package openapi generates the OpenAPI document of the runtime hooks: the paths from the catalog of hooks, the schemas from the Go types.
// Authors of runtime extensions in other languages generate servers from it.
package openapi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"

	runtimecatalog "sigs.k8s.io/cluster-api/exp/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/exp/runtime/hooks/api/v1alpha1"
)

// File is the name of the document, also among the files of a release.
const File = "runtime-sdk-openapi.yaml"

const (
	mediaType    = "application/json"
	description  = "The services that Cluster API calls while it manages the lifecycle of Clusters: runtime hooks. Runtime extensions implement them."
	handlerName  = "The name of the handler, unique on the server."
	success      = "The request was processed. Whether it succeeded is in the fields of the response, such as status and message."
	typesPattern = "./exp/runtime/hooks/api/..."
)

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
	document := &spec3.OpenAPI{
		Version: "3.0.0",
		Info: &spec.Info{InfoProps: spec.InfoProps{
			Title: "Cluster API - Runtime SDK", Version: "v1alpha1", Description: description,
			License: &spec.License{Name: "Apache 2.0", URL: "http://www.apache.org/licenses/LICENSE-2.0.html"},
		}},
		Paths: &spec3.Paths{Paths: map[string]*spec3.Path{}},
	}
	for _, hook := range catalog.Hooks() {
		path, err := pathOf(catalog, hook, types)
		if err != nil {
			return nil, fmt.Errorf("hook %s: %w", hook, err)
		}
		name := ""
		if len(path.Post.Parameters) > 0 {
			name = "{name}"
		}
		document.Paths.Paths[runtimecatalog.GVHToPath(hook, name)] = path
	}
	if document.Components, err = types.components(); err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("encoding the document: %w", err)
	}
	return yaml.JSONToYAML(encoded)
}

func pathOf(catalog *runtimecatalog.Catalog, hook runtimecatalog.GroupVersionHook, types *schemas) (*spec3.Path, error) {
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
	post := &spec3.Operation{OperationProps: spec3.OperationProps{
		Tags: meta.Tags, Summary: meta.Summary, Description: meta.Description, Deprecated: meta.Deprecated,
		OperationId: operationOf(hook),
		RequestBody: &spec3.RequestBody{RequestBodyProps: spec3.RequestBodyProps{Content: accepted}},
		Responses: &spec3.Responses{ResponsesProps: spec3.ResponsesProps{StatusCodeResponses: map[int]*spec3.Response{
			200: {ResponseProps: spec3.ResponseProps{Description: success, Content: returned}},
		}}},
	}}
	if !meta.Singleton {
		post.Parameters = []*spec3.Parameter{{ParameterProps: spec3.ParameterProps{
			Name: "name", In: "path", Required: true, Description: handlerName, Schema: spec.StringProperty(),
		}}}
	}
	return &spec3.Path{PathProps: spec3.PathProps{Post: post}}, nil
}

// operationOf returns an identifier such as hooksRuntimeClusterV1alpha1Discovery.
func operationOf(hook runtimecatalog.GroupVersionHook) string {
	words := strings.Split(strings.TrimSuffix(hook.Group, ".x-k8s.io"), ".")
	id := words[0]
	for _, word := range append(words[1:], hook.Version, strings.ToLower(hook.Hook)) {
		id += strings.ToUpper(word[:1]) + word[1:]
	}
	return id
}

// content is a body with the type of an object.
func (s *schemas) content(object runtime.Object) (map[string]*spec3.MediaType, error) {
	t := reflect.TypeOf(object).Elem()
	ref, err := s.need(t.PkgPath(), t.Name())
	if err != nil {
		return nil, err
	}
	return map[string]*spec3.MediaType{mediaType: {MediaTypeProps: spec3.MediaTypeProps{Schema: spec.RefSchema(ref)}}}, nil
}
