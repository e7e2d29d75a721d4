package apiserver

import (
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/apiserver/access"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

// request is an API request, parsed from its method and path.
type request struct {
	resource    *resource
	verb        string
	namespace   string
	name        string
	subresource string
	query       url.Values
}

// key returns the key of the request's object.
func (r *request) key() store.Key {
	return store.Key{Resource: r.resource.groupResource(), Namespace: r.namespace, Name: r.name}
}

func (r *request) dryRun() bool { return r.query.Get("dryRun") == "All" }

func (r *request) attributes() access.Attributes {
	return access.Attributes{
		Verb:                 r.verb,
		Group:                r.resource.gvk.Group,
		Resource:             r.resource.plural,
		Subresource:          r.subresource,
		Namespace:            r.namespace,
		Name:                 r.name,
		AlwaysForAnyIdentity: r.resource.review && strings.HasPrefix(r.resource.plural, "self"),
	}
}

// parse parses a request. The paths are
//
//	/api/v1/... and /apis/<group>/<version>/..., then
//	<resource>[/<name>[/<subresource>]] or namespaces/<namespace>/<resource>[/<name>[/<subresource>]]
//
// It returns nil for other paths and unknown resources.
func (c *catalog) parse(r *http.Request) *request {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var gv schema.GroupVersion
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		gv, parts = schema.GroupVersion{Version: parts[1]}, parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		gv, parts = schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:]
	default:
		return nil
	}
	req := &request{query: r.URL.Query()}
	// namespaces/x/status and namespaces/x/finalize are subresources of the namespace itself.
	if len(parts) >= 3 && parts[0] == "namespaces" && !(len(parts) == 3 && parts[2] == "status") {
		req.namespace, parts = parts[1], parts[2:]
	}
	if len(parts) > 3 {
		return nil
	}
	req.resource = c.find(gv, parts[0])
	if req.resource == nil || req.namespace != "" && !req.resource.namespaced {
		return nil
	}
	if len(parts) > 1 {
		req.name = parts[1]
	}
	if len(parts) > 2 {
		req.subresource = parts[2]
	}
	if req.name != "" && req.resource.namespaced && req.namespace == "" {
		return nil
	}
	req.verb = verbOf(r.Method, req)
	return req
}

func verbOf(method string, r *request) string {
	switch method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if r.name == "" {
			return "deletecollection"
		}
		return "delete"
	case http.MethodGet, http.MethodHead:
		watching := r.query.Get("watch")
		switch {
		case r.name != "":
			return "get"
		case watching == "true" || watching == "1":
			return "watch"
		}
		return "list"
	}
	return strings.ToLower(method)
}
