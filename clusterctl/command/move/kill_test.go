package move

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/move/side"
	"sigs.k8s.io/cluster-api/packages/lock"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// everyVariable is the environment variable that, if not empty, makes TestKilled interrupt a move after every request.
const everyVariable = "CAPI_MOVE_EVERY_REQUEST"

// stride is the distance of the requests after which TestKilled interrupts otherwise; it is coprime to the two modes, so that
// both are used throughout.
const stride = 61

// runCut runs the command from one cluster to the other, like a new process.
func runCut(t *testing.T, w *testenv.Wire, namespace string, from, to *testenv.Env, change func(*Options)) (string, error) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.Dead = cancel
	streams, buffers := iostreams.Test()
	opts := &Options{
		IO: streams, Clock: clock.RealClock{}, Namespace: namespace,
		Backoff: wait.Backoff{Steps: 1}, BlockBackoff: wait.Backoff{Duration: time.Millisecond, Steps: 2},
		Self: lock.Holder{Host: "h", PID: 1}, Ended: func(lock.Holder) bool { return true },
		From: management.Kubeconfig{Path: "from"}, To: management.Kubeconfig{Path: "to"}, KeepPaused: true, HideWarnings: hideDefault,
		Connect: func(k management.Kubeconfig) (*management.Cluster, error) {
			config := rest.CopyConfig(from.Config)
			if k.Path == "to" {
				config = rest.CopyConfig(to.Config)
			}
			config.Wrap(w.Wrap)
			return management.New(config, "default")
		},
	}
	if change != nil {
		change(opts)
	}
	err := run(ctx, opts)
	return buffers.Err.String() + buffers.Out.String(), err
}

// world is two management clusters with a namespace that is moved between them.
type world struct {
	*testing.T
	envs  [2]*testenv.Env
	sides [2]*side.Side
	at    int // which cluster has the objects
	want  state
	name  string
}

func newWorld(t *testing.T, name string, clusters ...string) *world {
	w := &world{T: t, name: name}
	w.envs = [2]*testenv.Env{start(t, &first), start(t, &second)}
	w.sides = [2]*side.Side{newSide(t, w.envs[0], "first"), newSide(t, w.envs[1], "second")}
	(&fixture{t: t, namespace: name, side: w.sides[0]}).create(clusters...)
	w.want = read(t, w.sides[0], name)
	return w
}

// move moves the objects to the other cluster.
func (w *world) move(n *testenv.Wire) error {
	w.Helper()
	_, err := runCut(w.T, n, w.name, w.envs[w.at], w.envs[1-w.at], nil)
	return err
}

// safe checks the promises that hold at any moment.
func (w *world) safe(when string) {
	w.Helper()
	source, target := read(w.T, w.sides[w.at], w.name), read(w.T, w.sides[1-w.at], w.name)
	for key, contents := range w.want.contents {
		inSource := source.contents[key] == contents && !source.moved[key]
		if !inSource && target.contents[key] != contents {
			w.Errorf("%s: %s is complete on neither side:\nsource: %s\ntarget: %s\nwant:   %s", when, key, source.contents[key], target.contents[key], contents)
		}
	}
	for key, paused := range target.paused {
		if !paused && len(source.contents) > 1 && hasOthers(source, w.want) {
			w.Errorf("%s: %s is not paused in the target, while the source has objects of the move", when, key)
		}
	}
}

// hasOthers reports whether a cluster has objects of the move.
func hasOthers(s, want state) bool {
	for key := range s.contents {
		if _, ok := want.contents[key]; ok {
			return true
		}
	}
	return false
}

