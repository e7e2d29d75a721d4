// Package recorded reads the objects that Cluster API v1.7.0 and v1.14.0 wrote in eight states of a cluster, as references for tests.
package recorded

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// State is the objects of a Cluster in one state, in v1beta2.
type State struct {
	// Name is such as 2-at-rest.
	Name        string
	Cluster     *clusterv1.Cluster
	Machines    []*clusterv1.Machine
	Sets        []*clusterv1.MachineSet
	Deployments []*clusterv1.MachineDeployment
	// ControlPlane is the KubeadmControlPlane of the Cluster.
	ControlPlane *controlplanev1.KubeadmControlPlane
	// Configs are the KubeadmConfigs, and Infrastructure all objects of the infrastructure provider, by name. Only those of Corpus have them.
	Configs        map[string]*bootstrapv1.KubeadmConfig
	Infrastructure map[string]*unstructured.Unstructured
	// Objects are all objects, as they were recorded.
	Objects []*unstructured.Unstructured
	// Secrets are the Secrets of the Cluster, as they were recorded: without their content. Only those of Corpus have them.
	Secrets []*unstructured.Unstructured
}

// States returns the objects of all states that v1.14.0 wrote. The test is skipped if the reference data is absent: root is the path from
// the package's folder to the root of the repository.
func States(t *testing.T, root string) []State {
	t.Helper()
	return read(t, root, "v1.14.0", "v1beta2", "cluster", "controlplane")
}

// Corpus returns the objects of all states that v1.7.0 and v1.14.0 wrote, in each version that they served, by both. The test is skipped if
// the reference data is absent.
func Corpus(t *testing.T, root string) map[string][]State {
	t.Helper()
	groups := []string{"cluster", "controlplane", "bootstrap", "infrastructure", secrets}
	return map[string][]State{
		"v1.7.0 in v1beta1":  read(t, root, "v1.7.0", "v1beta1", groups...),
		"v1.14.0 in v1beta1": read(t, root, "v1.14.0", "v1beta1", groups...),
		"v1.14.0 in v1beta2": read(t, root, "v1.14.0", "v1beta2", groups...),
	}
}

// infrastructureVersion is the version of the infrastructure provider's objects, which the states share.
const infrastructureVersion = "v1alpha1"

// secrets is the group of the files with Secrets, which have no version in their names.
const secrets = "secrets"

func read(t *testing.T, root, release, version string, groups ...string) []State {
	t.Helper()
	facts := os.Getenv("CAPI_FACTS_DIR")
	if facts == "" {
		facts = filepath.Join(root, "..", "shared", "facts")
	}
	suffix := "." + groups[0] + "." + version + ".json"
	paths, err := filepath.Glob(filepath.Join(facts, "data", "recorded", release, "*"+suffix))
	if err != nil || len(paths) == 0 {
		t.Skipf("the reference data is absent, so nothing was compared: set CAPI_FACTS_DIR to the directory with data/recorded (%v)", err)
	}
	var states []State
	for _, path := range paths {
		s := State{
			Name:    strings.TrimSuffix(filepath.Base(path), suffix),
			Configs: map[string]*bootstrapv1.KubeadmConfig{}, Infrastructure: map[string]*unstructured.Unstructured{},
		}
		for _, group := range groups {
			of := "." + version
			switch group {
			case "infrastructure":
				of = "." + infrastructureVersion
			case secrets:
				of = ""
			}
			s.read(t, strings.TrimSuffix(path, suffix)+"."+group+of+".json")
		}
		states = append(states, s)
	}
	return states
}

func (s *State) read(t *testing.T, file string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var objects []map[string]any
	if err := json.Unmarshal(content, &objects); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	for _, o := range objects {
		s.add(t, &unstructured.Unstructured{Object: o})
	}
}

func (s *State) add(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	if o.GetKind() == "Secret" {
		s.Secrets = append(s.Secrets, o)
		return
	}
	s.Objects = append(s.Objects, o)
	switch o.GetKind() {
	case clusterv1.ClusterKind:
		s.Cluster = in(t, o, &clusterv1.Cluster{})
	case "KubeadmControlPlane":
		s.ControlPlane = in(t, o, &controlplanev1.KubeadmControlPlane{})
	case clusterv1.MachineKind:
		s.Machines = append(s.Machines, in(t, o, &clusterv1.Machine{}))
	case clusterv1.MachineSetKind:
		s.Sets = append(s.Sets, in(t, o, &clusterv1.MachineSet{}))
	case clusterv1.MachineDeploymentKind:
		s.Deployments = append(s.Deployments, in(t, o, &clusterv1.MachineDeployment{}))
	case "KubeadmConfig":
		s.Configs[o.GetName()] = in(t, o, &bootstrapv1.KubeadmConfig{})
	default:
		s.Infrastructure[o.GetName()] = o
	}
}

// in returns an object in v1beta2.
func in[T client.Object](t *testing.T, o *unstructured.Unstructured, into T) T {
	t.Helper()
	if err := conversion.Shared().Convert(t.Context(), o, into); err != nil {
		t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
	}
	return into
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
