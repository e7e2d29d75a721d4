package components

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sigs.k8s.io/cluster-api/packages/manifest"
)

const injectCAAnnotation = "cert-manager.io/inject-ca-from"

// SetTargetNamespace moves a provider's objects to the namespace, including references to it: the Namespace's name,
// subjects of role bindings, Services of webhooks and conversions, DNS names of Certificates. If there is no Namespace,
// it is prepended.
func SetTargetNamespace(objects []unstructured.Unstructured, namespace string) []unstructured.Unstructured {
	scope := manifest.ScopeOf(objects)
	found := false
	for i := range objects {
		o := &objects[i]
		old := o.GetNamespace()
		if o.GetKind() == "Namespace" {
			found = true
			o.SetName(namespace)
		}
		if scope.Namespaced(o) {
			o.SetNamespace(namespace)
		}
		setReferences(o, old, namespace)
	}
	if found {
		return objects
	}
	ns := unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace},
	}}
	return append([]unstructured.Unstructured{ns}, objects...)
}

func setReferences(o *unstructured.Unstructured, old, namespace string) {
	switch o.GetKind() {
	case "RoleBinding", "ClusterRoleBinding":
		for _, subject := range items(o.Object, "subjects") {
			if _, ok := subject["namespace"]; ok {
				subject["namespace"] = namespace
			}
		}
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		for _, webhook := range items(o.Object, "webhooks") {
			setServiceNamespace(webhook, namespace, "clientConfig", "service")
		}
		setInjectCA(o, namespace)
	case manifest.KindCRD:
		setServiceNamespace(o.Object, namespace, "spec", "conversion", "webhook", "clientConfig", "service")
		setInjectCA(o, namespace)
	case "Certificate":
		if o.GroupVersionKind().Group == certManagerGroup {
			setDNSNames(o, old, namespace)
		}
	}
}

func setServiceNamespace(object map[string]any, namespace string, path ...string) {
	for _, key := range path {
		child, ok := object[key].(map[string]any)
		if !ok {
			return
		}
		object = child
	}
	object["namespace"] = namespace
}

func setInjectCA(o *unstructured.Unstructured, namespace string) {
	annotations := o.GetAnnotations()
	if _, name, ok := strings.Cut(annotations[injectCAAnnotation], "/"); ok {
		annotations[injectCAAnnotation] = namespace + "/" + name
		o.SetAnnotations(annotations)
	}
}

func setDNSNames(o *unstructured.Unstructured, old, namespace string) {
	names, ok, err := unstructured.NestedStringSlice(o.Object, "spec", "dnsNames")
	if !ok || err != nil || old == "" {
		return
	}
	for i := range names {
		names[i] = strings.Replace(names[i], "."+old+".", "."+namespace+".", 1)
	}
	// Cannot fail: the path was read above.
	_ = unstructured.SetNestedStringSlice(o.Object, names, "spec", "dnsNames")
}

// items returns the maps in a list without copying, so that changes to them change the object.
func items(object map[string]any, path ...string) []map[string]any {
	value, ok, err := unstructured.NestedFieldNoCopy(object, path...)
	list, isList := value.([]any)
	if !ok || err != nil || !isList {
		return nil
	}
	var maps []map[string]any
	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			maps = append(maps, m)
		}
	}
	return maps
}