// arrived checks that the other cluster has everything, and this one nothing, and prepares the way back.
func (w *world) arrived(when string) {
	w.Helper()
	source, target := read(w.T, w.sides[w.at], w.name), read(w.T, w.sides[1-w.at], w.name)
	if diff := cmp.Diff(w.want, target, cmp.AllowUnexported(state{})); diff != "" {
		w.Fatalf("%s: target: -want +got:\n%s", when, diff)
	}
	if diff := cmp.Diff(map[string]string{}, source.contents); diff != "" {
		w.Fatalf("%s: source: -want +got:\n%s", when, diff)
	}
	w.at = 1 - w.at
	for key := range w.want.contents {
		kind, name, _ := strings.Cut(key, " ")
		if status := statusOf(kind); status != "" {
			o := (&fixture{t: w.T, namespace: w.name, side: w.sides[w.at]}).object(kind, name)
			testenv.Must(w.T, w.sides[w.at].Status().Patch(w.Context(), o, client.RawPatch(types.MergePatchType, []byte(status))))
		}
	}
}

// untilMachines interrupts a move after it has created Clusters and others. The numbers of requests differ: a slow move renews its Lease.
func untilMachines(namespace string) *testenv.Wire {
	return &testenv.Wire{Limit: -1, Until: "POST /apis/cluster.x-k8s.io/v1beta1/namespaces/" + namespace + "/machines"}
}

// TestKilled interrupts moves of three Clusters, in turns in both directions, after their first request, their second and so on,
// until one is no longer interrupted. Each is continued by another run.
func TestKilled(t *testing.T) {
	w := newWorld(t, "killed", "a1", "b2", "z3")
	step := stride
	if os.Getenv(everyVariable) != "" {
		step = 1
	}
	for n := 0; ; n += step {
		for _, lose := range []bool{false, true} {
			if step > 1 && lose != (n/step%2 == 1) {
				continue
			}
			killed := &testenv.Wire{Limit: n, Lose: lose}
			err := w.move(killed)
			if len(killed.Log()) <= n && err == nil {
				w.arrived("without interruption")
				t.Logf("a move has %d requests", len(killed.Log()))
				return
			}
			when := "killed after " + killed.Last()
			w.safe(when)
			if again := (&testenv.Wire{Limit: -1}); err != nil {
				if err := w.move(again); err != nil {
					t.Fatalf("%s: the next run: %v", when, err)
				}
			}
			w.arrived(when)
		}
	}
}

// TestMoveCosts counts what a move writes, in one run.
func TestMoveCosts(t *testing.T) {
	clusters := []string{"c00", "c01", "c02", "c03", "c04", "c05", "c06", "c07", "c08", "c09"}
	w := newWorld(t, "costs", clusters...)
	count := &testenv.Wire{Limit: -1}
	testenv.Must(t, w.move(count))
	writes := 0
	for _, request := range count.Log() {
		if !strings.HasPrefix(request, "GET ") {
			writes++
		}
	}
	objects := len(w.want.contents)
	t.Logf("%d objects, %d requests, %d writes", objects, len(count.Log()), writes)
	// Everything that does not depend on the number of objects: Lease, journals, namespace, kinds.
	const fixed = 100
	if writes-fixed > 2*objects+3*len(clusters) {
		t.Errorf("%d writes for %d objects: an object is created and marked; a Cluster is paused and resumed, and an applied object owned, too", writes, objects)
	}
	if len(count.Log())-2*fixed > 3*objects {
		t.Errorf("%d requests for %d objects: more than 3 for each", len(count.Log()), objects)
	}
	w.arrived("afterwards")
}

// TestNothingIsLeft checks that a move leaves no journals and no Lease, and can be repeated.
func TestNothingIsLeft(t *testing.T) {
	w := newWorld(t, "left", "a1")
	testenv.Must(t, w.move(&testenv.Wire{Limit: -1}))
	for _, s := range w.sides {
		for _, path := range []client.Object{configMap(), leaseObject()} {
			if err := s.Get(t.Context(), client.ObjectKey{Namespace: w.name, Name: "clusterctl-move"}, path); client.IgnoreNotFound(err) != nil || err == nil {
				t.Errorf("%T in the %s cluster: %v", path, s.Name, err)
			}
		}
	}
	text, err := runCut(t, &testenv.Wire{Limit: -1}, w.name, w.envs[0], w.envs[1], nil)
	if err != nil || !strings.Contains(text, "nothing to move in namespace left") {
		t.Errorf("a repeated move succeeds, got %v:\n%s", err, text)
	}
}

