package apiserver

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/apiserver/change"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

// resource is a resource of the API.
type resource struct {
	gvk        schema.GroupVersionKind
	plural     string
	short      []string
	namespaced bool
	// all is whether "kubectl get all" shows it.
	all bool
	// status is whether it has a status subresource.
	status bool
	// scale is whether it has a scale subresource.
	scale bool
	// review is whether it is a review, which is answered but not stored.
	review bool
	// fields are the supported paths of field selectors, in addition to name and namespace.
	fields []string
	// extra are subresources other than status and scale.
	extra []subresource
}

// subresource is a subresource of an object.
type subresource struct {
	name  string
	gvk   schema.GroupVersionKind
	verbs []string
}

func (r *resource) groupResource() store.Resource {
	return store.Resource{Group: r.gvk.Group, Resource: r.plural}
}

func (r *resource) managed() change.Kind {
	return change.Kind{GroupVersionKind: r.gvk, Status: r.status}
}

func (r *resource) singular() string { return strings.ToLower(r.gvk.Kind) }

func (r *resource) hasSubresource(name string) bool {
	return name == "status" && r.status || name == "scale" && r.scale ||
		slices.ContainsFunc(r.extra, func(s subresource) bool { return s.name == name })
}

var (
	storedVerbs  = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	statusVerbs  = []string{"get", "patch", "update"}
	scaleKind    = autoscalingv1.SchemeGroupVersion.WithKind("Scale")
	evictionKind = policyv1.SchemeGroupVersion.WithKind("Eviction")
	eventFields  = []string{"involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
		"involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason", "reportingComponent",
		"source", "type"}
	podFields = []string{"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
		"status.phase", "status.podIP", "status.nominatedNodeName"}
	podSubresource = []subresource{
		{name: "attach", gvk: corev1.SchemeGroupVersion.WithKind("PodAttachOptions"), verbs: []string{"create", "get"}},
		{name: "eviction", gvk: evictionKind, verbs: []string{"create"}},
		{name: "exec", gvk: corev1.SchemeGroupVersion.WithKind("PodExecOptions"), verbs: []string{"create", "get"}},
		{name: "log", gvk: corev1.SchemeGroupVersion.WithKind("Pod"), verbs: []string{"get"}},
		{name: "portforward", gvk: corev1.SchemeGroupVersion.WithKind("PodPortForwardOptions"), verbs: []string{"create", "get"}},
	}
)

// builtins returns the resources of the API, in the order of discovery: core first, groups by name.
func builtins() []*resource {
	return slices.Concat(coreResources(), appsResources(), reviewResources(),
		in(batchv1.SchemeGroupVersion,
			&resource{gvk: kind("CronJob"), plural: "cronjobs", short: []string{"cj"}, namespaced: true, status: true, all: true},
			&resource{gvk: kind("Job"), plural: "jobs", namespaced: true, status: true, all: true, fields: []string{"status.successful"}},
		),
		in(coordinationv1.SchemeGroupVersion,
			&resource{gvk: kind("Lease"), plural: "leases", namespaced: true},
		),
		in(discoveryv1.SchemeGroupVersion,
			&resource{gvk: kind("EndpointSlice"), plural: "endpointslices", namespaced: true},
		),
		in(networkingv1.SchemeGroupVersion,
			&resource{gvk: kind("Ingress"), plural: "ingresses", short: []string{"ing"}, namespaced: true, status: true},
			&resource{gvk: kind("NetworkPolicy"), plural: "networkpolicies", short: []string{"netpol"}, namespaced: true},
		),
		in(policyv1.SchemeGroupVersion,
			&resource{gvk: kind("PodDisruptionBudget"), plural: "poddisruptionbudgets", short: []string{"pdb"}, namespaced: true, status: true},
		),
		in(rbacv1.SchemeGroupVersion,
			&resource{gvk: kind("ClusterRoleBinding"), plural: "clusterrolebindings"},
			&resource{gvk: kind("ClusterRole"), plural: "clusterroles"},
			&resource{gvk: kind("RoleBinding"), plural: "rolebindings", namespaced: true},
			&resource{gvk: kind("Role"), plural: "roles", namespaced: true},
		),
		in(storagev1.SchemeGroupVersion,
			&resource{gvk: kind("CSINode"), plural: "csinodes"},
			&resource{gvk: kind("StorageClass"), plural: "storageclasses", short: []string{"sc"}},
			&resource{gvk: kind("VolumeAttachment"), plural: "volumeattachments", status: true},
		),
	)
}

