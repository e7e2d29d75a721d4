package webhookcert

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// calling is a webhook's clientConfig.
func calling(namespace, service, caBundle string) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{
		Service:  &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: service, Path: ptr.To("/validate")},
		CABundle: []byte(caBundle),
	}
}

func validating(annotations map[string]string, configs ...admissionregistrationv1.WebhookClientConfig) *admissionregistrationv1.ValidatingWebhookConfiguration {
	c := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "test", Annotations: annotations}}
	for i, config := range configs {
		c.Webhooks = append(c.Webhooks, admissionregistrationv1.ValidatingWebhook{Name: string(rune('a'+i)) + ".x-k8s.io", ClientConfig: config})
	}
	return c
}

func mutating(configs ...admissionregistrationv1.WebhookClientConfig) *admissionregistrationv1.MutatingWebhookConfiguration {
	c := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "test"}}
	for i, config := range configs {
		c.Webhooks = append(c.Webhooks, admissionregistrationv1.MutatingWebhook{Name: string(rune('a'+i)) + ".x-k8s.io", ClientConfig: config})
	}
	return c
}

func definition(conversion *apiextensionsv1.CustomResourceConversion) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "clusters.cluster.x-k8s.io"},
		Spec:       apiextensionsv1.CustomResourceDefinitionSpec{Group: "cluster.x-k8s.io", Conversion: conversion},
	}
}

func converting(service, caBundle string) *apiextensionsv1.CustomResourceConversion {
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{ClientConfig: &apiextensionsv1.WebhookClientConfig{
			Service:  &apiextensionsv1.ServiceReference{Namespace: "capi-system", Name: service},
			CABundle: []byte(caBundle),
		}},
	}
}

func TestInject(t *testing.T) {
	const ours = "capi-webhook-service"
	url := admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://example.com"), CABundle: []byte("theirs")}
	tests := map[string]struct {
		reason       string
		object, want client.Object
		writes       int
	}{
		"webhooks of two services": {
			reason: "only what calls the manager's Service is written",
			object: validating(nil, calling("capi-system", ours, ""), calling("capi-system", "other", "theirs"), calling("elsewhere", ours, "theirs"), url),
			want:   validating(nil, calling("capi-system", ours, "CA"), calling("capi-system", "other", "theirs"), calling("elsewhere", ours, "theirs"), url),
			writes: 1,
		},
		"several webhooks": {
			reason: "all of a configuration's webhooks are written with one patch",
			object: mutating(calling("capi-system", ours, ""), calling("capi-system", ours, "old")),
			want:   mutating(calling("capi-system", ours, "CA"), calling("capi-system", ours, "CA")),
			writes: 1,
		},
		"up to date": {
			reason: "what is right is not written",
			object: mutating(calling("capi-system", ours, "CA")),
			want:   mutating(calling("capi-system", ours, "CA")),
		},
		"another injector": {
			reason: "an object has one injector: the one that issued the certificate",
			object: validating(map[string]string{foreignInjector: "capi-system/capi-serving-cert", "kept": "yes"}, calling("capi-system", ours, "old")),
			want:   validating(map[string]string{"kept": "yes"}, calling("capi-system", ours, "CA")),
			writes: 1,
		},
		"another injector of another service": {
			reason: "what does not call the manager is left to its owner",
			object: validating(map[string]string{foreignInjector: "other/cert"}, calling("other", "other", "theirs")),
			want:   validating(map[string]string{foreignInjector: "other/cert"}, calling("other", "other", "theirs")),
		},
		"definition that is converted": {
			reason: "conversion webhooks need to be trusted, too",
			object: definition(converting(ours, "")),
			want:   definition(converting(ours, "CA")),
			writes: 1,
		},
		"definition converted elsewhere": {
			reason: "another provider's definition is not ours",
			object: definition(converting("other", "theirs")),
			want:   definition(converting("other", "theirs")),
		},
		"definition without conversion": {
			reason: "a definition with one version has no webhook",
			object: definition(&apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}),
			want:   definition(&apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, tt.object)
			i := injector{reader: s, writer: s, service: testService, conversions: true}
			for range 2 { // the second time there is nothing left to write
				if err := i.inject(t.Context(), []byte("CA")); err != nil {
					t.Fatal(err)
				}
			}
			got := tt.object.DeepCopyObject().(client.Object)
			if err := s.Get(t.Context(), client.ObjectKeyFromObject(got), got); err != nil {
				t.Fatal(err)
			}
			got.SetResourceVersion("")
			tt.want.SetResourceVersion("")
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
			if s.writes != tt.writes {
				t.Errorf("%s: got %d writes, want %d", tt.reason, s.writes, tt.writes)
			}
		})
	}
}

func TestCachedDefinitionsHaveNoSchema(t *testing.T) {
	full := definition(converting("capi-webhook-service", "CA"))
	full.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1beta1"}}
	full.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	got, err := withoutSchema(full)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(definition(converting("capi-webhook-service", "CA")), got); diff != "" {
		t.Errorf("only what is needed to patch the CA bundle is kept (-want +got):\n%s", diff)
	}
}
