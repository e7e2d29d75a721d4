package scenario

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/test/fault/extension"
	"sigs.k8s.io/cluster-api/test/fault/history"
)

// updatedInPlace returns the scenarios of Machines that an extension changes in place. One Machine is new, because of the surge, and
// the last old one is deleted in the end: the others stay.
func updatedInPlace() []Scenario {
	s := deployed(3, 1)
	change := rollout("in-place-3x1", s, RotateControlPlane, 1, 0, Rotated("KubeadmControlPlane"), noneUpdating)
	change.Hooks, change.InPlace, change.Prepare = true, true, UpdateInPlace
	// Of workers, one is new, too, and the others move to the new MachineSet.
	workers := rollout("in-place-1x3", deployed(1, 3), RotateWorkers, 0, 1, Rotated("MachineDeployment"), noneUpdating)
	workers.Hooks, workers.InPlace, workers.Prepare = true, true, UpdateInPlace
	return []Scenario{change, workers}
}

// UpdateInPlace makes managers call the extension for the Machines of the namespace.
func UpdateInPlace(ctx context.Context, t Target) error {
	if err := ignoreExists(t.Client.Create(ctx, extension.NewRecord(t.Namespace))); err != nil {
		return err
	}
	namespace := object("v1", "Namespace", "", t.Namespace)
	namespace.SetLabels(map[string]string{extension.InPlaceLabel: "true"})
	return t.Client.Patch(ctx, namespace, client.Merge)
}

// noneUpdating is true when no Machine is being updated in place, and the extension has updated some.
func noneUpdating(now history.State) error {
	updated := 0
	for _, m := range now.Of("Machine") {
		if _, marked := m.GetAnnotations()[clusterv1.UpdateInProgressAnnotation]; marked {
			return fmt.Errorf("Machine %s is being updated in place", m.GetName())
		}
		if extension.UpdatedTo(Record(now), m.GetName()) != "" {
			updated++
		}
	}
	if updated == 0 {
		return errors.New("no Machine was updated in place")
	}
	return nil
}
