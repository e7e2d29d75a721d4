package journey

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// strategyClass applies the class of the project with a variable for the rollout strategy of control planes, and returns its name.
func (w *World) strategyClass() string {
	w.t.Helper()
	objects, err := readObjects(w.Tools.ProjectTemplate().Class)
	testenv.Must(w.t, err)
	name := ""
	for _, o := range objects {
		if o.GetKind() == "ClusterClass" {
			name = o.GetName()
			variables, _, _ := unstructured.NestedSlice(o.Object, "spec", "variables")
			testenv.Must(w.t, unstructured.SetNestedSlice(o.Object, append(variables, map[string]any{
				"name": "controlPlaneMaxSurge", "required": false,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "integer", "enum": []any{int64(0), int64(1)}, "default": int64(1)}},
			}), "spec", "variables"))
			patches, _, _ := unstructured.NestedSlice(o.Object, "spec", "patches")
			testenv.Must(w.t, unstructured.SetNestedSlice(o.Object, append(patches, map[string]any{"name": "strategy", "definitions": []any{map[string]any{
				"selector": map[string]any{
					"apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlaneTemplate",
					"matchResources": map[string]any{"controlPlane": true},
				},
				"jsonPatches": []any{map[string]any{
					"op": "add", "path": "/spec/template/spec/rollout",
					"valueFrom": map[string]any{"template": "strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: {{ .controlPlaneMaxSurge }}}}"},
				}},
			}}}), "spec", "patches"))
		}
		w.Applied(o)
	}
	return name
}

// maxSurge is true when the control plane has observed its rollout strategy.
func maxSurge(n int) Condition {
	return func(p *Snapshot) error {
		if len(p.ControlPlanes.Items) != 1 {
			return fmt.Errorf("%d control planes", len(p.ControlPlanes.Items))
		}
		plane := &p.ControlPlanes.Items[0]
		strategy := plane.Spec.RolloutStrategy
		if strategy == nil || strategy.RollingUpdate == nil || strategy.RollingUpdate.MaxSurge == nil || *strategy.RollingUpdate.MaxSurge != intstr.FromInt32(int32(n)) {
			return fmt.Errorf("the rollout strategy is %+v", strategy)
		}
		if plane.Status.ObservedGeneration != plane.Generation {
			return fmt.Errorf("generation %d is not observed", plane.Generation)
		}
		return nil
	}
}

// TestControlPlaneStrategy: a variable of the class sets the rollout strategy of the control plane. A change of it replaces no Machine; the next
// upgrade uses it.
func TestControlPlaneStrategy(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	c := w.Subject(NewCluster("c", w.strategyClass()).ControlPlanes(3).Version(older).Build())
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(3), Version(older), maxSurge(1))

	still := c.Always("no Machine is replaced", SameMachines((*Snapshot).ControlPlane, c.Snapshot()))
	c.Change(setVariable("controlPlaneMaxSurge", 0))
	c.Eventually("the control plane has the strategy", Ready, ControlPlanes(3), Version(older), maxSurge(0))
	still()

	still = c.Always("the control plane has no additional Machine", AtMost(3, 0))
	c.Change(SetVersion(newer))
	c.Eventually("the control plane is upgraded", Ready, ControlPlanes(3), Version(newer), maxSurge(0), c.WorkloadMatches)
	still()
	c.Gone()
}