func coreResources() []*resource {
	return in(corev1.SchemeGroupVersion,
		&resource{gvk: kind("ConfigMap"), plural: "configmaps", short: []string{"cm"}, namespaced: true},
		&resource{gvk: kind("Endpoints"), plural: "endpoints", short: []string{"ep"}, namespaced: true},
		&resource{gvk: kind("Event"), plural: "events", short: []string{"ev"}, namespaced: true, fields: eventFields},
		&resource{gvk: kind("Namespace"), plural: "namespaces", short: []string{"ns"}, status: true, fields: []string{"status.phase"}},
		&resource{gvk: kind("Node"), plural: "nodes", short: []string{"no"}, status: true, fields: []string{"spec.unschedulable"}},
		&resource{gvk: kind("PersistentVolumeClaim"), plural: "persistentvolumeclaims", short: []string{"pvc"}, namespaced: true, status: true},
		&resource{gvk: kind("PersistentVolume"), plural: "persistentvolumes", short: []string{"pv"}, status: true},
		&resource{gvk: kind("Pod"), plural: "pods", short: []string{"po"}, namespaced: true, status: true, all: true, fields: podFields,
			extra: podSubresource},
		&resource{gvk: kind("Secret"), plural: "secrets", namespaced: true, fields: []string{"type"}},
		&resource{gvk: kind("ServiceAccount"), plural: "serviceaccounts", short: []string{"sa"}, namespaced: true},
		&resource{gvk: kind("Service"), plural: "services", short: []string{"svc"}, namespaced: true, status: true, all: true,
			fields: []string{"spec.clusterIP", "spec.type"}},
	)
}

func appsResources() []*resource {
	return in(appsv1.SchemeGroupVersion,
		&resource{gvk: kind("DaemonSet"), plural: "daemonsets", short: []string{"ds"}, namespaced: true, status: true, all: true},
		&resource{gvk: kind("Deployment"), plural: "deployments", short: []string{"deploy"}, namespaced: true, status: true, scale: true,
			all: true},
		&resource{gvk: kind("ReplicaSet"), plural: "replicasets", short: []string{"rs"}, namespaced: true, status: true, scale: true,
			all: true, fields: []string{"status.replicas"}},
		&resource{gvk: kind("StatefulSet"), plural: "statefulsets", short: []string{"sts"}, namespaced: true, status: true, scale: true,
			all: true, fields: []string{"status.successful"}},
	)
}

func reviewResources() []*resource {
	return slices.Concat(
		in(authenticationv1.SchemeGroupVersion,
			&resource{gvk: kind("SelfSubjectReview"), plural: "selfsubjectreviews", review: true},
			&resource{gvk: kind("TokenReview"), plural: "tokenreviews", review: true},
		),
		in(authorizationv1.SchemeGroupVersion,
			&resource{gvk: kind("LocalSubjectAccessReview"), plural: "localsubjectaccessreviews", namespaced: true, review: true},
			&resource{gvk: kind("SelfSubjectAccessReview"), plural: "selfsubjectaccessreviews", review: true},
			&resource{gvk: kind("SelfSubjectRulesReview"), plural: "selfsubjectrulesreviews", review: true},
			&resource{gvk: kind("SubjectAccessReview"), plural: "subjectaccessreviews", review: true},
		),
	)
}

func kind(k string) schema.GroupVersionKind { return schema.GroupVersionKind{Kind: k} }

func in(gv schema.GroupVersion, rs ...*resource) []*resource {
	for _, r := range rs {
		r.gvk = gv.WithKind(r.gvk.Kind)
	}
	return rs
}

// catalog looks up resources. It is immutable.
type catalog struct {
	resources []*resource
	versions  []schema.GroupVersion
	byPath    map[schema.GroupVersionResource]*resource
	discovery discovery
}

func newCatalog() *catalog { return newCatalogOf(builtins()) }

func newCatalogOf(resources []*resource) *catalog {
	c := &catalog{resources: resources, byPath: map[schema.GroupVersionResource]*resource{}}
	for _, r := range c.resources {
		gv := r.gvk.GroupVersion()
		c.byPath[gv.WithResource(r.plural)] = r
		if !slices.Contains(c.versions, gv) {
			c.versions = append(c.versions, gv)
		}
	}
	c.discovery = newDiscovery(c)
	return c
}

func (c *catalog) find(gv schema.GroupVersion, plural string) *resource {
	return c.byPath[gv.WithResource(plural)]
}
