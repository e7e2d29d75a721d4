package script

import (
	"net/http"
	"slices"
	"strings"
)

// Request is one request of a manager.
type Request struct {
	// Manager is the name of the program that sent the request.
	Manager string
	// Workload is the name of the workload cluster. Empty: the management cluster.
	Workload string
	// Run is the run's namespace in the management cluster: that of the request, or that of the workload cluster's Cluster.
	// Empty: the request is not for one namespace.
	Run string
	// Verb is get, list, watch, create, update, patch, delete, deletecollection or connect.
	Verb string
	// Resource is the plural of the kind, and, after a slash, the subresource. It has no group, because it is unambiguous here.
	Resource string
	// Namespace and Name are those of the URL. A create has no name.
	Namespace, Name string
}

// Write reports whether the request is a write.
func (r Request) Write() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb)
}

// Lease reports whether the request is for a Lease, that is, for leader election.
func (r Request) Lease() bool { return r.Resource == "leases" }

// Kind returns the attributes of the request that are the same in every run.
func (r Request) Kind() Kind {
	return Kind{Manager: r.Manager, Workload: r.Workload != "", Verb: r.Verb, Resource: r.Resource}
}

// ParseRequest parses the path, query and method of a request. It returns false for paths without a resource, such as /version.
func ParseRequest(h *http.Request) (Request, bool) {
	parts := strings.Split(strings.Trim(h.URL.Path, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return Request{}, false
	}
	r := Request{}
	if len(parts) >= 3 && parts[0] == "namespaces" && parts[2] != "status" && parts[2] != "finalize" {
		r.Namespace, parts = parts[1], parts[2:]
	}
	r.Resource = parts[0]
	if len(parts) > 1 {
		r.Name = parts[1]
	}
	if len(parts) > 2 {
		r.Resource += "/" + parts[2]
	}
	r.Verb = verb(h, r)
	return r, true
}

func verb(h *http.Request, r Request) string {
	if slices.Contains([]string{"portforward", "exec", "attach", "proxy"}, subresource(r.Resource)) {
		return "connect"
	}
	switch h.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if r.Name == "" {
			return "deletecollection"
		}
		return "delete"
	}
	watching := h.URL.Query().Get("watch")
	switch {
	case watching == "true" || watching == "1":
		return "watch"
	case r.Name == "":
		return "list"
	}
	return "get"
}

func subresource(resource string) string {
	_, sub, _ := strings.Cut(resource, "/")
	return sub
}
