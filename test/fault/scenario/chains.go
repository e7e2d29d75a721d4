package scenario

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/test/fault/history"
)

// chainVersions are the versions that the class lists in the scenarios of upgrades by several minor versions.
func chainVersions() []string {
	return []string{firstVersion, secondVersion, "v1.31.2", "v1.32.4", "v1.33.1"}
}

// chains are the scenarios in which a Cluster is upgraded by several minor versions with one change. The control plane gets each of them,
// and the workers the one at which they must stop, and the last one.
func chains() []Scenario {
	s, versions := deployed(1, 1), chainVersions()
	last := versions[len(versions)-1]
	return []Scenario{{
		Name: "chain-1x1", Before: &s, Arrange: listVersions, Change: []Change{upgradeTo(last)}, Done: []Condition{upgradedTo(last), Ready(s)},
		Limits: Limits{
			MaxControlPlanes: 2, MaxWorkers: 2, MinControlPlanes: 1, MinWorkers: 1, NewControlPlanes: len(versions) - 1, NewWorkers: 2,
		},
	}}
}

// listVersions has the class list versions.
func listVersions(ctx context.Context, t Target) error {
	classes := &unstructured.UnstructuredList{}
	classes.SetAPIVersion(clusterAPI)
	classes.SetKind("ClusterClassList")
	if err := t.Client.List(ctx, classes, client.InNamespace(t.Namespace)); err != nil {
		return err
	}
	var errs []error
	for i := range classes.Items {
		class := &classes.Items[i]
		errs = append(errs, unstructured.SetNestedStringSlice(class.Object, slices.Clone(chainVersions()), "spec", "kubernetesVersions"),
			t.Client.Update(ctx, class))
	}
	return errors.Join(errs...)
}

// upgradeTo changes the version of the Cluster.
func upgradeTo(version string) Change {
	return editCluster(func(topology map[string]any) error {
		topology["version"] = version
		return nil
	})
}

// upgradedTo is true when all Machines and their owners have a version.
func upgradedTo(version string) Condition {
	return func(now history.State) error { return haveVersion(now, version) }
}
