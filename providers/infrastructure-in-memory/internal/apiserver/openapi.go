package apiserver

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/apiserver/change"
)

// openAPI serves OpenAPI documents, which kubectl uses to validate, merge and explain. Version 3 documents are derived
// from Go types: fields, merge strategies in tags and descriptions. A document is generated when it is first requested.
// The version 2 document is empty: it is for clients that require one (kubectl before 1.29), but use their compiled-in
// types.
type openAPI struct {
	index     []byte
	documents map[string]func() []byte // by path
	oldJSON   []byte
	oldProto  []byte
}

// The media type of the version 2 document in requests, and its valid form.
const (
	oldProtoAsked = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
	oldProtoType  = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
)

func newOpenAPI(c *catalog) *openAPI {
	o := &openAPI{documents: map[string]func() []byte{}}
	type link struct {
		URL string `json:"serverRelativeURL"`
	}
	paths := map[string]link{}
	for _, gv := range c.versions {
		root := strings.TrimPrefix(rootOf(gv), "/")
		paths[root] = link{URL: "/openapi/v3/" + root}
		o.documents["/openapi/v3/"+root] = sync.OnceValue(func() []byte { return mustEncode(document(c, gv)) })
	}
	o.index = mustEncode(map[string]any{"paths": paths})
	o.oldJSON = mustEncode(object{"swagger": "2.0", "info": object{"title": "Kubernetes", "version": "v1"}, "paths": object{}})
	old := &openapi_v2.Document{Swagger: "2.0", Info: &openapi_v2.Info{Title: "Kubernetes", Version: "v1"}, Paths: &openapi_v2.Paths{}}
	var err error
	if o.oldProto, err = proto.Marshal(old); err != nil {
		panic(fmt.Sprintf("OpenAPI document does not encode: %v", err))
	}
	return o
}

func rootOf(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.String()
}

// serve handles requests for OpenAPI documents, and reports whether this was one.
func (o *openAPI) serve(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet {
		return false
	}
	path := strings.TrimSuffix(r.URL.Path, "/")
	switch {
	case path == "/openapi/v3":
		writeBytes(w, http.StatusOK, "application/json", o.index)
		return true
	case path == "/openapi/v2" && strings.Contains(r.Header.Get("Accept"), oldProtoAsked):
		writeBytes(w, http.StatusOK, oldProtoType, o.oldProto)
		return true
	case path == "/openapi/v2":
		writeBytes(w, http.StatusOK, "application/json", o.oldJSON)
		return true
	}
	text, found := o.documents[path]
	if found {
		writeBytes(w, http.StatusOK, "application/json", text())
	}
	return found
}

// object is a JSON object.
type object = map[string]any

func document(c *catalog, gv schema.GroupVersion) object {
	d := &describer{schemas: object{}}
	paths := object{}
	for _, r := range c.resources {
		if r.gvk.GroupVersion() == gv {
			addPaths(paths, d, r)
		}
	}
	return object{
		"openapi":    "3.0.0",
		"info":       object{"title": "Kubernetes", "version": gv.Version},
		"paths":      paths,
		"components": object{"schemas": d.schemas},
	}
}

// addPaths describes a resource's collection and its objects.
func addPaths(paths object, d *describer, r *resource) {
	typed, err := scheme.Scheme.New(r.gvk)
	if err != nil {
		return // Not of a kind with a schema.
	}
	ref := d.schema(reflect.TypeOf(typed).Elem())
	d.identify(reflect.TypeOf(typed).Elem(), r.gvk)

	collection := rootOf(r.gvk.GroupVersion())
	if r.namespaced {
		collection += "/namespaces/{namespace}"
	}
	collection += "/" + r.plural
	body := object{"content": object{"application/json": object{"schema": ref}}}
	operation := func(action string, requestBody any, parameters ...string) object {
		o := object{
			"x-kubernetes-action":             action,
			"x-kubernetes-group-version-kind": object{"group": r.gvk.Group, "version": r.gvk.Version, "kind": r.gvk.Kind},
			"responses": object{"200": object{"description": "OK",
				"content": object{"application/json": object{"schema": ref}}}},
		}
		list := make([]any, 0, len(parameters))
		for _, name := range parameters {
			list = append(list, object{"name": name, "in": "query", "schema": object{"type": "string", "uniqueItems": true}})
		}
		o["parameters"] = list
		if requestBody != nil {
			o["requestBody"] = requestBody
		}
		return o
	}
	write := []string{"dryRun", "fieldManager", "fieldValidation"}
	if r.review {
		paths[collection] = object{"post": operation("post", body, write...)}
		return
	}
	patches := object{}
	for _, t := range change.PatchTypes {
		patches[t] = object{"schema": object{"type": "object"}}
	}
	paths[collection] = object{
		"get":  operation("list", nil, "labelSelector", "fieldSelector", "watch"),
		"post": operation("post", body, write...),
	}
	paths[collection+"/{name}"] = object{
		"get":    operation("get", nil),
		"put":    operation("put", body, write...),
		"patch":  operation("patch", object{"content": patches}, append(write, "force")...),
		"delete": operation("delete", nil, "dryRun", "gracePeriodSeconds", "propagationPolicy"),
	}
}

