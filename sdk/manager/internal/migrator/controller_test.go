package migrator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/migration"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

const machines = "machines.cluster.x-k8s.io"

var build = object.Builder{Namespace: "ns"}

// definition returns the definition of Machines of provider p, whose objects may be stored in v1beta1 and v1beta2.
func definition(with ...func(*apiextensionsv1.CustomResourceDefinition)) *apiextensionsv1.CustomResourceDefinition {
	crd := object.CRD(clusterv1.GroupVersion.WithKind("Machine"), "v1beta1")
	crd.UID, crd.Generation = "crd", 3
	crd.Labels[clusterv1.ProviderNameLabel] = "p"
	crd.Status.StoredVersions = []string{"v1beta1", "v1beta2"}
	crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
	for _, change := range with {
		change(crd)
	}
	return crd
}

func marked(generation string) func(*apiextensionsv1.CustomResourceDefinition) {
	return func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Annotations = map[string]string{Mark: generation}
	}
}

func stored(versions ...string) func(*apiextensionsv1.CustomResourceDefinition) {
	return func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Status.StoredVersions = versions }
}

// world is an API server with a definition and two Machines.
type world struct {
	*fakeapi.Server
	*Controller
	skip Phases
	// stores is the version in which the API server stores Machines.
	stores string
}

func newWorld(t *testing.T, skip Phases, crd *apiextensionsv1.CustomResourceDefinition) *world {
	w := &world{Server: fakeapi.New(t, fakeapi.Options{Objects: []client.Object{crd, build.Machine("a"), build.Machine("b")}}), skip: skip, stores: "v1beta2"}
	w.restart()
	return w
}

// restart starts a process that remembers nothing.
func (w *world) restart() {
	w.Controller = &Controller{Clients: w.ForController(), Options: Options{
		Definitions: labels.SelectorFromSet(labels.Set{clusterv1.ProviderNameLabel: "p"}), Skip: w.skip,
		Stores: func(context.Context, migration.Definition) (string, error) { return w.stores, nil },
	}}
}

func (w *world) reconcile(ctx context.Context) (ctrl.Result, error) {
	return w.declared().Runner(w.Clients).Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKey{Name: machines}})
}

// settled reconciles until API servers have had time to notice the definition, and once more.
func (w *world) settled(ctx context.Context) (ctrl.Result, error) {
	result, err := w.reconcile(ctx)
	if err == nil && result.RequeueAfter == settle {
		w.Clock.Step(settle)
		result, err = w.reconcile(ctx)
	}
	return result, err
}

// state returns the mark and the stored versions of the definition.
func (w *world) state(t *testing.T) string {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	testenv.Must(t, w.Get(t.Context(), client.ObjectKey{Name: machines}, crd))
	return crd.Annotations[Mark] + " " + strings.Join(crd.Status.StoredVersions, ",")
}

// Get is that of the API server, not of the controller.
func (w *world) Get(ctx context.Context, key client.ObjectKey, o client.Object) error {
	return w.Server.Client.Get(ctx, key, o)
}

