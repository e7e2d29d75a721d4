package scenario

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/test/fault/history"
)

//go:embed repair.yaml
var repairDefinitions []byte

const repairKind = "Repair"

// externalRemediations returns the scenarios in which a third-party provider repairs machines, and none is replaced.
func externalRemediations() []Scenario {
	s := deployed(1, 5)
	return []Scenario{{
		Name: "remediate-externally", Prepare: CreateRepairTemplate, Before: &s, Provider: RepairMachines,
		Change: []Change{UseRepair, LosePower(false, 2)},
		Done:   []Condition{repaired(s)},
		Limits: Limits{MaxControlPlanes: 1, MaxWorkers: 5, MinControlPlanes: 1, MinWorkers: 3},
	}}
}

// repairTemplate returns the template of Repairs.
func repairTemplate(t Target) *unstructured.Unstructured {
	template := object(infrastructureAPI, repairKind+clusterv1.TemplateSuffix, t.Namespace, "power")
	template.Object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{"method": "power"}}}
	return template
}

// CreateRepairTemplate creates the template of Repairs.
func CreateRepairTemplate(ctx context.Context, t Target) error {
	return t.Client.Create(ctx, repairTemplate(t))
}

// UseRepair makes the health checks of the topology create Repairs.
func UseRepair(ctx context.Context, t Target) error {
	template := repairTemplate(t)
	ref := map[string]any{"apiVersion": infrastructureAPI, "kind": template.GetKind(), "name": template.GetName(), "namespace": t.Namespace}
	return checkHealth(map[string]any{"remediationTemplate": ref})(ctx, t)
}

// RepairMachines gives the machines of Repairs their power back. Each call repairs at most one.
func RepairMachines(ctx context.Context, t Target, now history.State) error {
	f := injected(now)
	for _, r := range now.Of(repairKind) {
		if i := slices.Index(f.DeadMachines, r.GetName()); i >= 0 {
			f.DeadMachines = slices.Delete(f.DeadMachines, i, i+1)
			return inject(ctx, t, now, f)
		}
	}
	return nil
}

// repaired is true when all machines have power, no Repair is left, and the Cluster is ready.
func repaired(s Size) Condition {
	return func(now history.State) error {
		if dead := Powerless(now); len(dead) > 0 {
			return fmt.Errorf("machines %v have no power", dead)
		}
		if left := now.Of(repairKind); len(left) > 0 {
			return fmt.Errorf("%s %s still exists", repairKind, left[0].GetName())
		}
		return errors.Join(checked(now, s.ControlPlanes+s.Workers, 0), Ready(s)(now))
	}
}
