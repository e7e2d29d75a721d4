// Package recorded reads the objects that Cluster API v1.7.0 and v1.14.0 wrote in eight states of a cluster, as references for tests, and
// those that users have recorded with `clusterctl takeover record`.
package recorded

import (
	"encoding/json"
	"maps"
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
	Name string
	// OfUser is whether a user has recorded it, see Corpus.
	OfUser      bool
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
	return read(t, reference(root, "v1.14.0"), "v1beta2", "cluster", "controlplane")
}

// Corpus returns the objects of all states that v1.7.0 and v1.14.0 wrote, in each version that they served, by both, and of those that
// users have recorded in the folder CAPI_RECORDED_DIR. The test is skipped if the reference data is absent.
func Corpus(t *testing.T, root string) map[string][]State {
	t.Helper()
	groups := []string{"cluster", "controlplane", "bootstrap", infrastructure, secrets}
	corpus := map[string][]State{
		"v1.7.0 in v1beta1":  read(t, reference(root, "v1.7.0"), "v1beta1", groups...),
		"v1.14.0 in v1beta1": read(t, reference(root, "v1.14.0"), "v1beta1", groups...),
		"v1.14.0 in v1beta2": read(t, reference(root, "v1.14.0"), "v1beta2", groups...),
	}
	maps.Copy(corpus, more(t, groups))
	return corpus
}

// recordings is the environment variable with a folder of more states, in a folder per release.
const recordings = "CAPI_RECORDED_DIR"

// more returns the states of users, in each version of which there are files.
func more(t *testing.T, groups []string) map[string][]State {
	t.Helper()
	dir := os.Getenv(recordings)
	if dir == "" {
		return nil
	}
	found := map[string][]State{}
	for _, version := range []string{"v1beta1", "v1beta2"} {
		files, err := filepath.Glob(filepath.Join(dir, "*", "*."+groups[0]+"."+version+".json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			release := filepath.Dir(file)
			states := read(t, release, version, groups...)
			for i := range states {
				states[i].OfUser = true
			}
			found[filepath.Base(release)+" in "+version] = states
		}
	}
	if len(found) == 0 {
		t.Fatalf("%s is %s, where no release has files like 2-at-rest.%s.v1beta1.json", recordings, dir, groups[0])
	}
	return found
}

// infrastructure is the group of the infrastructure provider's objects: in which version they are, depends on the provider.
const infrastructure = "infrastructure"

// secrets is the group of the files with Secrets, which have no version in their names.
const secrets = "secrets"

// reference returns the folder of a release in the reference data.
func reference(root, release string) string {
	facts := os.Getenv("CAPI_FACTS_DIR")
	if facts == "" {
		facts = filepath.Join(root, "..", "shared", "facts")
	}
	return filepath.Join(facts, "data", "recorded", release)
}

// read returns the states of the files of a release.
func read(t *testing.T, release, version string, groups ...string) []State {
	t.Helper()
	suffix := "." + groups[0] + "." + version + ".json"
	paths, err := filepath.Glob(filepath.Join(release, "*"+suffix))
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
			case infrastructure:
				of = ".v*"
			case secrets:
				of = ""
			}
			s.read(t, strings.TrimSuffix(path, suffix)+"."+group+of+".json")
		}
		states = append(states, s)
	}
	return states
}

// read adds the objects of the file that a pattern matches; of several, in different versions, the last.
func (s *State) read(t *testing.T, pattern string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("there is no file %s (%v)", pattern, err)
	}
	file := files[len(files)-1]
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