// TestRefused checks what prevents a move, and that nothing is written then.
func TestRefused(t *testing.T) {
	w := newWorld(t, "refused", "a1", "b2")
	ctx := t.Context()
	f := &fixture{t: t, namespace: w.name, side: w.sides[0]}
	cluster := f.object("Cluster", "a1")
	testenv.Must(t, w.sides[0].Status().Patch(ctx, cluster, client.RawPatch(types.MergePatchType, []byte(`{"status":{"infrastructureReady":false}}`))))
	refuse := func(reason string, change func(*Options), texts ...string) {
		t.Helper()
		_, err := runCut(t, &testenv.Wire{Limit: -1}, w.name, w.envs[0], w.envs[1], change)
		if err == nil {
			t.Fatalf("%s: the move must be refused", reason)
		}
		for _, text := range texts {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %q is missing in: %v", reason, text, err)
			}
		}
		if diff := cmp.Diff(w.want, read(t, w.sides[0], w.name), cmp.AllowUnexported(state{})); diff != "" {
			t.Errorf("%s: the source changed: -want +got:\n%s", reason, diff)
		}
	}
	refuse("A Cluster must be provisioned.", nil, "Cluster refused/a1 is not provisioned", "status.infrastructureReady")
	refuse("A Cluster must not be paused.", func(o *Options) { o.KeepPaused = false },
		"cannot start operation while the following Clusters are paused: refused/b2", "--keep-paused")
	refuse("Source and target must differ.", func(o *Options) { o.To.Path = "from" }, "the same cluster")
	refuse("There must be something to cancel.", func(o *Options) { o.Cancel = true }, "no interrupted move")
	testenv.Must(t, w.sides[0].Status().Patch(ctx, cluster, client.RawPatch(types.MergePatchType, []byte(statusOf("Cluster")))))
	testenv.Must(t, ignoreExists(w.envs[1].Client.Create(ctx, namespaceObject(w.name))))
	other := &clusterv1beta1.Cluster{}
	other.Namespace, other.Name = w.name, "a1"
	testenv.Must(t, w.sides[1].Create(ctx, other))
	refuse("An active Cluster of the target is not replaced.", nil, "already has Cluster refused/a1", "not paused")
	testenv.Must(t, w.sides[1].Delete(ctx, other))
	if err := w.move(untilMachines(w.name)); err == nil {
		t.Fatal("the move was not interrupted")
	}
	_, err := runCut(t, &testenv.Wire{Limit: -1}, w.name, w.envs[1], w.envs[0], nil)
	if err == nil || !strings.Contains(err.Error(), "unfinished move") {
		t.Errorf("an interrupted move must be continued before another one starts, got %v", err)
	}
}

// TestCancel gives up a move after it has copied.
func TestCancel(t *testing.T) {
	w := newWorld(t, "cancel", "a1", "b2")
	if err := w.move(untilMachines(w.name)); err == nil {
		t.Fatal("the move was not interrupted")
	}
	before := read(t, w.sides[1], w.name)
	if len(before.contents) == 0 {
		t.Fatal("the test is of no use if nothing was copied")
	}
	_, err := runCut(t, &testenv.Wire{Limit: -1}, w.name, w.envs[0], w.envs[1], func(o *Options) { o.Cancel = true })
	testenv.Must(t, err)
	if diff := cmp.Diff(w.want, read(t, w.sides[0], w.name), cmp.AllowUnexported(state{})); diff != "" {
		t.Errorf("source: -want +got:\n%s", diff)
	}
	for key := range read(t, w.sides[1], w.name).paused {
		t.Errorf("%s is left in the target", key)
	}
	testenv.Must(t, w.move(&testenv.Wire{Limit: -1}))
	w.arrived("after the cancellation")
}

