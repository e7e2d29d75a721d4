// Package recorded reads the objects that Cluster API v1.14.0 wrote in eight states of a cluster, as references for tests.
package recorded

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// State is the objects of a Cluster in one state.
type State struct {
	// Name is such as 2-at-rest.
	Name        string
	Cluster     *clusterv1.Cluster
	Machines    []*clusterv1.Machine
	Sets        []*clusterv1.MachineSet
	Deployments []*clusterv1.MachineDeployment
	// ControlPlane is the KubeadmControlPlane of the Cluster.
	ControlPlane *controlplanev1.KubeadmControlPlane
}

// States returns the objects of all states. The test is skipped if the reference data is absent: root is the path from the
// package's folder to the root of the repository.
func States(t *testing.T, root string) []State {
	t.Helper()
	facts := os.Getenv("CAPI_FACTS_DIR")
	if facts == "" {
		facts = filepath.Join(root, "..", "shared", "facts")
	}
	const suffix = ".cluster.v1beta2.json"
	paths, err := filepath.Glob(filepath.Join(facts, "data", "recorded", "v1.14.0", "*"+suffix))
	if err != nil || len(paths) == 0 {
		t.Skipf("the reference data is absent, so nothing was compared: set CAPI_FACTS_DIR to the directory with data/recorded (%v)", err)
	}
	var states []State
	for _, path := range paths {
		s := State{Name: strings.TrimSuffix(filepath.Base(path), suffix)}
		for _, file := range []string{path, strings.TrimSuffix(path, suffix) + ".controlplane.v1beta2.json"} {
			if err := s.read(file); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
		}
		states = append(states, s)
	}
	return states
}

func (s *State) read(file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var objects []json.RawMessage
	if err := json.Unmarshal(content, &objects); err != nil {
		return err
	}
	for _, raw := range objects {
		if err := s.add(raw); err != nil {
			return err
		}
	}
	return nil
}

func (s *State) add(raw json.RawMessage) error {
	var kind struct{ Kind string }
	if err := json.Unmarshal(raw, &kind); err != nil {
		return err
	}
	switch kind.Kind {
	case clusterv1.ClusterKind:
		s.Cluster = &clusterv1.Cluster{}
		return json.Unmarshal(raw, s.Cluster)
	case "KubeadmControlPlane":
		s.ControlPlane = &controlplanev1.KubeadmControlPlane{}
		return json.Unmarshal(raw, s.ControlPlane)
	case clusterv1.MachineKind:
		s.Machines = append(s.Machines, &clusterv1.Machine{})
		return json.Unmarshal(raw, s.Machines[len(s.Machines)-1])
	case clusterv1.MachineSetKind:
		s.Sets = append(s.Sets, &clusterv1.MachineSet{})
		return json.Unmarshal(raw, s.Sets[len(s.Sets)-1])
	case clusterv1.MachineDeploymentKind:
		s.Deployments = append(s.Deployments, &clusterv1.MachineDeployment{})
		return json.Unmarshal(raw, s.Deployments[len(s.Deployments)-1])
	}
	return nil
}

// Of returns the Machines with a label.
func (s *State) Of(label, value string) []*clusterv1.Machine {
	var found []*clusterv1.Machine
	for _, m := range s.Machines {
		if m.Labels[label] == value {
			found = append(found, m)
		}
	}
	return found
}