func TestMigration(t *testing.T) {
	patches := []string{"patch Machine a", "patch Machine b"}
	record, mark := "patch CustomResourceDefinition/status "+machines, "patch CustomResourceDefinition "+machines
	get, list := "get CustomResourceDefinition "+machines, "list Machine"
	for name, tc := range map[string]struct {
		reason string
		crd    *apiextensionsv1.CustomResourceDefinition
		skip   Phases
		stores string
		reads  []string
		writes []string
		state  string
		again  time.Duration
	}{
		"Due": {
			reason: "objects may be stored in another version", crd: definition(),
			reads: []string{get, get, list}, writes: append(patches, record, mark), state: "3 v1beta2",
		},
		"Marked":     {reason: "a definition with the mark costs nothing", crd: definition(marked("3")), state: "3 v1beta1,v1beta2"},
		"OtherOwner": {reason: "definitions of others cost nothing", crd: definition(func(c *apiextensionsv1.CustomResourceDefinition) { c.Labels[clusterv1.ProviderNameLabel] = "q" }), state: " v1beta1,v1beta2"},
		"Changed": {
			reason: "the mark is of an earlier generation", crd: definition(marked("2")),
			reads: []string{get, get, list}, writes: append(patches, record, mark), state: "3 v1beta2",
		},
		"Stored": {
			reason: "only field managers are checked", crd: definition(stored("v1beta2")),
			reads: []string{get, list}, writes: []string{mark}, state: "3 v1beta2",
		},
		"NotEstablished": {
			reason: "the event of the condition leads to the next reconcile", reads: []string{get}, state: " v1beta1,v1beta2",
			crd: definition(func(c *apiextensionsv1.CustomResourceDefinition) { c.Status.Conditions = nil }),
		},
		"NotNoticed": {
			reason: "objects would be stored in the old version", crd: definition(), stores: "v1beta1",
			reads: []string{get, get}, state: " v1beta1,v1beta2", again: noticeRetry,
		},
		"SkipStorage": {
			reason: "other processes may not skip it, so that there is no mark", crd: definition(), skip: Phases{StorageVersionMigration},
			reads: []string{get, list}, state: " v1beta1,v1beta2",
		},
		"SkipStorageMigrated": {
			reason: "nothing is skipped", crd: definition(stored("v1beta2")), skip: Phases{StorageVersionMigration},
			reads: []string{get, list}, writes: []string{mark}, state: "3 v1beta2",
		},
		"SkipCleanup": {
			reason: "whether something is skipped is unknown", crd: definition(), skip: Phases{CleanupManagedFields},
			reads: []string{get, get, list}, writes: append(patches, record), state: " v1beta2",
		},
		"SkipCleanupMigrated": {reason: "objects need not be listed", crd: definition(stored("v1beta2")), skip: Phases{CleanupManagedFields}, reads: []string{get}, state: " v1beta2"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.skip, tc.crd)
			if tc.stores != "" {
				w.stores = tc.stores
			}
			result, err := w.settled(t.Context())
			if err != nil || result.RequeueAfter != tc.again {
				t.Errorf("%s: got %+v, %v, want to reconcile again after %s", tc.reason, result, err, tc.again)
			}
			if diff := cmp.Diff(tc.reads, w.LiveReads); diff != "" {
				t.Errorf("%s: reads, -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.writes, w.Writes); diff != "" {
				t.Errorf("%s: writes, -want +got:\n%s", tc.reason, diff)
			}
			if got := w.state(t); got != tc.state {
				t.Errorf("%s: mark and stored versions are %q, want %q", tc.reason, got, tc.state)
			}
			if tc.again > 0 || len(tc.reads) == 1 && len(tc.skip) == 0 {
				return
			}
			w.Writes, w.LiveReads = nil, nil
			if _, err := w.reconcile(t.Context()); err != nil || len(w.Writes)+len(w.LiveReads) > 0 {
				t.Errorf("%s: the next reconcile sends %v %v, error %v, want nothing", tc.reason, w.LiveReads, w.Writes, err)
			}
		})
	}
}

// A process that is killed after any request leaves nothing that the next one does not complete.
func TestKilled(t *testing.T) {
	errKilled := errors.New("killed")
	for after := 1; ; after++ {
		w := newWorld(t, nil, definition())
		requests, killed := 0, false
		w.After = func(r fakeapi.Request, err error) error {
			if r.Cached {
				return err
			}
			if requests++; requests >= after && !killed {
				killed = true
				return errKilled
			}
			return err
		}
		if _, err := w.settled(t.Context()); err != nil && !killed {
			t.Fatal(err)
		}
		if !killed {
			if after < 6 {
				t.Fatalf("there are only %d requests to be killed after", after-1)
			}
			return
		}
		w.restart()
		if _, err := w.settled(t.Context()); err != nil {
			t.Fatalf("killed after request %d: %v", after, err)
		}
		if got := w.state(t); got != "3 v1beta2" {
			t.Errorf("killed after request %d: mark and stored versions are %q", after, got)
		}
	}
}

// A cache may not have the latest generation, or the mark.
func TestStaleCache(t *testing.T) {
	for _, tc := range []struct {
		reason       string
		cached, live *apiextensionsv1.CustomResourceDefinition
		writes       int
		state        string
	}{
		{"the mark is not in the cache yet", definition(), definition(marked("3"), stored("v1beta2")), 0, "3 v1beta2"},
		{"another one has its name", definition(func(c *apiextensionsv1.CustomResourceDefinition) { c.UID = "old" }), definition(), 0, " v1beta1,v1beta2"},
		{
			"the generation of the migrated one is marked", definition(marked("2")),
			definition(func(c *apiextensionsv1.CustomResourceDefinition) { c.Generation = 4 }, marked("2")), 4, "4 v1beta2",
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, nil, tc.live)
			w.Cache.Show(metadataOf(tc.cached))
			w.restart()
			if _, err := w.settled(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := w.state(t); got != tc.state || len(w.Writes) != tc.writes {
				t.Errorf("mark and stored versions are %q after %v, want %q", got, w.Writes, tc.state)
			}
		})
	}
}

func metadataOf(crd *apiextensionsv1.CustomResourceDefinition) client.Object {
	o := NewDefinition()
	o.ObjectMeta = crd.ObjectMeta
	return o
}

