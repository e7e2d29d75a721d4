package merge

import (
	"encoding/base64"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/packages/storageversion"
)

// injectCA is the annotation that makes cert-manager write CA bundles. Managers that write their own remove it: keeping it
// would let both overwrite each other.
const injectCA = "cert-manager.io/inject-ca-from"

// Final returns the object to write so that live becomes desired.
func Final(live, desired *unstructured.Unstructured) *unstructured.Unstructured {
	out := Normal(desired)
	keepMetadata(live, out)
	if status, ok := live.Object["status"]; ok {
		out.Object["status"] = status
	}
	switch out.GetKind() {
	case "Namespace":
		kept := live.DeepCopy()
		labels := out.GetLabels()
		if of, ok := live.GetLabels()[clusterv1.ProviderNameLabel]; ok {
			labels[clusterv1.ProviderNameLabel] = of // It is that of the last provider that was installed in it.
		}
		kept.SetLabels(labels)
		kept.SetAnnotations(out.GetAnnotations())
		return kept
	case "Service":
		keepAddresses(live, out)
	case "ServiceAccount":
		keepFields(live, out, "secrets", "imagePullSecrets")
	case "Secret":
		keepFields(live, out, "type")
	case "PersistentVolumeClaim":
		keepField(live, out, true, "spec")
	case "Deployment", "StatefulSet":
		keepField(live, out, false, "spec", "replicas") // An autoscaler may own it.
	case "ClusterRole":
		// A controller computes the rules of an aggregated role; an empty list would withdraw all permissions until it does.
		keepField(live, out, out.Object["aggregationRule"] != nil, "rules")
	case manifest.KindCRD:
		BundlesOf(*live).Fill(out)
		storageversion.Keep(out, live)
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		BundlesOf(*live).Fill(out)
	}
	return out
}

