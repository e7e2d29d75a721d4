package scenario

import (
	"context"

	"sigs.k8s.io/cluster-api/packages/storageversion"
)

// turned returns the scenarios of a management cluster whose objects are stored in the older version, and back, while a Cluster is created
// and scaled up.
func turned() []Scenario {
	small := deployed(1, 1)
	created := creation("turned-1x1", small)
	created.Change = append(created.Change, turn("v1beta1"), turn("v1beta2"))
	scaled := scaling("turned-workers-up", small, deployed(1, 3))
	scaled.Change = append(scaled.Change, turn("v1beta1"), turn("v1beta2"))
	return []Scenario{created, scaled}
}

// turn stores all objects in a version, with the same code as clusterctl.
func turn(version string) Change {
	return func(ctx context.Context, t Target) error {
		turns, err := storageversion.PlanTurns(ctx, t.Client, t.Config, version)
		if err != nil {
			return err
		}
		for _, kind := range turns {
			if err := kind.Run(ctx, t.Client, nil); err != nil {
				return err
			}
		}
		return nil
	}
}