// A definition that changes while objects are migrated may store another version then.
func TestDefinitionChangesMeanwhile(t *testing.T) {
	w := newWorld(t, nil, definition())
	w.After = func(r fakeapi.Request, err error) error {
		if r.Verb == "list" && r.Kind == "Machine" {
			w.After = nil
			crd := &apiextensionsv1.CustomResourceDefinition{}
			testenv.Must(t, w.Get(t.Context(), client.ObjectKey{Name: machines}, crd))
			crd.Labels["x"] = "y"
			testenv.Must(t, w.Server.Update(t.Context(), crd))
		}
		return err
	}
	if result, err := w.settled(t.Context()); err != nil || result.RequeueAfter == 0 || w.state(t) != " v1beta1,v1beta2" {
		t.Fatalf("got %+v, %v, and %s, want another try", result, err, w.state(t))
	}
	w.Writes = nil
	if _, err := w.settled(t.Context()); err != nil || w.state(t) != "3 v1beta2" {
		t.Errorf("got %v, and %s", err, w.state(t))
	}
	if got := w.Writes[0]; !strings.Contains(got, "/status") {
		t.Errorf("the first write is %s, but all objects were saved before", got)
	}
}

// One object that cannot be saved does not keep the others. It is tried again in longer and longer intervals, and announced once.
func TestBadObject(t *testing.T) {
	w := newWorld(t, nil, definition())
	w.Before = func(r fakeapi.Request) error {
		if r.Verb == "patch" && r.Name == "a" {
			return apierrors.NewInvalid(schema.GroupKind{Kind: "Machine"}, "a", nil)
		}
		return nil
	}
	for _, want := range []time.Duration{firstPause, 2 * firstPause, 4 * firstPause} {
		if result, err := w.settled(t.Context()); err != nil || result.RequeueAfter != want {
			t.Fatalf("got %+v, %v, want another try after %s", result, err, want)
		}
	}
	if diff := cmp.Diff([]string{"patch Machine b"}, w.Writes); diff != "" {
		t.Errorf("writes, -want +got:\n%s", diff)
	}
	if events := w.Events(); len(events) != 1 || !strings.Contains(events[0], "FailedMigration cannot store Machine ns/a in version v1beta2") {
		t.Errorf("events are %q", events)
	}
	if got := w.state(t); got != " v1beta1,v1beta2" {
		t.Errorf("mark and stored versions are %q although an object is not migrated", got)
	}
	w.Before = nil
	if _, err := w.settled(t.Context()); err != nil || w.state(t) != "3 v1beta2" {
		t.Errorf("once it can be saved: %v, %q", err, w.state(t))
	}
}

// TestForbidden: without a permission, as in the Deployment of a version that does not migrate, nothing is tried again and again.
func TestForbidden(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		request string
		again   time.Duration
		state   string
		event   string
	}{
		{reason: "to list objects", request: "list Machine", again: firstPause, state: " v1beta1,v1beta2", event: "--skip-crd-migration-phases"},
		{
			reason: "to record what is stored", request: "patch CustomResourceDefinition/status machines.cluster.x-k8s.io", again: firstPause,
			state: " v1beta1,v1beta2", event: "writing status.storedVersions of CustomResourceDefinition machines.cluster.x-k8s.io",
		},
		{reason: "to mark the definition", request: "patch CustomResourceDefinition machines.cluster.x-k8s.io", state: " v1beta2"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, nil, definition())
			tried := 0
			w.Before = func(r fakeapi.Request) error {
				if r.String() == tc.request {
					tried++
					return apierrors.NewForbidden(schema.GroupResource{Resource: "machines"}, "", nil)
				}
				return nil
			}
			if result, err := w.settled(t.Context()); err != nil || result.RequeueAfter != tc.again {
				t.Errorf("got %+v, %v, want another try after %s", result, err, tc.again)
			}
			if tc.again == 0 {
				if _, err := w.settled(t.Context()); err != nil || tried != 1 {
					t.Errorf("tried %d times, error %v", tried, err)
				}
				other := NewDefinition()
				other.UID, other.Generation, other.Labels = "other", 1, definition().Labels
				if w.selects(other) {
					t.Error("other definitions are not left alone")
				}
			}
			if got := w.state(t); got != tc.state {
				t.Errorf("mark and stored versions are %q, want %q", got, tc.state)
			}
			if events := fmt.Sprint(w.Events()); !strings.Contains(events, tc.event) {
				t.Errorf("events %s lack %q", events, tc.event)
			}
		})
	}
}

func TestPhases(t *testing.T) {
	for given, want := range map[string]string{"All": "", "StorageVersionMigration": "", "None": `"None" must be one of StorageVersionMigration, CleanupManagedFields, All`} {
		err := (&Phases{given}).Validate()
		if got := fmt.Sprint(err); err == nil && want != "" || err != nil && got != want {
			t.Errorf("%s: got %v, want %q", given, err, want)
		}
	}
	if !(Phases{"All"}).SkipAll() || (Phases{StorageVersionMigration}).SkipAll() || !(Phases{CleanupManagedFields, StorageVersionMigration}).SkipAll() {
		t.Error("SkipAll is wrong")
	}
}

func TestStepsAreDocumented(t *testing.T) {
	testenv.StepsDocumented(t, (&Controller{}).declared().Names())
}