// TestDirectory moves through a directory.
func TestDirectory(t *testing.T) {
	w := newWorld(t, "directory", "a1", "b2")
	dir := t.TempDir()
	to := func(o *Options) { o.To, o.ToDirectory = management.Kubeconfig{}, dir }
	interrupted := &testenv.Wire{Limit: -1, Until: "PATCH /apis/cluster.x-k8s.io/v1beta1/namespaces/directory/clusters/", Lose: true}
	if _, err := runCut(t, interrupted, w.name, w.envs[0], w.envs[1], to); err == nil {
		t.Fatal("the command was not interrupted")
	}
	_, err := runCut(t, &testenv.Wire{Limit: -1}, w.name, w.envs[0], w.envs[1], to)
	testenv.Must(t, err)
	if diff := cmp.Diff(w.want, read(t, w.sides[0], w.name), cmp.AllowUnexported(state{})); diff != "" {
		t.Errorf("the source is resumed: -want +got:\n%s", diff)
	}
	entries, err := os.ReadDir(dir)
	testenv.Must(t, err)
	for _, entry := range entries {
		info, err := entry.Info()
		testenv.Must(t, err)
		if info.Mode().Perm() != 0o600 || strings.HasPrefix(entry.Name(), ".") {
			t.Errorf("%s has mode %v", entry.Name(), info.Mode())
		}
	}
	from := func(o *Options) { o.FromDirectory = dir }
	for n := 0; ; n += stride {
		killed := &testenv.Wire{Limit: n, Lose: n%2 == 0}
		text, err := runCut(t, killed, w.name, w.envs[0], w.envs[1], from)
		if strings.Contains(text, "c2VjcmV0") {
			t.Errorf("a Secret is printed:\n%s", text)
		}
		if err == nil {
			break
		}
		if n > 100*stride {
			t.Fatalf("it never ends: %v", err)
		}
	}
	if diff := cmp.Diff(w.want, read(t, w.sides[1], w.name), cmp.AllowUnexported(state{})); diff != "" {
		t.Errorf("target: -want +got:\n%s", diff)
	}
}

// TestBlocked waits for objects that block the move.
func TestBlocked(t *testing.T) {
	w := newWorld(t, "blocked", "a1")
	o := (&fixture{t: t, namespace: w.name, side: w.sides[0]}).object("Machine", "a1-m")
	block := func(value string) {
		t.Helper()
		patch := []byte(`{"metadata":{"annotations":{"clusterctl.cluster.x-k8s.io/block-move":` + value + `}}}`)
		testenv.Must(t, w.sides[0].Patch(t.Context(), o, client.RawPatch(types.MergePatchType, patch)))
	}
	block(`""`)
	text, err := runCut(t, &testenv.Wire{Limit: -1}, w.name, w.envs[0], w.envs[1], nil)
	if err == nil || !strings.Contains(err.Error(), "Machine blocked/a1-m") || !strings.Contains(text, "Waiting for controllers") {
		t.Errorf("the error lists what blocks the move, got %v:\n%s", err, text)
	}
	if got := read(t, w.sides[1], w.name).contents; len(got) > 0 {
		t.Errorf("nothing may be copied while the move is blocked, got %v", got)
	}
	block("null")
	testenv.Must(t, w.move(&testenv.Wire{Limit: -1}))
	w.arrived("after the annotation was removed")
}

