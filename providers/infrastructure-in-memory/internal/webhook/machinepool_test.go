package webhook

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
)

func TestPools(t *testing.T) {
	spec := func(d time.Duration, replicas *int32) inmemoryv1.InMemoryMachinePoolSpec {
		vm := &inmemoryv1.InMemoryVMBehaviour{Provisioning: inmemoryv1.CommonProvisioningSettings{StartupDuration: metav1.Duration{Duration: d}}}
		return inmemoryv1.InMemoryMachinePoolSpec{
			Replicas: replicas, Template: inmemoryv1.InMemoryMachinePoolMachineTemplate{Behaviour: &inmemoryv1.InMemoryMachineBehaviour{VM: vm}},
		}
	}
	for _, tt := range []struct {
		reason         string
		before         *inmemoryv1.InMemoryMachinePoolSpec
		spec           inmemoryv1.InMemoryMachinePoolSpec
		dryRun         bool
		pool, template []string
	}{
		{reason: "an empty spec is valid"},
		{reason: "durations and replicas", spec: spec(time.Second, ptr.To[int32](0))},
		{
			reason: "negative ones", spec: spec(-1, ptr.To[int32](-1)),
			pool:     []string{"spec.template.behaviour.vm.provisioning.startupDuration", "spec.replicas"},
			template: []string{"spec.template.spec.template.behaviour.vm.provisioning.startupDuration", "spec.template.spec.replicas"},
		},
		{reason: "a template is immutable, a pool is not", before: ptr.To(spec(1, nil)), spec: spec(2, nil), template: []string{"spec.template.spec"}},
		{reason: "the topology may try to change a template", before: ptr.To(spec(1, nil)), spec: spec(2, nil), dryRun: true},
		{reason: "an unchanged template", before: ptr.To(spec(1, nil)), spec: spec(1, nil)},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			ctx := admission.NewContextWithRequest(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{DryRun: &tt.dryRun}})
			template := &inmemoryv1.InMemoryMachinePoolTemplate{Spec: inmemoryv1.InMemoryMachinePoolTemplateSpec{Template: inmemoryv1.InMemoryMachinePoolTemplateResource{Spec: tt.spec}}}
			template.Annotations = map[string]string{clusterv1.TopologyDryRunAnnotation: ""}
			var before *inmemoryv1.InMemoryMachinePoolTemplate
			if tt.before != nil {
				before = template.DeepCopy()
				before.Spec.Template.Spec = *tt.before
			}
			var pool, templates []string
			for _, e := range checkPool(ctx, nil, &inmemoryv1.InMemoryMachinePool{Spec: tt.spec}) {
				pool = append(pool, e.Field)
			}
			for _, e := range checkPoolTemplate(ctx, before, template) {
				templates = append(templates, e.Field)
			}
			if diff := cmp.Diff([][]string{tt.pool, tt.template}, [][]string{pool, templates}); diff != "" {
				t.Errorf("fields of errors, -want +got:\n%s", diff)
			}
		})
	}
}
