package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// newChangedPool returns a pool with data, the spec of whose config was changed afterwards.
func newChangedPool(t *testing.T, with ...func(*world)) *world {
	t.Helper()
	w := newPoolWorld(t, initialized(newCluster()), newPool(1), poolConfig(bootstrapv1.KubeadmConfigSpec{}))
	w.mustReconcile(t, "p")
	for _, f := range with {
		f(w)
	}
	w.changeSpec(t, "echo changed")
	return w
}

func (w *world) changeSpec(t *testing.T, command string) {
	t.Helper()
	config := w.config(t, "p")
	config.Spec.PreKubeadmCommands = []string{command}
	testenv.Must(t, w.Update(t.Context(), config))
}

// secrets returns the names of Secrets with data of the pool, and marks the current one.
func (w *world) secrets(t *testing.T) []string {
	t.Helper()
	all := &corev1.SecretList{}
	testenv.Must(t, w.List(t.Context(), all))
	var names []string
	for _, s := range all.Items {
		switch {
		case s.Annotations[specAnnotation] == "":
		case s.Name == w.config(t, "p").Status.DataSecretName:
			names = append(names, "*"+s.Name)
		default:
			names = append(names, s.Name)
		}
	}
	return names
}

// refer makes the MachinePool refer to the current data, as its controller does.
func (w *world) refer(t *testing.T) {
	t.Helper()
	pool := get(t, w, "p", &clusterv1.MachinePool{})
	pool.Spec.Template.Spec.Bootstrap.DataSecretName = ptr.To(w.config(t, "p").Status.DataSecretName)
	testenv.Must(t, w.Update(t.Context(), pool))
}

// TestPoolSpecChanges generates data of another name for another spec, and deletes the previous one with the next rotation.
func TestPoolSpecChanges(t *testing.T) {
	w := newChangedPool(t)
	w.mustReconcile(t, "p")
	name := w.config(t, "p").Status.DataSecretName
	if diff := cmp.Diff([]string{"p", "*" + name}, w.secrets(t)); diff != "" || !strings.HasPrefix(name, "p-") {
		t.Fatalf("Secrets, -want +got:\n%s", diff)
	}
	data := string(get(t, w, name, &corev1.Secret{}).Data["value"])
	if !strings.Contains(data, "echo changed") || len(w.tokens(t)) != 2 {
		t.Errorf("%d tokens, and the data is\n%s", len(w.tokens(t)), data)
	}
	writes := len(w.Writes)
	w.mustReconcile(t, "p")
	if len(w.Writes) != writes {
		t.Errorf("writes without a change: %v", w.Writes[writes:])
	}
	w.refer(t)
	w.Clock.SetTime(now.Add(ttl/2 + time.Second))
	w.mustReconcile(t, "p")
	if diff := cmp.Diff([]string{"*" + name}, w.secrets(t)); diff != "" {
		t.Errorf("after a rotation, -want +got:\n%s", diff)
	}
	w.changeSpec(t, "echo again")
	w.mustReconcile(t, "p")
	if again := w.config(t, "p").Status.DataSecretName; again == name || !strings.HasPrefix(again, "p-") {
		t.Errorf("the next change leads to name %s after %s", again, name)
	}
}

// TestPoolNameAfterMove loses the status: the name must stay, because another one would replace all machines.
func TestPoolNameAfterMove(t *testing.T) {
	w := newChangedPool(t)
	w.mustReconcile(t, "p")
	w.refer(t)
	config := w.config(t, "p")
	name := config.Status.DataSecretName
	config.Status = bootstrapv1.KubeadmConfigStatus{}
	testenv.Must(t, w.Status().Update(t.Context(), config))
	w.mustReconcile(t, "p")
	if got := w.config(t, "p").Status; !ptr.Deref(got.Initialization.DataSecretCreated, false) || got.DataSecretName != name {
		t.Errorf("status %+v, want Secret %s", got, name)
	}
}

// TestPoolOfEarlierData keeps the name of data that does not have the hash of its spec.
func TestPoolOfEarlierData(t *testing.T) {
	w := newChangedPool(t, func(w *world) {
		secret := get(t, w, "p", &corev1.Secret{})
		secret.Annotations = nil
		testenv.Must(t, w.Update(t.Context(), secret))
	})
	w.mustReconcile(t, "p")
	if name := w.config(t, "p").Status.DataSecretName; name != "p" {
		t.Errorf("the name is %s", name)
	}
}

// TestPoolSpecChangeIsInterrupted kills the process after every request, with and without a stale cache.
func TestPoolSpecChangeIsInterrupted(t *testing.T) {
	killedAfterEach(t, func() *world { return newChangedPool(t) }, func(*world, int) {}, func(w *world, stop int) {
		if names, tokens := w.secrets(t), w.tokens(t); len(names) != 2 || names[0] != "p" || !strings.HasPrefix(names[1], "*p-") || len(tokens) != 2 {
			t.Errorf("killed after request %d: Secrets %q, %d tokens", stop, names, len(tokens))
		}
	})
}

// TestPoolSpecChangeWithoutConnection reports that the data is not that of the spec: it needs a token.
func TestPoolSpecChangeWithoutConnection(t *testing.T) {
	w := newChangedPool(t)
	w.workload.Err = remote.ErrNotConnected
	w.mustReconcile(t, "p")
	const waits = "False Info WaitingForControlPlaneAvailable"
	if config := w.config(t, "p"); states(config)[bootstrapv1.DataSecretAvailableV1Beta1Condition] != waits || !ptr.Deref(config.Status.Initialization.DataSecretCreated, false) || config.Status.DataSecretName != "p" {
		t.Errorf("status %+v, want the previous data, and %s", config.Status, waits)
	}
	w.workload.Err = nil
	w.mustReconcile(t, "p")
	if config := w.config(t, "p"); states(config)[bootstrapv1.DataSecretAvailableV1Beta1Condition] != "True" || config.Status.DataSecretName == "p" {
		t.Errorf("status %+v, want new data", config.Status)
	}
}
