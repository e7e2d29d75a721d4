package journey

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/test/extensiontest"
)

const (
	hooksAPI = "hooks.runtime.cluster.x-k8s.io/v1alpha1"
	// blockingMessage is the message of a hook that blocks.
	blockingMessage = "not yet"
)

// hooks is a runtime extension with a handler for each lifecycle hook, in this process.
type hooks struct {
	*extensiontest.Server
	t testing.TB

	mu       sync.Mutex
	blocking map[string]bool // by the name of the hook in lower case
	calls    []string
	// retryAfter is the retryAfterSeconds of hooks that block, status the status of responses to lifecycle hooks.
	retryAfter int
	status     string
	// known is closed by the first discovery: controllers know the ExtensionConfig then. Discoveries are not answered before
	// discoverable is closed.
	known, discoverable chan struct{}
	knownOnce           sync.Once
}

// newHooks serves an extension in which these hooks block.
func newHooks(t testing.TB, blocking ...string) *hooks {
	t.Helper()
	h := newUndiscoverableHooks(t, blocking...)
	close(h.discoverable)
	return h
}

// newUndiscoverableHooks is newHooks, for a test that closes discoverable itself.
func newUndiscoverableHooks(t testing.TB, blocking ...string) *hooks {
	t.Helper()
	h := &hooks{
		t: t, blocking: map[string]bool{}, retryAfter: 1, status: "Success", known: make(chan struct{}), discoverable: make(chan struct{}),
	}
	for _, hook := range blocking {
		h.blocking[strings.ToLower(hook)] = true
	}
	h.Server = extensiontest.Serve(t, extensiontest.Options{}, h.serve)
	return h
}

// lifecycleHooks are the hooks that the extension has handlers for.
func lifecycleHooks() []string {
	return []string{
		"BeforeClusterCreate", "AfterControlPlaneInitialized", "BeforeClusterUpgrade", "AfterControlPlaneUpgrade", "AfterClusterUpgrade", "BeforeClusterDelete",
	}
}

func (h *hooks) serve(w http.ResponseWriter, r *http.Request) {
	answer := map[string]any{"status": "Success", "apiVersion": hooksAPI, "kind": "DiscoveryResponse"}
	called := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	var handlers []any
	for _, hook := range lifecycleHooks() {
		name := strings.ToLower(hook)
		handlers = append(handlers, map[string]any{"name": name, "requestHook": map[string]any{"apiVersion": hooksAPI, "hook": hook}})
		if name == called {
			answer["kind"], answer["status"] = hook+"Response", h.status
			h.block(name, answer)
		}
	}
	if called == "discovery" {
		h.knownOnce.Do(func() { close(h.known) })
		select {
		case <-h.discoverable:
		case <-r.Context().Done():
			return
		}
		answer["handlers"] = handlers
	}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		h.t.Error(err)
	}
}

// block makes an answer block if the hook does.
func (h *hooks) block(name string, answer map[string]any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.blocking[name] {
		answer["message"], answer["retryAfterSeconds"] = blockingMessage, h.retryAfter
	}
}

// release lets a hook no longer block.
func (h *hooks) release(hook string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.blocking, strings.ToLower(hook))
}

// applied creates an ExtensionConfig for the extension, and waits until it is known to controllers: their caches may have a Cluster of
// later before the ExtensionConfig, and the Cluster would be created without the hooks.
func (h *hooks) applied(w *World, name string) *unstructured.Unstructured {
	h.t.Helper()
	config := w.extensionConfig(name, byURL(h.Server))
	testenv.Must(h.t, w.Client.Create(h.t.Context(), config))
	ctx, cancel := context.WithTimeout(h.t.Context(), conditionTimeout)
	defer cancel()
	select {
	case <-h.known:
	case <-ctx.Done():
		h.t.Fatalf("ExtensionConfig %s was not discovered: %v", name, ctx.Err())
	}
	return config
}

// history returns the calls so far, with the versions in the requests.
func (h *hooks) history() []string {
	h.t.Helper()
	for _, call := range h.Calls() {
		var request struct{ Kind, FromKubernetesVersion, ToKubernetesVersion, KubernetesVersion string }
		if err := json.Unmarshal([]byte(call.Body), &request); err != nil {
			h.t.Fatal(err)
		}
		if request.Kind != "DiscoveryRequest" {
			versions := []string{request.FromKubernetesVersion, request.ToKubernetesVersion, request.KubernetesVersion}
			h.calls = append(h.calls, strings.Join(strings.Fields(strings.TrimSuffix(request.Kind, "Request")+" "+strings.Join(versions, " ")), " "))
		}
	}
	return slices.Clone(h.calls)
}

