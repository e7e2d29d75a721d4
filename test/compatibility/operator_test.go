package compatibility

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// ofProposal lists the fields of the operator that only its proposal has, below spec or below the containers of Deployments.
func ofProposal() []string {
	return []string{
		"spec.secretName", "spec.paused", "spec.manager.debug", "spec.additionalDeployments{}.manager.debug",
		"spec.deployment.containers[].image", "spec.additionalDeployments{}.deployment.containers[].image",
		"spec.manager.metricsAddress", "spec.additionalDeployments{}.manager.metricsAddress",
	}
}

// ruled lists the fields with rules of ours, for fields that exclude each other.
func ruled() []string {
	return []string{
		"spec", "spec.deployment.containers[]", "spec.additionalDeployments{}.deployment.containers[]",
		"spec.manager", "spec.additionalDeployments{}.manager",
	}
}

// numeric lists the strings that may be numbers, too, as in the examples of the proposal.
func numeric() []string {
	var paths []string
	for _, prefix := range []string{"spec.", "spec.additionalDeployments{}."} {
		paths = append(paths, prefix+"deployment.containers[].args{}")
		for _, path := range []string{
			"additionalArgs{}", "syncPeriod", "gracefulShutDown", "leaderElection.leaseDuration", "leaderElection.renewDeadline", "leaderElection.retryPeriod",
		} {
			paths = append(paths, prefix+"manager."+path)
		}
	}
	return paths
}

// ownColumn reports whether a column is our own: the wanted version, and whether it is installed, which InstalledVersion does not say.
func ownColumn(c column) bool { return c.Name == "Version" || c.Name == "Installed" }

// TestOperator compares the kinds of the operator with those of its releases: names, columns, and all fields.
func TestOperator(t *testing.T) {
	reference := readDefinitions(t, filepath.Join(facts(t, "crds-operator"), "*.yaml"))
	actual := ours(t)
	if len(reference) != 7 {
		t.Fatalf("got %d kinds", len(reference))
	}
	for _, name := range slices.Sorted(maps.Keys(reference)) {
		t.Run(name, func(t *testing.T) {
			want, got := surfaces(reference)[name], surfaces(actual)[name]
			delete(got.Versions, "v1alpha1")
			for name, v := range got.Versions {
				v.Columns = slices.DeleteFunc(v.Columns, ownColumn)
				got.Versions[name] = v
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("names, columns or subresources differ (-reference +ours):\n%s", diff)
			}
			before, after := operatorFields(reference[name], "v1alpha2"), operatorFields(actual[name], "v1alpha2")
			if diff := cmp.Diff(after, operatorFields(actual[name], "v1alpha1")); diff != "" {
				t.Errorf("the versions have different fields:\n%s", diff)
			}
			for _, path := range ofProposal() {
				if _, ok := after[path]; !ok || after[path].Required {
					t.Errorf("%s must exist, and not be required", path)
				}
				maps.DeleteFunc(after, func(other string, _ field) bool { return isBelow(other, path) })
			}
			for _, path := range numeric() {
				widened := before[path]
				widened.Type, widened.Constraints = "int-or-string", map[string]string{"x-kubernetes-int-or-string": "true"}
				before[path] = widened
			}
			for _, path := range ruled() {
				delete(before, path)
				delete(after, path)
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("fields differ (-reference +ours):\n%s", diff)
			}
		})
	}
}

// operatorFields returns the fields of a version.
func operatorFields(definition object, version string) map[string]field {
	fields := map[string]field{}
	for _, v := range list(definition, "spec", "versions") {
		if schema, ok := at(v, "schema", "openAPIV3Schema").(object); ok && text(v, "name") == version {
			collect(fields, "", schema, false)
		}
	}
	return fields
}
