package journey

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/clusterctl/takeover/difference"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/recorded"
	"sigs.k8s.io/cluster-api/test/recordedcluster"
)

// origin is a version of Cluster API whose Clusters are taken over.
type origin struct {
	// corpus is the name of its recorded states.
	corpus string
	// as is the version that objects are like after derive has changed them; see derivedstates_test.go. Empty: they are as recorded.
	as     string
	derive derive
	// definitions returns the folder of the CRDs that the API server has; nil for ours.
	definitions func(t testing.TB, root string) string
	// back is whether the Clusters are handed back.
	back bool
	// written is what our managers write to Clusters at rest, by state, in the form of changes.
	written map[string][]string
	// reapplied are changes that are only seen if nothing else of the object has changed meanwhile, and changed back.
	reapplied []string
	// refreshed are changes that come with any other write of a status, such as while managers connect to the workload cluster, and are
	// none by themselves.
	refreshed []string
	motion    []motion
}

// motion is a state in which the other version was doing something, and what becomes of it.
type motion struct {
	state, version         string
	controlPlanes, workers int
	// created is how many Machines have to be created: those that are right stay.
	created int
	// least is how many control plane Machines serve all the time.
	least int
}

// recordedPorts are the ports of API servers in these management clusters. No other ones have them, so that a port which was chosen remains
// free until the managers start. recordedLimit is above the last.
const recordedPorts, recordedLimit = "30001-32000", 32001

// deletingState is the state in which the Cluster is being deleted.
const deletingState = "8-deleting"

func origins() []origin {
	v17 := []string{
		"inmemoryclusters + .status.conditions[Ready].status",
		"inmemoryclusters + .status.conditions[Ready].type",
		// What v1.7's in-memory provider reported was empty.
		"machines ~ .status.nodeInfo.architecture", "machines ~ .status.nodeInfo.containerRuntimeVersion",
		"machines ~ .status.nodeInfo.kernelVersion", "machines ~ .status.nodeInfo.kubeletVersion",
		"machines ~ .status.nodeInfo.operatingSystem", "machines ~ .status.nodeInfo.osImage",
	}
	// A MachineSet without Machines goes on reporting in v1.7 that the last one, which is deleted, is not ready.
	scaledDown := []string{
		"machinesets - .status.conditions[MachinesReady].message", "machinesets - .status.conditions[MachinesReady].reason",
		"machinesets - .status.conditions[MachinesReady].severity", "machinesets - .status.conditions[MachinesReady].status",
		"machinesets - .status.conditions[MachinesReady].type", "machinesets - .status.conditions[Ready].message",
		"machinesets - .status.conditions[Ready].reason", "machinesets - .status.conditions[Ready].severity",
		"machinesets ~ .status.conditions[Ready].status",
	}
	// The definitions of v1.10, which are derived from later ones, have a field that v1.10 did not.
	later := []string{
		"kubeadmcontrolplanes + .status.versions[0].replicas", "kubeadmcontrolplanes + .status.versions[0].version",
		"machinedeployments + .status.versions[0].replicas", "machinedeployments + .status.versions[0].version",
		"machinesets + .status.versions[0].replicas", "machinesets + .status.versions[0].version",
	}
	v114 := []string{
		"inmemoryclusters + .status.initialization.provisioned",
		"inmemorymachines + .status.initialization.provisioned",
	}
	// A class whose templates are in v1beta1 made v1.14 apply in v1beta1, and name what it converts to.
	reapplied := []string{
		"kubeadmconfigtemplates only managedFields of capi-topology Apply ", "kubeadmcontrolplanes only managedFields of capi-topology Apply ",
	}
	motion114 := []motion{
		// Of two workers, only the Machines were recorded: their other objects are created again.
		{"1-creating", "v1.29.2", 3, 2, 2, 0},
		{"3-upgrading", "v1.30.0", 3, 2, 4, 3},
		{"5-scaling", "v1.30.0", 1, 4, 0, 1},
		{deletingState, "v1.30.0", 0, 0, 0, 0},
	}
	return []origin{
		{
			corpus: "v1.7.0 in v1beta1", definitions: publishedDefinitions, back: true,
			written: map[string][]string{
				"2-at-rest": v17, "4-upgraded": slices.Concat(v17, scaledDown), "6-scaled": slices.Concat(v17, scaledDown), "7-paused": nil,
			},
			motion: []motion{
				{"1-creating", "v1.29.2", 3, 2, 0, 3},
				{"3-upgrading", "v1.30.0", 3, 2, 4, 3},
				{"5-scaling", "v1.30.0", 1, 4, 0, 1},
				{deletingState, "v1.30.0", 0, 0, 0, 0},
			},
		},
		{
			corpus:    "v1.14.0 in v1beta2",
			written:   map[string][]string{"2-at-rest": v114, "4-upgraded": v114, "6-scaled": v114, "7-paused": nil},
			reapplied: reapplied, refreshed: []string{"clusters ~ .status.conditions[ControlPlaneInitialized].observedGeneration"}, motion: motion114,
		},
		{
			corpus: "v1.7.0 in v1beta1", as: "v1.8", derive: likeV18, definitions: publishedDefinitions,
			written: map[string][]string{
				"2-at-rest": v17, "4-upgraded": slices.Concat(v17, scaledDown), "6-scaled": slices.Concat(v17, scaledDown), "7-paused": nil,
			},
		},
		{
			corpus: "v1.7.0 in v1beta1", as: "v1.10", derive: likeV110, definitions: definitionsOfV110,
			// In later states, v1.14 had deleted the MachineSet of the version before, and its status was not recorded.
			written: map[string][]string{"2-at-rest": slices.Concat(v17, later)},
		},
		{
			corpus: "v1.14.0 in v1beta2", as: "v1.11", derive: likeV111,
			written:   map[string][]string{"2-at-rest": v114, "4-upgraded": v114, "6-scaled": v114, "7-paused": nil},
			reapplied: reapplied, refreshed: []string{"clusters ~ .status.conditions[ControlPlaneInitialized].observedGeneration"},
		},
	}
}

