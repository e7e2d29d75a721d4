package webhook

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Taints are validated wherever objects have them. What the old object has stays valid.
func TestTaints(t *testing.T) {
	of := func(key string) []clusterv1.MachineTaint {
		return []clusterv1.MachineTaint{{
			Key: key, Effect: corev1.TaintEffectNoSchedule, Propagation: clusterv1.MachineTaintPropagationAlways,
		}}
	}
	cluster := func(key string) *clusterv1.Cluster {
		c := &clusterv1.Cluster{}
		c.Spec.Topology.ControlPlane.Taints = of(key)
		c.Spec.Topology.Workers.MachineDeployments = []clusterv1.MachineDeploymentTopology{{}, {Taints: of(key)}}
		c.Spec.Topology.Workers.MachinePools = []clusterv1.MachinePoolTopology{{Taints: of(key)}}
		return c
	}
	class := func(key string) *clusterv1.ClusterClass {
		c := &clusterv1.ClusterClass{}
		c.Spec.ControlPlane.Taints = of(key)
		c.Spec.Workers.MachineDeployments = []clusterv1.MachineDeploymentClass{{}, {Taints: of(key)}}
		c.Spec.Workers.MachinePools = []clusterv1.MachinePoolClass{{Taints: of(key)}}
		return c
	}
	machine := func(key string) *clusterv1.Machine {
		return &clusterv1.Machine{Spec: clusterv1.MachineSpec{Taints: of(key)}}
	}
	template := func(key string) clusterv1.MachineTemplateSpec {
		return clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{Taints: of(key)}}
	}
	deployment := func(key string) *clusterv1.MachineDeployment {
		return &clusterv1.MachineDeployment{Spec: clusterv1.MachineDeploymentSpec{Template: template(key)}}
	}
	set := func(key string) *clusterv1.MachineSet {
		return &clusterv1.MachineSet{Spec: clusterv1.MachineSetSpec{Template: template(key)}}
	}
	pool := func(key string) *clusterv1.MachinePool {
		return &clusterv1.MachinePool{Spec: clusterv1.MachinePoolSpec{Template: template(key)}}
	}
	const inTemplate = "spec.template.spec.taints"
	topology := []string{"spec.topology.controlPlane.taints", "spec.topology.workers.machineDeployments[1].taints", "spec.topology.workers.machinePools[0].taints"}
	classes := []string{"spec.controlPlane.taints", "spec.workers.machineDeployments[1].taints", "spec.workers.machinePools[0].taints"}
	for name, tc := range map[string]struct {
		check func(enabled bool, old, key string) []string // It returns the fields with errors.
		want  []string
	}{
		"Cluster": {func(on bool, old, key string) []string {
			return taintFields(checkTaints(on, topologyTaints(cluster(old)), topologyTaints(cluster(key))))
		}, topology},
		"ClusterClass": {func(on bool, old, key string) []string {
			return taintFields(checkTaints(on, classTaints(class(old)), classTaints(class(key))))
		}, classes},
		"Machine": {func(on bool, old, key string) []string {
			return taintFields(Machine{Taints: on}.validate(machine(old), machine(key)))
		}, []string{"spec.taints"}},
		"MachineDeployment": {func(on bool, old, key string) []string {
			return taintFields(MachineDeployment{Taints: on}.validate(deployment(old), deployment(key)))
		}, []string{inTemplate}},
		"MachineSet": {func(on bool, old, key string) []string {
			return taintFields(MachineSet{Taints: on}.validate(set(old), set(key)))
		}, []string{inTemplate}},
		"MachinePool": {func(on bool, old, key string) []string {
			return taintFields(MachinePool{Enabled: true, Taints: on}.validate(pool(old), pool(key)))
		}, []string{inTemplate}},
	} {
		t.Run(name, func(t *testing.T) {
			const system = "node.kubernetes.io/not-ready"
			var keys []string
			for _, field := range tc.want {
				keys = append(keys, field+"[0].key")
			}
			for _, c := range []struct {
				reason   string
				enabled  bool
				old, key string
				want     []string
			}{
				{"the gate is off", false, "a", "b", tc.want},
				{"the gate is off, and nothing changes", false, "a", "a", nil},
				{"the taint is valid", true, "a", "b", nil},
				{"Kubernetes manages the taint", true, "a", system, keys},
				{"it was stored before there was such a rule", true, system, system, nil},
			} {
				if diff := cmp.Diff(c.want, tc.check(c.enabled, c.old, c.key)); diff != "" {
					t.Errorf("%s: fields with errors (-want +got):\n%s", c.reason, diff)
				}
			}
		})
	}
	if got := topologyTaints(nil); got != nil {
		t.Errorf("a Cluster that does not exist has taints %v", got)
	}
	if got := classTaints(nil); got != nil {
		t.Errorf("a class that does not exist has taints %v", got)
	}
}

// taintFields returns the fields of taints among those with errors.
func taintFields(errs field.ErrorList) []string {
	var fields []string
	for _, e := range errs {
		if slices.Contains(strings.FieldsFunc(e.Field, func(r rune) bool { return r == '.' || r == '[' }), "taints") {
			fields = append(fields, e.Field)
		}
	}
	return fields
}