// blocks is true when the condition of the Cluster says that this hook of extension windows blocks.
func blocks(hook string) Condition { return blocksFor("windows", hook) }

// blocksFor is blocks for another extension.
func blocksFor(extension, hook string) Condition {
	return blockedBy(fmt.Sprintf("hook %q is blocking: %s (extension %s.%s)", hook, blockingMessage, strings.ToLower(hook), extension))
}

// blockedBy is true when the condition of the Cluster has this message about hooks that block.
func blockedBy(message string) Condition {
	return func(p *Snapshot) error {
		c := FindCondition(p.Cluster, clusterv1.TopologyReconciledCondition)
		reason := clusterv1.TopologyReconciledHookBlockingReason
		if p.Cluster.DeletionTimestamp != nil {
			reason = clusterv1.DeletedReason // It has precedence.
		}
		if c == nil || c.Reason != reason || c.Message != message {
			return fmt.Errorf("the condition is %+v, want %q", c, message)
		}
		return nil
	}
}

// nonePending is true when no hook is still to be called.
func nonePending(p *Snapshot) error {
	if pending := p.Cluster.Annotations[runtimev1.PendingHooksAnnotation]; pending != "" {
		return errors.New("pending hooks: " + pending)
	}
	return nil
}

// hookExplained is true when clusterctl says which hook of which extension blocks, and since when.
func (c *Subject) hookExplained(hook string) Condition {
	return func(p *Snapshot) error {
		if err := c.Explains("LifecycleHook Cluster/"+c.Name, fmt.Sprintf("hook %q", hook), strings.ToLower(hook)+".windows")(p); err != nil {
			return err
		}
		args := []string{"describe", "cluster", c.Name, "--namespace", c.Namespace, "--kubeconfig", c.Kubeconfig, "--show-conditions", "all"}
		r := c.Tools.Clusterctl(c.t.Context(), "", args...)
		if r.Failed || !strings.Contains(r.Out, hook+": "+blockingMessage) {
			return fmt.Errorf("clusterctl describe cluster does not show the hook: %s", r)
		}
		r = c.Tools.Clusterctl(c.t.Context(), "", append(args, "--v1beta2=false")...)
		if c := FindCondition(p.Cluster, clusterv1.TopologyReconciledCondition); r.Failed || c == nil || !strings.Contains(r.Out, c.Message) {
			return fmt.Errorf("clusterctl describe cluster does not show the hook in the form of v1beta1: %s", r)
		}
		return nil
	}
}

