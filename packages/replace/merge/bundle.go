package merge

import (
	"bytes"
	"encoding/base64"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/packages/manifest"
)

// Bundles are CA bundles of webhooks, by the Service that serves them.
type Bundles map[types.NamespacedName]string

// placeholder is the bundle of manifests whose authors had to set one: a base64 line break.
const placeholder = "Cg=="

// BundlesOf returns the CA bundles of webhook configurations and CustomResourceDefinitions.
func BundlesOf(objects ...unstructured.Unstructured) Bundles {
	b := Bundles{}
	for i := range objects {
		for _, config := range clientConfigs(&objects[i]) {
			service, ok := serviceOf(config)
			bundle, _ := config["caBundle"].(string)
			if ok && bundle != "" && bundle != placeholder {
				b[service] = bundle
			}
		}
	}
	return b
}

// Fill sets the CA bundles of an object that has none.
func (b Bundles) Fill(o *unstructured.Unstructured) {
	for _, config := range clientConfigs(o) {
		own, _ := config["caBundle"].(string)
		service, ok := serviceOf(config)
		if ok && b[service] != "" && (own == "" || own == placeholder) {
			config["caBundle"] = b[service]
		}
	}
}

// Add makes the webhooks of an object trust the CA bundles, too: versions of a provider that run at the same time may have
// certificates of different CAs.
func (b Bundles) Add(o *unstructured.Unstructured) {
	for _, config := range clientConfigs(o) {
		service, ok := serviceOf(config)
		own, _ := config["caBundle"].(string)
		if !ok || b[service] == "" || own == "" || own == placeholder {
			continue
		}
		config["caBundle"] = joined(own, b[service])
	}
	b.Fill(o)
}

// joined returns the bundle with the certificates of both; bundles are PEM in base64.
func joined(a, b string) string {
	first, errA := base64.StdEncoding.DecodeString(a)
	second, errB := base64.StdEncoding.DecodeString(b)
	switch {
	case errA != nil || bytes.Contains(second, bytes.TrimSpace(first)):
		return b
	case errB != nil || bytes.Contains(first, bytes.TrimSpace(second)):
		return a
	}
	return base64.StdEncoding.EncodeToString(bytes.Join([][]byte{bytes.TrimSpace(first), second}, []byte("\n")))
}

// clientConfigs returns how an object's webhooks are called.
func clientConfigs(o *unstructured.Unstructured) []map[string]any {
	switch o.GetKind() {
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		var list []map[string]any
		for _, webhook := range entries(o.Object, "webhooks") {
			if config, ok := webhook["clientConfig"].(map[string]any); ok {
				list = append(list, config)
			}
		}
		return list
	case manifest.KindCRD:
		value, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "conversion", "webhook", "clientConfig")
		if config, ok := value.(map[string]any); ok {
			return []map[string]any{config}
		}
	}
	return nil
}

func serviceOf(config map[string]any) (types.NamespacedName, bool) {
	service, ok := config["service"].(map[string]any)
	namespace, _ := service["namespace"].(string)
	name, _ := service["name"].(string)
	return types.NamespacedName{Namespace: namespace, Name: name}, ok
}

// Untrusted reports whether an object has a webhook of a Service without a CA bundle, which cannot be called.
func Untrusted(o *unstructured.Unstructured) bool {
	for _, config := range clientConfigs(o) {
		bundle, _ := config["caBundle"].(string)
		if _, ok := serviceOf(config); ok && (bundle == "" || bundle == placeholder) {
			return true
		}
	}
	return false
}

// IgnoreFailures makes the API server ignore the failures of a configuration's webhooks that have no CA bundle.
func IgnoreFailures(o *unstructured.Unstructured) {
	for _, webhook := range entries(o.Object, "webhooks") {
		config, _ := webhook["clientConfig"].(map[string]any)
		if bundle, _ := config["caBundle"].(string); bundle == "" || bundle == placeholder {
			webhook["failurePolicy"] = "Ignore"
		}
	}
}
