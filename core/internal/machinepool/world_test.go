package machinepool

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/testenv"
	"sigs.k8s.io/cluster-api/provider/testenv/object"
)

var (
	poolKind    = kindOf("GenericMachinePool", "infrastructure.cluster.x-k8s.io")
	machineKind = kindOf("GenericMachine", "infrastructure.cluster.x-k8s.io")
	configKind  = kindOf("GenericConfig", "bootstrap.cluster.x-k8s.io")
)

func kindOf(kind, group string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
}

// withReferences gives a pool a template with metadata, a version, a timeout and references to objects p.
func withReferences(p *clusterv1.MachinePool) {
	template := &p.Spec.Template
	template.Labels, template.Annotations = map[string]string{"tier": "one"}, map[string]string{"note": "old"}
	template.Spec.Version, template.Spec.NodeDrainTimeout = ptr.To("v1.35.4"), &metav1.Duration{Duration: time.Minute}
	template.Spec.InfrastructureRef = *object.Reference(poolKind, "p")
	template.Spec.Bootstrap.ConfigRef = object.Reference(configKind, "p")
}

func TestStepsAreDocumented(t *testing.T) {
	testenv.StepsDocumented(t, (&Controller{}).declared().Names())
}