// TestLifecycleHooks creates, upgrades and deletes a Cluster while an extension blocks each of the hooks that can block. The Cluster is
// applied before the extension is discovered, and its upgrade changes also what replaces Machines by itself.
func TestLifecycleHooks(t *testing.T) {
	t.Parallel()
	w := newExtensionWorld(t)
	h := newUndiscoverableHooks(t, "BeforeClusterCreate", "BeforeClusterUpgrade", "AfterControlPlaneUpgrade", "BeforeClusterDelete")
	class := w.Class(w.Tools.ProjectTemplate())
	h.applied(w, "windows")

	c := w.Subject(NewCluster("c", class).Version("v1.29.2").Variable("startupDuration", "100ms").Workers(1).Build())
	close(h.discoverable)
	c.Eventually("the creation is blocked", blocks("BeforeClusterCreate"), c.hookExplained("BeforeClusterCreate"))
	if objects := slices.DeleteFunc(c.Inventory(), func(o string) bool { return slices.Contains(c.before, o) }); !slices.Equal(objects, []string{"clusters/c"}) {
		t.Errorf("objects that were created although the creation is blocked: %q", objects)
	}
	h.release("BeforeClusterCreate")
	c.Eventually("the Cluster is created", Ready, ControlPlanes(1), Workers(1), nonePending, c.ExplainsNothing)

	created := c.Snapshot()
	c.Change(func(cluster *clusterv1.Cluster) {
		SetVersion("v1.30.5")(cluster)
		SetWorkers(2)(cluster)
		setVariable("startupDuration", "150ms")(cluster)
	})
	c.Eventually("the upgrade is blocked", blocks("BeforeClusterUpgrade"), c.hookExplained("BeforeClusterUpgrade"),
		SameMachines((*Snapshot).ControlPlane, created), SameMachines((*Snapshot).Workers, created))
	still := c.Always("workers wait for the hook after the upgrade of the control plane", SameMachines((*Snapshot).Workers, created))
	h.release("BeforeClusterUpgrade")
	c.Eventually("the upgrade of the workers is blocked", blocks("AfterControlPlaneUpgrade"), c.hookExplained("AfterControlPlaneUpgrade"),
		NewMachines((*Snapshot).ControlPlane, created), SameMachines((*Snapshot).Workers, created))
	still()
	upgraded := c.Snapshot()
	h.release("AfterControlPlaneUpgrade")
	c.Eventually("the Cluster is upgraded", Ready, Version("v1.30.5"), ControlPlanes(1), Workers(2), nonePending, c.ExplainsNothing,
		SameMachines((*Snapshot).ControlPlane, upgraded), NewMachines((*Snapshot).Workers, created))
	if n := len(c.Snapshot().Sets.Items); n != 2 {
		t.Errorf("the workers have %d MachineSets after one rollout", n)
	}

	complete := c.Snapshot()
	testenv.Must(t, w.Client.Delete(t.Context(), complete.Cluster.DeepCopy()))
	c.Eventually("the deletion is blocked", blocks("BeforeClusterDelete"), c.hookExplained("BeforeClusterDelete"),
		SameMachines((*Snapshot).ControlPlane, complete), SameMachines((*Snapshot).Workers, complete))
	h.release("BeforeClusterDelete")
	c.Eventually("the Cluster is deleted", Absent)

	want := []string{
		"BeforeClusterCreate", "AfterControlPlaneInitialized", "BeforeClusterUpgrade v1.29.2 v1.30.5",
		"AfterControlPlaneUpgrade v1.30.5", "AfterClusterUpgrade v1.30.5", "BeforeClusterDelete",
	}
	all := h.history()
	if diff := cmp.Diff(want, slices.Compact(slices.Clone(all))); diff != "" {
		t.Errorf("hooks in the order of the first calls (-want +got):\n%s", diff)
	}
	for _, hook := range []string{"AfterControlPlaneInitialized", "AfterClusterUpgrade v1.30.5"} {
		if n := len(slices.DeleteFunc(slices.Clone(all), func(call string) bool { return call != hook })); n != 1 {
			t.Errorf("%s was called %d times", hook, n)
		}
	}
}

// TestHooksEndWithTheirExtension deletes the ExtensionConfig of an extension that blocks, and whose server would be called again after an
// hour only: the Cluster continues at once. Another extension, which fails, holds the Cluster until it is deleted, too.
func TestHooksEndWithTheirExtension(t *testing.T) {
	t.Parallel()
	w := newExtensionWorld(t)
	h := newHooks(t, "BeforeClusterCreate", "BeforeClusterDelete")
	h.retryAfter = 3600
	failing := newHooks(t)
	failing.status = "Failure"
	class := w.Class(w.Tools.ProjectTemplate())
	config, other := h.applied(w, "ends"), w.extensionConfig("failing", byURL(failing.Server))
	c := w.Subject(NewCluster("c", class).Variable("startupDuration", "100ms").Build())
	c.Eventually("the creation is blocked", blocksFor("ends", "BeforeClusterCreate"))
	testenv.Must(t, w.Client.Delete(t.Context(), config))
	c.Eventually("the Cluster is created", Ready, ControlPlanes(1), nonePending)

	testenv.Must(t, w.Client.Create(t.Context(), other))
	w.discovered("failing", discoveredHooks("failing"))
	testenv.Must(t, w.Client.Delete(t.Context(), c.Snapshot().Cluster.DeepCopy()))
	c.Eventually("the deletion waits for an extension that fails", ControlPlanes(1), c.Explains("LifecycleHook Cluster/c",
		"extension beforeclusterdelete.failing of hook BeforeClusterDelete reported a failure"))
	testenv.Must(t, w.Client.Delete(t.Context(), other))
	c.Eventually("the Cluster is deleted", Absent)
}

// discoveredHooks returns what World.discovered expects of an ExtensionConfig for hooks.
func discoveredHooks(config string) string {
	names := []string{"True"}
	for _, hook := range lifecycleHooks() {
		names = append(names, strings.ToLower(hook)+"."+config)
	}
	slices.Sort(names[1:])
	return strings.Join(names, " ")
}
