package remote

import (
	"context"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// readThrough is a client that reads cached kinds from the cache, and all others live.
type readThrough struct {
	client.Client
	cached map[schema.GroupVersionKind]*store
}

// reader returns the cache for Go types of cached kinds, and otherwise the live client.
func (r *readThrough) reader(obj runtime.Object) client.Reader {
	switch obj.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return r.Client
	}
	gvk, err := apiutil.GVKForObject(obj, r.Scheme())
	if err != nil {
		return r.Client
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	if s := r.cached[gvk]; s != nil {
		return s
	}
	return r.Client
}

// Get implements client.Reader.
func (r *readThrough) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return r.reader(obj).Get(ctx, key, obj, opts...)
}

// List implements client.Reader.
func (r *readThrough) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return r.reader(list).List(ctx, list, opts...)
}

// clusterScoped are the cluster-scoped kinds of Kubernetes.
var clusterScoped = map[string]bool{ // a constant table
	"CertificateSigningRequest": true, "ClusterRole": true, "ClusterRoleBinding": true, "ClusterTrustBundle": true,
	"ComponentStatus": true, "CSIDriver": true, "CSINode": true, "DeviceClass": true, "DeviceTaintRule": true,
	"FlowSchema": true, "IngressClass": true, "IPAddress": true, "MutatingAdmissionPolicy": true,
	"MutatingAdmissionPolicyBinding": true, "MutatingWebhookConfiguration": true, "Namespace": true, "Node": true,
	"PersistentVolume": true, "PriorityClass": true, "PriorityLevelConfiguration": true,
	"ResourcePoolStatusRequest": true, "ResourceSlice": true, "RuntimeClass": true, "SelfSubjectAccessReview": true,
	"SelfSubjectReview": true, "SelfSubjectRulesReview": true, "ServiceCIDR": true, "StorageClass": true,
	"StorageVersion": true, "StorageVersionMigration": true, "SubjectAccessReview": true, "TokenReview": true,
	"ValidatingAdmissionPolicy": true, "ValidatingAdmissionPolicyBinding": true,
	"ValidatingWebhookConfiguration": true, "VolumeAttachment": true, "VolumeAttributesClass": true,
}

// knownKinds maps the kinds of a scheme to resources. It is large, and shared by all clusters.
func knownKinds(scheme *runtime.Scheme) meta.RESTMapper {
	known := meta.NewDefaultRESTMapper(scheme.PrioritizedVersionsAllGroups())
	for gvk := range scheme.AllKnownTypes() {
		if gvk.Version == runtime.APIVersionInternal {
			continue
		}
		scope := meta.RESTScopeNamespace
		// Caches also look up the scope of lists.
		if clusterScoped[strings.TrimSuffix(gvk.Kind, "List")] {
			scope = meta.RESTScopeRoot
		}
		known.Add(gvk, scope)
	}
	return known
}

// newMapper returns a mapper that only queries the cluster for other kinds.
func newMapper(config *rest.Config, http *http.Client, known meta.RESTMapper) (meta.RESTMapper, error) {
	asking, err := apiutil.NewDynamicRESTMapper(config, http)
	if err != nil {
		return nil, err
	}
	return meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{known, asking}}, nil
}
