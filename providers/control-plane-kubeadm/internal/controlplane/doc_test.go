package controlplane

import (
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

func TestStepsAreDocumented(t *testing.T) {
	testenv.StepsDocumented(t, (&Controller{}).declared().Names(), (&orphanedMachines{}).declared().Names())
}

// A step is found by its name: pre-terminate is in preterminate.go.
func TestStepsHaveFiles(t *testing.T) {
	for _, name := range slices.Concat((&Controller{}).declared().Names(), (&orphanedMachines{}).declared().Names()) {
		if file := strings.ReplaceAll(name, "-", "") + ".go"; !exists(file) {
			t.Errorf("step %s has no file %s", name, file)
		}
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