// TestEveryStateIsTakenOver lets our managers take over Clusters that Cluster API v1.7.0 and v1.14.0 have left, in an API server with their
// definitions. At rest, no object is created or deleted, no Machine replaced, and no field written except for those that are listed. In
// motion, they finish what was begun. Those of v1.7 can be handed back.
func TestEveryStateIsTakenOver(t *testing.T) {
	t.Parallel()
	tools := shared.Management(t).Tools
	corpus := recorded.Corpus(t, tools.Root)
	for _, o := range origins() {
		t.Run(strings.TrimSpace(o.corpus+" "+o.as), func(t *testing.T) {
			if o.as != "" {
				testenv.Soak(t)
			}
			t.Parallel()
			m, states := takeOver(t, o, corpus)
			for _, want := range o.motion {
				t.Run(want.state, func(t *testing.T) { states[want.state].on(t, m).finishes(want) })
			}
			// At last, so that managers have had the time to write.
			for _, state := range slices.Sorted(maps.Keys(o.written)) {
				t.Run(state, func(t *testing.T) { states[state].on(t, m).staysAtRest(o.written[state]) })
			}
			if o.back {
				t.Run("back", func(t *testing.T) { areHandedBack(t, m, o, states, corpus[o.corpus]) })
			}
		})
	}
}

// takenOver is a Cluster in a recorded state, in a namespace of its own.
type takenOver struct {
	*Subject
	storage   *stored
	state     recorded.State
	reapplied []string
	refreshed []string
	loaded    map[string]difference.Stored
	keys      map[string]int64 // of all objects, with the revisions in which they were loaded
	machines  *machineHistory
}

// takeOver loads the states of an origin in a new management cluster, before it starts our managers.
func takeOver(t *testing.T, o origin, corpus map[string][]recorded.State) (*Management, map[string]*takenOver) {
	t.Helper()
	tools := shared.Management(t).Tools
	r, version := NewRepository(t, tools), "v2.0.0"
	if o.definitions != nil {
		version = publishedVersion
		r.ReleasePublished(o.definitions(t, tools.Root))
	} else {
		r.Release(version)
	}
	r.withPorts(version, recordedPorts)
	s := NewStandalone(t, r.Tools)
	if o.definitions != nil {
		prepareCertManager(t, r.Tools, s.kubeconfig())
	}
	bare, storage := s.withoutProviders(r.objects(version)), s.storage()
	states := map[string]*takenOver{}
	for _, state := range corpus[o.corpus] {
		_, atRest := o.written[state.Name]
		if !atRest && !slices.ContainsFunc(o.motion, func(m motion) bool { return m.state == state.Name }) {
			continue
		}
		w := bare.World(t)
		state.Objects = o.derived(state, corpus["v1.14.0 in v1beta1"])
		w.load(storage, state)
		loaded := storage.objects(w.Namespace)
		if len(loaded) < 10 {
			t.Fatalf("state %s has %d objects only", state.Name, len(loaded))
		}
		states[state.Name] = &takenOver{
			Subject: &Subject{World: w, Name: state.Cluster.Name}, storage: storage, state: state, reapplied: o.reapplied, refreshed: o.refreshed,
			loaded: loaded, keys: storage.revisions(w.Namespace), machines: storage.follow(w.Namespace),
		}
	}
	testenv.Must(t, r.Tools.install(t.Context(), s.kubeconfig()))
	return s.Management(), states
}

// withPorts adds the range of ports to the arguments of the in-memory provider.
func (r *Repository) withPorts(version, ports string) {
	r.t.Helper()
	r.Edit("infrastructure-in-memory", version, func(components string) string {
		first := regexp.MustCompile(`(?m)^( *)- --leader-elect$`)
		if n := len(first.FindAllString(components, -1)); n != 1 {
			r.t.Fatalf("the in-memory provider has argument --leader-elect %d times, want once", n)
		}
		return first.ReplaceAllString(components, "$0\n$1- --api-server-ports="+ports)
	})
}

