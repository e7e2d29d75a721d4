// Package recorded reads the objects that Cluster API v1.7.0 and v1.14.0 wrote in eight states of a cluster, as references for tests, and
// those that users have recorded with `clusterctl takeover record`.
package recorded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// ErrAbsent is the error if there is no reference data.
var ErrAbsent = errors.New("the reference data is absent: set CAPI_FACTS_DIR to the directory with data/recorded")

// Read returns the objects of all states that a release, such as v1.7.0, wrote in a version that it served, with those of the
// infrastructure provider and Secrets. root is the path to the root of the repository. The error is ErrAbsent if the reference data is
// absent.
func Read(ctx context.Context, root, release, version string) ([]State, error) {
	return read(ctx, reference(root, release), version, groups()...)
}

// States returns the objects of all states that v1.14.0 wrote. The test is skipped if the reference data is absent: root is the path from
// the package's folder to the root of the repository.
func States(t *testing.T, root string) []State {
	t.Helper()
	return required(t)(read(t.Context(), reference(root, "v1.14.0"), "v1beta2", "cluster", "controlplane"))
}

// Corpus returns the objects of all states that v1.7.0 and v1.14.0 wrote, in each version that they served, by both, and of those that
// users have recorded in the folder CAPI_RECORDED_DIR. The test is skipped if the reference data is absent.
func Corpus(t *testing.T, root string) map[string][]State {
	t.Helper()
	corpus := map[string][]State{
		"v1.7.0 in v1beta1":  required(t)(Read(t.Context(), root, "v1.7.0", "v1beta1")),
		"v1.14.0 in v1beta1": required(t)(Read(t.Context(), root, "v1.14.0", "v1beta1")),
		"v1.14.0 in v1beta2": required(t)(Read(t.Context(), root, "v1.14.0", "v1beta2")),
	}
	maps.Copy(corpus, more(t, groups()))
	return corpus
}

// required returns a function that skips the test if the reference data is absent, and fails it if it cannot be read.
func required(t *testing.T) func([]State, error) []State {
	t.Helper()
	return func(states []State, err error) []State {
		t.Helper()
		switch {
		case errors.Is(err, ErrAbsent):
			t.Skipf("nothing was compared: %v", err)
		case err != nil:
			t.Fatal(err)
		}
		return states
	}
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
			states := required(t)(read(t.Context(), release, version, groups...))
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

// groups are the groups of all files of a state.
func groups() []string {
	return []string{"cluster", "controlplane", "bootstrap", infrastructure, secrets}
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
func read(ctx context.Context, release, version string, groups ...string) ([]State, error) {
	suffix := "." + groups[0] + "." + version + ".json"
	paths, err := filepath.Glob(filepath.Join(release, "*"+suffix))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%w (in %s)", ErrAbsent, release)
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
			if err := s.read(ctx, strings.TrimSuffix(path, suffix)+"."+group+of+".json"); err != nil {
				return nil, err
			}
		}
		states = append(states, s)
	}
	return states, nil
}

// read adds the objects of the file that a pattern matches; of several, in different versions, the last.
func (s *State) read(ctx context.Context, pattern string) error {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("there is no file %s", pattern)
	}
	file := files[len(files)-1]
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var objects []map[string]any
	if err := json.Unmarshal(content, &objects); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for _, fields := range objects {
		o := &unstructured.Unstructured{Object: fields}
		if err := s.add(ctx, o); err != nil {
			return fmt.Errorf("%s: %s %s: %w", file, o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

func (s *State) add(ctx context.Context, o *unstructured.Unstructured) error {
	if o.GetKind() == "Secret" {
		s.Secrets = append(s.Secrets, o)
		return nil
	}
	s.Objects = append(s.Objects, o)
	convert := func(into client.Object) error { return conversion.Shared().Convert(ctx, o, into) }
	switch o.GetKind() {
	case clusterv1.ClusterKind:
		s.Cluster = &clusterv1.Cluster{}
		return convert(s.Cluster)
	case "KubeadmControlPlane":
		s.ControlPlane = &controlplanev1.KubeadmControlPlane{}
		return convert(s.ControlPlane)
	case clusterv1.MachineKind:
		m := &clusterv1.Machine{}
		s.Machines = append(s.Machines, m)
		return convert(m)
	case clusterv1.MachineSetKind:
		set := &clusterv1.MachineSet{}
		s.Sets = append(s.Sets, set)
		return convert(set)
	case clusterv1.MachineDeploymentKind:
		d := &clusterv1.MachineDeployment{}
		s.Deployments = append(s.Deployments, d)
		return convert(d)
	case "KubeadmConfig":
		config := &bootstrapv1.KubeadmConfig{}
		s.Configs[o.GetName()] = config
		return convert(config)
	}
	s.Infrastructure[o.GetName()] = o
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
