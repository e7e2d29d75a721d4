package apiserver

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/apiserver/change"
)

// This file removes what the API of Cluster API v1.7's in-memory provider does not have, for testing that clients do not
// require it: server-side apply and JSON patches, all subresources except port-forwarding by SPDY, deletion of
// collections, bookmarks and streamed lists, resource versions in lists and watches, pagination, health and version, and
// most kinds. Resource versions are not numbers.

// legacyCatalog is the catalog of a legacy API server.
func legacyCatalog() *catalog {
	return newCatalogOf(slices.Concat(
		in(corev1.SchemeGroupVersion,
			&resource{gvk: kind("ConfigMap"), plural: "configmaps", namespaced: true},
			&resource{gvk: kind("Endpoints"), plural: "endpoints", namespaced: true},
			&resource{gvk: kind("Namespace"), plural: "namespaces"},
			&resource{gvk: kind("Node"), plural: "nodes"},
			&resource{gvk: kind("Pod"), plural: "pods", namespaced: true, fields: []string{"spec.nodeName"}, extra: []subresource{
				{name: "portforward", gvk: corev1.SchemeGroupVersion.WithKind("PodPortForwardOptions"), verbs: []string{"create", "get"}},
			}},
			&resource{gvk: kind("Secret"), plural: "secrets", namespaced: true},
			&resource{gvk: kind("Service"), plural: "services", namespaced: true},
		),
		in(appsv1.SchemeGroupVersion,
			&resource{gvk: kind("DaemonSet"), plural: "daemonsets", namespaced: true},
			&resource{gvk: kind("Deployment"), plural: "deployments", namespaced: true},
		),
		in(rbacv1.SchemeGroupVersion,
			&resource{gvk: kind("ClusterRoleBinding"), plural: "clusterrolebindings"},
			&resource{gvk: kind("ClusterRole"), plural: "clusterroles"},
			&resource{gvk: kind("RoleBinding"), plural: "rolebindings", namespaced: true},
			&resource{gvk: kind("Role"), plural: "roles", namespaced: true},
		),
	))
}

// ignored are the parameters that a legacy API server ignores.
var ignored = []string{
	"sendInitialEvents", "allowWatchBookmarks", "resourceVersion", "resourceVersionMatch", "limit", "continue",
	"fieldManager", "fieldValidation", "force",
}

// legacyWatchSeconds is the default timeout of a watch, in seconds.
const legacyWatchSeconds = "120"

// legacyRequest returns the request as seen by a legacy API server.
func legacyRequest(r *http.Request) *http.Request {
	r = r.Clone(r.Context())
	query := r.URL.Query()
	for _, name := range ignored {
		query.Del(name)
	}
	if !strings.HasSuffix(strings.TrimSuffix(r.URL.Path, "/"), "/pods") {
		query.Del("fieldSelector")
	}
	if query.Get("timeoutSeconds") == "" {
		query.Set("timeoutSeconds", legacyWatchSeconds)
	}
	r.URL.RawQuery = query.Encode()
	r.Header.Set("Accept", "application/json")
	return r
}

// checkLegacy rejects what a legacy API server does not support. asked is nil for unknown resources.
func checkLegacy(r *http.Request, asked *request) error {
	path := strings.TrimSuffix(r.URL.Path, "/")
	switch {
	case asked == nil:
		parts := strings.Split(path, "/")
		if len(parts) > 3 && parts[1] == "apis" {
			return apierrors.NewInternalError(fmt.Errorf("group %s is not served", parts[2]))
		}
		if path != "" {
			return notServed(r)
		}
	case asked.subresource != "" && !asked.resource.hasSubresource(asked.subresource):
		return notServed(r)
	case asked.subresource == "portforward" && r.Header.Get("Upgrade") == "websocket":
		return apierrors.NewBadRequest("unable to upgrade: missing upgrade headers in request")
	case asked.verb == "deletecollection":
		return apierrors.NewMethodNotSupported(asked.resource.groupResource(), asked.verb)
	case asked.verb == "patch":
		switch t := types.PatchType(strings.TrimSpace(strings.Split(r.Header.Get("Content-Type"), ";")[0])); t {
		case types.MergePatchType, types.StrategicMergePatchType:
		default:
			return change.UnsupportedMediaType(string(t), string(types.MergePatchType), string(types.StrategicMergePatchType))
		}
	}
	return nil
}

// serveLegacy returns writer and request of a legacy API server, or why it rejects the request.
func (s *Server) serveLegacy(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, *http.Request, error) {
	r = legacyRequest(r)
	asked := s.legacy.parse(r)
	if asked == nil || asked.subresource != "portforward" {
		w = &versioned{ResponseWriter: w} // Must not be wrapped if it is hijacked.
	}
	if s.legacy.discovery.has(r.URL.Path) {
		return w, r, nil
	}
	return w, r, checkLegacy(r, asked)
}
