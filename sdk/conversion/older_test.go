package conversion_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// What only v1beta1 has is in its form of an object, and in that of the objects of a template.
func TestOlder(t *testing.T) {
	spec := bootstrapv1beta1.KubeadmConfigSpec{
		UseExperimentalRetryJoin: true, PreKubeadmCommands: []string{"true"},
		ClusterConfiguration: &bootstrapv1beta1.ClusterConfiguration{Networking: bootstrapv1beta1.Networking{DNSDomain: "example.com"}},
	}
	registry := conversion.New(nil)
	written := &bootstrapv1beta1.KubeadmConfigTemplate{}
	written.Spec.Template.Spec = spec
	template := &bootstrapv1.KubeadmConfigTemplate{}
	if err := registry.Convert(t.Context(), written, template); err != nil {
		t.Fatal(err)
	}
	config := &bootstrapv1.KubeadmConfig{Spec: template.Spec.Template.Spec}
	older := &bootstrapv1beta1.KubeadmConfig{}
	if found, err := conversion.Older(t.Context(), config, older); found || err != nil {
		t.Errorf("without the annotation: found = %t, err = %v", found, err)
	}
	config.Annotations = map[string]string{conversion.OlderVersionAnnotation: conversion.OlderOfTemplate(template)}
	if found, err := conversion.Older(t.Context(), config, older, "revisionHistoryLimit"); found || err != nil {
		t.Errorf("another field: found = %t, err = %v", found, err)
	}
	if found, err := conversion.Older(t.Context(), config, older, "networking", "x"); !found || err != nil {
		t.Errorf("found = %t, err = %v", found, err)
	}
	if diff := cmp.Diff(spec, older.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	for reason, annotation := range map[string]string{"not JSON": "{", "no spec": "{}", "another form": `{"spec": []}`} {
		template.Annotations[conversion.OlderVersionAnnotation] = annotation
		if kept := conversion.OlderOfTemplate(template); kept != "" {
			t.Errorf("%s: %q", reason, kept)
		}
	}
}
