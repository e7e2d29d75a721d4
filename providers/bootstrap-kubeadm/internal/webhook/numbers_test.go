package webhook

import (
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm/kubeadmtest"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// Numbers are rejected with their field's name, or any value of them works.
func TestNumbers(t *testing.T) {
	table := kubeadmtest.Numbers("KubeadmConfig.")
	maps.Copy(table, kubeadmtest.Numbers("KubeadmConfigTemplate.template.spec."))
	object.CheckNumbers(t, table, nil, map[string]object.Numbered{
		"KubeadmConfig": {
			New: func() any { return &bootstrapv1.KubeadmConfig{} },
			Validate: func(o any) field.ErrorList {
				return object.FieldErrors(configs{}.validate(t.Context(), nil, o.(*bootstrapv1.KubeadmConfig)))
			},
		},
		"KubeadmConfigTemplate": {
			New: func() any { return &bootstrapv1.KubeadmConfigTemplate{} },
			Validate: func(o any) field.ErrorList {
				return object.FieldErrors(templates{}.validate(t.Context(), nil, o.(*bootstrapv1.KubeadmConfigTemplate)))
			},
		},
	})
}