// TestDryRun writes nothing.
func TestDryRun(t *testing.T) {
	w := newWorld(t, "dry", "a1")
	count := &testenv.Wire{Limit: -1}
	text, err := runCut(t, count, w.name, w.envs[0], w.envs[1], func(o *Options) { o.DryRun, o.To = true, management.Kubeconfig{} })
	testenv.Must(t, err)
	if !strings.Contains(text, "move Cluster dry/a1\n") || strings.Index(text, "Cluster dry/a1") > strings.Index(text, "Machine dry/a1-m") {
		t.Errorf("the objects are listed, owners first, got:\n%s", text)
	}
	for _, request := range count.Log() {
		if !strings.HasPrefix(request, "GET ") {
			t.Errorf("a dry run makes the request %s", request)
		}
	}
	dry := func(namespace string, change func(*Options)) (string, error) {
		return runCut(t, &testenv.Wire{Limit: -1}, namespace, w.envs[0], w.envs[1], func(o *Options) {
			o.DryRun, o.IO.Verbosity = true, 1
			change(o)
		})
	}
	text, err = dry(w.name, func(*Options) {})
	if err != nil || !strings.Contains(text, "Machine dry/a1-m: belongs to MachineDeployment dry/a1-md\n") {
		t.Errorf("with a target, and details: %v\n%s", err, text)
	}
	if _, err := dry("no-such-namespace", func(*Options) {}); err == nil || !strings.Contains(err.Error(), "the source cluster has no namespace no-such-namespace") {
		t.Errorf("a namespace that does not exist: %v", err)
	}
	cluster := (&fixture{t: t, namespace: w.name, side: w.sides[0]}).object("Cluster", "a1")
	testenv.Must(t, w.sides[0].Status().Patch(t.Context(), cluster, client.RawPatch(types.MergePatchType, []byte(`{"status":{"infrastructureReady":false}}`))))
	for reason, change := range map[string]func(*Options){
		"a target": func(*Options) {}, "no target": func(o *Options) { o.To = management.Kubeconfig{} },
	} {
		text, err := dry(w.name, change)
		if err == nil || !strings.Contains(err.Error(), "Cluster dry/a1 is not provisioned") || !strings.Contains(text, "Cluster dry/a1\n") {
			t.Errorf("with %s it checks what a move checks: %v\n%s", reason, err, text)
		}
	}
	text, err = dry(w.name, func(o *Options) { o.To, o.ToDirectory = management.Kubeconfig{}, t.TempDir() })
	if err != nil || strings.Count(text, "Cluster dry/a1 is not provisioned: after a restore") != 1 {
		t.Errorf("with a directory it warns about what it would write: %v\n%s", err, text)
	}
}

// TestBackupInMotion writes a Cluster that is not complete to a directory, and restores it.
func TestBackupInMotion(t *testing.T) {
	w := newWorld(t, "motion", "a1")
	f := &fixture{t: t, namespace: w.name, side: w.sides[0]}
	for kind, status := range map[string]string{"Cluster": `{"status":{"infrastructureReady":false}}`, "Machine": `{"status":{"nodeRef":null}}`} {
		name := map[string]string{"Cluster": "a1", "Machine": "a1-m"}[kind]
		testenv.Must(t, w.sides[0].Status().Patch(t.Context(), f.object(kind, name), client.RawPatch(types.MergePatchType, []byte(status))))
	}
	machine := f.object("Machine", "a1-m")
	testenv.Must(t, w.sides[0].Patch(t.Context(), machine, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/x"]}}`))))
	testenv.Must(t, w.sides[0].Delete(t.Context(), machine))
	w.want = read(t, w.sides[0], w.name)

	dir := t.TempDir()
	text, err := runCut(t, &testenv.Wire{Limit: -1}, w.name, w.envs[0], w.envs[1], func(o *Options) { o.To, o.ToDirectory = management.Kubeconfig{}, dir })
	testenv.Must(t, err)
	for _, warning := range []string{"Cluster motion/a1 is not provisioned", "Machine motion/a1-m has no Node", "Machine motion/a1-m is being deleted"} {
		if !strings.Contains(text, warning) {
			t.Errorf("%q is missing in:\n%s", warning, text)
		}
	}
	if diff := cmp.Diff(w.want, read(t, w.sides[0], w.name), cmp.AllowUnexported(state{})); diff != "" {
		t.Errorf("the source changed: -want +got:\n%s", diff)
	}
	text, err = runCut(t, &testenv.Wire{Limit: -1}, w.name, w.envs[0], w.envs[1], func(o *Options) { o.FromDirectory = dir })
	testenv.Must(t, err)
	if !strings.Contains(text, "Machine motion/a1-m was being deleted when it was saved") {
		t.Errorf("the restore does not say what it changes:\n%s", text)
	}
	if diff := cmp.Diff(w.want.contents, read(t, w.sides[1], w.name).contents); diff != "" {
		t.Errorf("target: -want +got:\n%s", diff)
	}
}