// describer generates schemas of Go types.
type describer struct {
	schemas object
}

// identify sets the kind of a type's schema.
func (d *describer) identify(t reflect.Type, gvk schema.GroupVersionKind) {
	if described, ok := d.schemas[modelName(t)].(object); ok {
		described["x-kubernetes-group-version-kind"] = []any{object{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind}}
	}
}

// schema returns the schema of a type: a reference for structs, which are described once.
func (d *describer) schema(t reflect.Type) object {
	if described := declared(t); described != nil {
		return described
	}
	switch t.Kind() {
	case reflect.Pointer:
		return d.schema(t.Elem())
	case reflect.Struct:
		name := modelName(t)
		if d.schemas[name] == nil {
			d.schemas[name] = object{} // types can be recursive
			d.schemas[name] = d.structure(t)
		}
		return object{"$ref": "#/components/schemas/" + name}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": d.schema(t.Elem())}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return object{"type": "string", "format": "byte"}
		}
		return object{"type": "array", "items": d.schema(t.Elem())}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number", "format": "double"}
	case reflect.Int64, reflect.Uint64, reflect.Int, reflect.Uint:
		return object{"type": "integer", "format": "int64"}
	case reflect.Int32, reflect.Uint32, reflect.Int16, reflect.Uint16, reflect.Int8, reflect.Uint8:
		return object{"type": "integer", "format": "int32"}
	}
	return object{"x-kubernetes-preserve-unknown-fields": true}
}

// declared returns the schema of types with custom JSON encoding, such as times and quantities, or nil.
func declared(t reflect.Type) object {
	if t == reflect.TypeFor[metav1.FieldsV1]() {
		return object{"type": "object"}
	}
	typed, ok := reflect.New(t).Interface().(interface {
		OpenAPISchemaType() []string
		OpenAPISchemaFormat() string
	})
	if !ok {
		return nil
	}
	described := object{"type": typed.OpenAPISchemaType()[0]}
	switch format := typed.OpenAPISchemaFormat(); format {
	case "":
	case "int-or-string":
		return object{"x-kubernetes-int-or-string": true, "oneOf": []any{object{"type": "integer"}, object{"type": "string"}}}
	default:
		described["format"] = format
	}
	return described
}

// structure describes the fields of a struct.
func (d *describer) structure(t reflect.Type) object {
	documented, _ := reflect.New(t).Interface().(interface{ SwaggerDoc() map[string]string })
	var docs map[string]string
	if documented != nil {
		docs = documented.SwaggerDoc()
	}
	properties := object{}
	var required []any
	d.addFields(t, properties, &required, docs)
	described := object{"type": "object", "properties": properties}
	if docs[""] != "" {
		described["description"] = docs[""]
	}
	if len(required) > 0 {
		described["required"] = required
	}
	return described
}

func (d *describer) addFields(t reflect.Type, properties object, required *[]any, docs map[string]string) {
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported():
			continue
		case field.Anonymous && name == "":
			d.addFields(field.Type, properties, required, typeDocs(field.Type))
			continue
		case name == "":
			continue
		}
		described := d.schema(field.Type)
		if _, isRef := described["$ref"]; isRef && (docs[name] != "" || field.Tag.Get("patchStrategy") != "") {
			described = object{"allOf": []any{described}}
		}
		if docs[name] != "" {
			described["description"] = docs[name]
		}
		if strategy := field.Tag.Get("patchStrategy"); strategy != "" {
			described["x-kubernetes-patch-strategy"] = strategy
		}
		if key := field.Tag.Get("patchMergeKey"); key != "" {
			described["x-kubernetes-patch-merge-key"] = key
		}
		properties[name] = described
		if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
			*required = append(*required, name)
		}
	}
}

func typeDocs(t reflect.Type) map[string]string {
	if documented, ok := reflect.New(t).Interface().(interface{ SwaggerDoc() map[string]string }); ok {
		return documented.SwaggerDoc()
	}
	return map[string]string{"apiVersion": "The version of the schema of this object.", "kind": "The kind of this object."}
}

// modelName is the name of a type's schema.
func modelName(t reflect.Type) string {
	if named, ok := reflect.New(t).Interface().(interface{ OpenAPIModelName() string }); ok {
		return named.OpenAPIModelName()
	}
	return strings.NewReplacer("/", ".", "~", "-").Replace(t.PkgPath()) + "." + t.Name()
}
