package apiserver

import (
	"net/http"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// discovery holds the discovery documents. They are the same for all clusters, so they are encoded once.
type discovery struct {
	documents map[string][]byte // by path
	core      []byte            // aggregated, of /api
	groups    []byte            // aggregated, of /apis
}

const aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// has reports whether there is a document at a path.
func (d discovery) has(path string) bool {
	_, found := d.documents[strings.TrimSuffix(path, "/")]
	return found
}

func newDiscovery(c *catalog) discovery {
	d := discovery{documents: map[string][]byte{}}
	groups := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	core, others := aggregatedList(), aggregatedList()
	for _, gv := range c.versions {
		list := legacyList(c, gv)
		if gv.Group == "" {
			d.documents["/api/"+gv.Version] = mustEncode(list)
			core.Items = append(core.Items, aggregate(c, gv))
			continue
		}
		version := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
		group := metav1.APIGroup{Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}
		groups.Groups = append(groups.Groups, group)
		group.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
		d.documents["/apis/"+gv.Group] = mustEncode(group)
		d.documents["/apis/"+gv.String()] = mustEncode(list)
		others.Items = append(others.Items, aggregate(c, gv))
	}
	d.documents["/api"] = mustEncode(&metav1.APIVersions{
		TypeMeta: metav1.TypeMeta{Kind: "APIVersions"},
		Versions: []string{"v1"},
	})
	d.documents["/apis"] = mustEncode(groups)
	d.core, d.groups = mustEncode(core), mustEncode(others)
	return d
}

func (r *resource) verbs() []string {
	if r.review {
		return []string{"create"}
	}
	return storedVerbs
}

// subresources lists all subresources of a resource.
func (r *resource) subresources() []subresource {
	var all []subresource
	if r.status {
		all = append(all, subresource{name: "status", gvk: r.gvk, verbs: statusVerbs})
	}
	if r.scale {
		all = append(all, subresource{name: "scale", gvk: scaleKind, verbs: statusVerbs})
	}
	return append(all, r.extra...)
}

func (r *resource) categories() []string {
	if r.all {
		return []string{"all"}
	}
	return nil
}

func legacyList(c *catalog, gv schema.GroupVersion) *metav1.APIResourceList {
	list := &metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: gv.String(),
	}
	for _, r := range c.resources {
		if r.gvk.GroupVersion() != gv {
			continue
		}
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: r.plural, SingularName: r.singular(), Namespaced: r.namespaced, Kind: r.gvk.Kind,
			Verbs: r.verbs(), ShortNames: r.short, Categories: r.categories(),
		})
		for _, s := range r.subresources() {
			entry := metav1.APIResource{Name: r.plural + "/" + s.name, Namespaced: r.namespaced, Kind: s.gvk.Kind, Verbs: s.verbs}
			if s.gvk.GroupVersion() != gv {
				entry.Group, entry.Version = s.gvk.Group, s.gvk.Version
			}
			list.APIResources = append(list.APIResources, entry)
		}
	}
	return list
}

func aggregatedList() *apidiscoveryv2.APIGroupDiscoveryList {
	return &apidiscoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: apidiscoveryv2.SchemeGroupVersion.String()},
	}
}

func aggregate(c *catalog, gv schema.GroupVersion) apidiscoveryv2.APIGroupDiscovery {
	version := apidiscoveryv2.APIVersionDiscovery{Version: gv.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
	for _, r := range c.resources {
		if r.gvk.GroupVersion() != gv {
			continue
		}
		entry := apidiscoveryv2.APIResourceDiscovery{
			Resource: r.plural, SingularResource: r.singular(), ResponseKind: metaKind(r.gvk),
			Scope: apidiscoveryv2.ScopeCluster, Verbs: r.verbs(), ShortNames: r.short, Categories: r.categories(),
		}
		if r.namespaced {
			entry.Scope = apidiscoveryv2.ScopeNamespace
		}
		for _, s := range r.subresources() {
			entry.Subresources = append(entry.Subresources, apidiscoveryv2.APISubresourceDiscovery{
				Subresource: s.name, ResponseKind: metaKind(s.gvk), Verbs: s.verbs,
			})
		}
		version.Resources = append(version.Resources, entry)
	}
	return apidiscoveryv2.APIGroupDiscovery{
		ObjectMeta: metav1.ObjectMeta{Name: gv.Group},
		Versions:   []apidiscoveryv2.APIVersionDiscovery{version},
	}
}

func metaKind(gvk schema.GroupVersionKind) *metav1.GroupVersionKind {
	return &metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
}

// serve handles discovery requests, and reports whether this was one.
func (d discovery) serve(w http.ResponseWriter, r *http.Request) bool {
	path := strings.TrimSuffix(r.URL.Path, "/")
	if r.Method != http.MethodGet {
		return false
	}
	if path == "/api" || path == "/apis" {
		w.Header().Set("Vary", "Accept")
		if accept, err := negotiate(r.Header.Get("Accept")); err == nil && accept.as == "APIGroupDiscoveryList" {
			text := d.core
			if path == "/apis" {
				text = d.groups
			}
			writeBytes(w, http.StatusOK, aggregatedType, text)
			return true
		}
	}
	text, found := d.documents[path]
	if found {
		writeBytes(w, http.StatusOK, "application/json", text)
	}
	return found
}
