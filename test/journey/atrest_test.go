package journey

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/recorded"
)

// TestClustersAtRest lets our managers take over a Cluster that Cluster API v1.7.0 or v1.14.0 has left at rest, in an API server with their
// definitions. No object is created or deleted, no Machine replaced, and no field written except for those that are listed.
func TestClustersAtRest(t *testing.T) {
	t.Parallel()
	tools := shared.Management(t).Tools
	corpus := recorded.Corpus(t, tools.Root)
	for _, tc := range []struct {
		corpus    string
		published bool // with the CRDs of v1.7
		written   []string
	}{
		{"v1.7.0 in v1beta1", true, []string{
			"inmemoryclusters + .status.conditions[Ready].status",
			"inmemoryclusters + .status.conditions[Ready].type",
			// What v1.7's in-memory provider reported was empty.
			"machines ~ .status.nodeInfo.architecture", "machines ~ .status.nodeInfo.containerRuntimeVersion",
			"machines ~ .status.nodeInfo.kernelVersion", "machines ~ .status.nodeInfo.kubeletVersion",
			"machines ~ .status.nodeInfo.operatingSystem", "machines ~ .status.nodeInfo.osImage",
		}},
		{"v1.14.0 in v1beta2", false, []string{
			"clusterclasses ~ .status.deprecated.v1beta1.conditions[RefVersionsUpToDate].message",
			"inmemoryclusters + .status.initialization.provisioned",
			"inmemorymachines + .status.initialization.provisioned",
			// A class whose templates are in v1beta1 made v1.14 apply in v1beta1, and name what it converts to.
			"kubeadmconfigtemplates only managedFields of capi-topology Apply ",
			"kubeadmcontrolplanes only managedFields of capi-topology Apply ",
		}},
	} {
		t.Run(tc.corpus, func(t *testing.T) {
			t.Parallel()
			staysAtRest(t, stateOf(t, corpus[tc.corpus], "2-at-rest"), tc.published, tc.written)
		})
	}
}

// staysAtRest lets our managers take over a recorded Cluster, and checks that nothing else is written. published: with the CRDs of v1.7.
func staysAtRest(t *testing.T, state recorded.State, published bool, written []string) {
	t.Helper()
	tools := shared.Management(t).Tools
	r, version := NewRepository(t, tools), "v2.0.0"
	if published {
		version = publishedVersion
		r.ReleasePublished(publishedDefinitions(t, tools.Root))
	} else {
		r.Release(version)
	}
	s := NewStandalone(t, r.Tools)
	if published {
		prepareCertManager(t, r.Tools, s.kubeconfig())
	}
	loading := s.withoutProviders(r.objects(version))
	storage := s.storage()
	loading.load(storage, state)
	before := storage.objects(loading.Namespace)
	if len(before) < 25 {
		t.Fatalf("only %d objects are stored", len(before))
	}

	testenv.Must(t, r.Tools.install(t.Context(), s.kubeconfig()))
	another := s.Management().World(t)
	c := another.Subject(NewCluster("another", another.Class(another.Tools.OlderTemplate())).Workers(1).Build())
	c.Eventually("another Cluster becomes ready", Ready, ControlPlanes(1), Workers(1), c.WorkloadMatches)
	c.Eventually("the recorded Cluster is at rest", func(*Snapshot) error {
		if diff := cmp.Diff(written, storage.changes(before, storage.objects(loading.Namespace))); diff != "" {
			return fmt.Errorf("what was written (-known +found):\n%s", diff)
		}
		return nil
	})
}

func stateOf(t *testing.T, states []recorded.State, name string) recorded.State {
	t.Helper()
	i := slices.IndexFunc(states, func(s recorded.State) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("there is no state %s", name)
	}
	return states[i]
}

// withoutProviders creates the definitions among objects, and returns a World without controllers.
func (s *Standalone) withoutProviders(objects []*unstructured.Unstructured) *World {
	s.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig())
	testenv.Must(s.t, err)
	config.QPS = -1
	api, err := client.NewWithWatch(config, client.Options{})
	testenv.Must(s.t, err)
	for _, o := range objects {
		if o.GetKind() == "CustomResourceDefinition" {
			testenv.Must(s.t, api.Create(s.t.Context(), o))
		}
	}
	return (&Management{Config: config, Client: api, Kubeconfig: s.kubeconfig(), Tools: s.tools}).World(s.t)
}