// withoutProviders creates the definitions among objects, and connects to a management cluster without controllers.
func (s *Standalone) withoutProviders(objects []*unstructured.Unstructured) *Management {
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
	return &Management{Config: config, Client: api, Kubeconfig: s.kubeconfig(), Tools: s.tools}
}

// on returns the Cluster for a test of its own, in a management cluster whose managers run.
func (c *takenOver) on(t *testing.T, m *Management) *takenOver {
	out := *c
	out.storage = &stored{Storage: c.storage.Storage, t: t}
	out.Subject = &Subject{World: &World{Management: m, Namespace: c.Namespace, t: t, timeout: c.timeout}, Name: c.Name}
	return &out
}

// finishes checks that the Cluster becomes what its spec asks for, and no Machine is replaced that was right.
func (c *takenOver) finishes(want motion) {
	c.t.Helper()
	history := func(*Snapshot) error { return c.machines.check(c.storage, c.Namespace, want.created, want.least) }
	if want.controlPlanes > 0 {
		c.Eventually("what was begun is finished", Ready, ControlPlanes(want.controlPlanes), Workers(want.workers), Version(want.version),
			c.WorkloadMatches, history)
		return
	}
	class := map[string]bool{}
	for key := range c.keys {
		class[key] = c.ofClass(key)
	}
	maps.DeleteFunc(class, func(_ string, of bool) bool { return !of })
	c.Eventually("the deletion is finished", Absent, history, func(*Snapshot) error {
		left := map[string]bool{}
		for key := range c.storage.revisions(c.Namespace) {
			left[key] = true
		}
		if diff := cmp.Diff(class, left); diff != "" {
			return fmt.Errorf("objects in the namespace (-class +now):\n%s", diff)
		}
		return nil
	})
}

// ofClass reports whether a stored object is the ClusterClass or one of its templates.
func (c *takenOver) ofClass(key string) bool {
	o, ok := c.loaded[key]
	if !ok {
		return false
	}
	return recordedcluster.OfClass(&unstructured.Unstructured{Object: c.parsed(o)})
}

// parsed returns the fields of a stored object.
func (c *takenOver) parsed(o difference.Stored) map[string]any {
	c.t.Helper()
	parsed, err := parse(o.Content)
	testenv.Must(c.t, err)
	return parsed
}

// written returns what was written, without statuses that are as before: simulated Nodes appear one after another, when their machines are
// started again, so that they are missing for a moment. Real ones would run all the time.
func (c *takenOver) written() []string {
	c.t.Helper()
	const only = " only managedFields of "
	return slices.DeleteFunc(c.storage.changes(c.loaded, c.storage.objects(c.Namespace)), func(change string) bool {
		resource, managers, found := strings.Cut(change, only)
		if !found {
			return slices.Contains(c.refreshed, change)
		}
		others := slices.DeleteFunc(strings.Split(managers, ", "), func(m string) bool { return strings.HasSuffix(m, " Update status") })
		return len(others) == 0 || slices.Contains(c.reapplied, resource+only+strings.Join(others, ", "))
	})
}

// staysAtRest checks that nothing else is written, and no Secret.
func (c *takenOver) staysAtRest(written []string) {
	c.t.Helper()
	c.Eventually("the Cluster is at rest", func(*Snapshot) error {
		if diff := cmp.Diff(slices.Sorted(slices.Values(written)), c.written(), cmpopts.EquateEmpty()); diff != "" {
			return fmt.Errorf("what was written (-known +found):\n%s", diff)
		}
		return c.machines.check(c.storage, c.Namespace, 0, 0)
	})
	now := c.storage.revisions(c.Namespace)
	if written != nil {
		other := func(key string, _ int64) bool { return !strings.HasPrefix(key, "/registry/secrets/") }
		maps.DeleteFunc(now, other)
		maps.DeleteFunc(c.keys, other)
	}
	if diff := cmp.Diff(c.keys, now); diff != "" {
		c.t.Errorf("objects and the revisions of their last writes (-loaded +now):\n%s", diff)
	}
}

// revisions returns the revisions of the last writes of all custom resources and Secrets in a namespace, by key.
func (s *stored) revisions(namespace string) map[string]int64 {
	s.t.Helper()
	r, err := s.Etcd.Get(s.t.Context(), "/registry/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	testenv.Must(s.t, err)
	found := map[string]int64{}
	for _, kv := range r.Kvs {
		key := string(kv.Key)
		if strings.Contains(key, "/"+namespace+"/") && (strings.Contains(key, ".x-k8s.io/") || strings.HasPrefix(key, "/registry/secrets/")) {
			found[key] = kv.ModRevision
		}
	}
	return found
}