// Normal returns a copy of an object of a manifest as the API server would return it, as far as that matters for comparing
// and merging: stringData of Secrets becomes data.
func Normal(o *unstructured.Unstructured) *unstructured.Unstructured {
	out := o.DeepCopy()
	texts, _, _ := unstructured.NestedStringMap(out.Object, "stringData")
	if out.GetKind() != "Secret" || len(texts) == 0 {
		return out
	}
	data, _ := out.Object["data"].(map[string]any)
	if data == nil {
		data = map[string]any{}
	}
	for key, text := range texts {
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	out.Object["data"] = data
	delete(out.Object, "stringData")
	return out
}

// Snapshot returns an object as it is recorded: without status, and without metadata that only the API server writes.
func Snapshot(o *unstructured.Unstructured) unstructured.Unstructured {
	out := o.DeepCopy()
	delete(out.Object, "status")
	for _, field := range []string{
		"managedFields", "resourceVersion", "uid", "generation", "selfLink",
		"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
	} {
		unstructured.RemoveNestedField(out.Object, "metadata", field)
	}
	return *out
}

// ForCreation returns the object to create: without the addresses that a recorded Service had, which other Services may have by now.
func ForCreation(desired *unstructured.Unstructured) *unstructured.Unstructured {
	out := Normal(desired)
	if out.GetKind() == "Service" && hasClusterIP(out) {
		for _, field := range []string{"clusterIP", "clusterIPs"} {
			unstructured.RemoveNestedField(out.Object, "spec", field)
		}
	}
	return out
}

// Same reports whether two objects are equal in everything that a write could change.
func Same(a, b *unstructured.Unstructured) bool {
	first, second := Snapshot(a), Snapshot(b)
	return equality.Semantic.DeepEqual(first.Object, second.Object)
}

// MustRecreate reports whether live cannot be updated to desired, because the API server does not allow the change.
func MustRecreate(live, desired *unstructured.Unstructured) bool {
	differs := func(path ...string) bool {
		a, _, _ := unstructured.NestedFieldNoCopy(live.Object, path...)
		b, ok, _ := unstructured.NestedFieldNoCopy(Normal(desired).Object, path...)
		return ok && !equality.Semantic.DeepEqual(a, b)
	}
	switch live.GetKind() {
	case "Deployment", "DaemonSet", "StatefulSet":
		return differs("spec", "selector")
	case "RoleBinding", "ClusterRoleBinding":
		return differs("roleRef")
	case "ConfigMap", "Secret":
		return live.Object["immutable"] == true && (differs("data") || differs("binaryData")) || differs("type")
	}
	return false
}

// keepMetadata copies what other clients own. Without the UID, an object that was deleted and created again meanwhile would be
// overwritten.
func keepMetadata(live, out *unstructured.Unstructured) {
	out.SetUID(live.GetUID())
	out.SetResourceVersion(live.GetResourceVersion())
	out.SetCreationTimestamp(live.GetCreationTimestamp())
	out.SetGeneration(live.GetGeneration())
	out.SetManagedFields(live.GetManagedFields())
	out.SetLabels(union(live.GetLabels(), out.GetLabels()))
	annotations := maps.Clone(live.GetAnnotations())
	delete(annotations, injectCA)
	out.SetAnnotations(union(annotations, out.GetAnnotations()))
	finalizers := live.GetFinalizers()
	for _, f := range out.GetFinalizers() {
		if !slices.Contains(finalizers, f) {
			finalizers = append(finalizers, f)
		}
	}
	out.SetFinalizers(finalizers)
	out.SetOwnerReferences(owners(live, out))
}

func owners(live, out *unstructured.Unstructured) []metav1.OwnerReference {
	list := live.GetOwnerReferences()
	for _, own := range out.GetOwnerReferences() {
		if !slices.ContainsFunc(list, func(o metav1.OwnerReference) bool { return o.UID == own.UID }) {
			list = append(list, own)
		}
	}
	return list
}

// union returns the entries of both maps, those of the second where they conflict; nil if there are none.
func union(a, b map[string]string) map[string]string {
	if len(a)+len(b) == 0 {
		return nil
	}
	all := map[string]string{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

// keepAddresses copies what the API server allocated for a Service. Its cluster IPs cannot change: a recorded Service that had to be
// created again keeps its new ones.
func keepAddresses(live, out *unstructured.Unstructured) {
	allocated := hasClusterIP(live) && hasClusterIP(out)
	for _, field := range []string{"clusterIP", "clusterIPs"} {
		keepField(live, out, allocated, "spec", field)
	}
	for _, field := range []string{"ipFamilies", "ipFamilyPolicy", "healthCheckNodePort"} {
		keepField(live, out, false, "spec", field)
	}
	for _, port := range entries(out.Object, "spec", "ports") {
		if port["nodePort"] != nil {
			continue
		}
		for _, old := range entries(live.Object, "spec", "ports") {
			if samePort(old, port) && old["nodePort"] != nil {
				port["nodePort"] = old["nodePort"]
			}
		}
	}
}

// hasClusterIP reports whether a Service has an address, or does not say which.
func hasClusterIP(service *unstructured.Unstructured) bool {
	ip, _, _ := unstructured.NestedString(service.Object, "spec", "clusterIP")
	return ip != "None"
}

func keepFields(live, out *unstructured.Unstructured, fields ...string) {
	for _, field := range fields {
		keepField(live, out, false, field)
	}
}

// keepField copies a field of live if desired does not have it, or always.
func keepField(live, out *unstructured.Unstructured, always bool, path ...string) {
	value, ok, err := unstructured.NestedFieldCopy(live.Object, path...)
	if !ok || err != nil {
		return
	}
	if _, has, _ := unstructured.NestedFieldNoCopy(out.Object, path...); !has || always {
		// Cannot fail: the parents of the field are maps in every valid object.
		_ = unstructured.SetNestedField(out.Object, value, path...)
	}
}

// entries returns the maps of a list, not copied: changes to them change the object.
func entries(object map[string]any, path ...string) []map[string]any {
	value, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	list, _ := value.([]any)
	var found []map[string]any
	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			found = append(found, m)
		}
	}
	return found
}
