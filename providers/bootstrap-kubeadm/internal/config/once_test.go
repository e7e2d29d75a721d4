package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
)

// inits are the bootstrap data Secrets that initialize a control plane.
func (w *world) inits(t *testing.T) []string {
	t.Helper()
	secrets := &corev1.SecretList{}
	testenv.Must(t, w.List(t.Context(), secrets))
	var out []string
	for _, s := range secrets.Items {
		if strings.Contains(string(s.Data["value"]), "kubeadm init --config") {
			out = append(out, s.Name)
		}
	}
	return out
}

// lockSays returns the content of the init lock; empty if it does not exist.
func (w *world) lockSays(t *testing.T) string {
	t.Helper()
	lock := &corev1.ConfigMap{}
	err := w.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "test-lock"}, lock)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return lock.Data[lockKey]
}

// becomesInitialized is what the control plane provider and the Cluster's controller do once the first machine is up.
func (w *world) becomesInitialized(t *testing.T) {
	t.Helper()
	cluster := get(t, w, "test", &clusterv1.Cluster{})
	if condition.IsTrue(cluster, clusterv1.ControlPlaneInitializedV1Beta1Condition) {
		return
	}
	testenv.Must(t, w.Status().Update(t.Context(), initialized(cluster)))
}

func lockOf(cluster types.UID, machine string) *corev1.ConfigMap {
	lock := lockHeld(fmt.Sprintf(`{"machineName":%q}`, machine))
	lock.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "test", UID: cluster}}
	return lock
}

func TestInitIsDecidedOnLiveState(t *testing.T) {
	elsewhere := newMachine("other", true)
	elsewhere.Spec.ClusterName = "elsewhere"
	tests := []struct {
		reason  string
		objects []client.Object
		// meanwhile is what the cache does not have yet.
		meanwhile func(t *testing.T, w *world)
		rounds    int
		init      bool
		lock      string
	}{
		{reason: "nothing happened meanwhile", init: true, lock: `{"machineName":"m"}`},
		{
			reason:    "the control plane was initialized, and the lock released",
			meanwhile: func(t *testing.T, w *world) { w.Cache.FreezeObjects(newCluster()); w.becomesInitialized(t) },
		},
		{
			reason: "it was initialized, and the lock that this Machine held is still there", objects: []client.Object{lockOf("cluster-test", "m")},
			meanwhile: func(t *testing.T, w *world) { w.Cache.FreezeObjects(newCluster()); w.becomesInitialized(t) },
		},
		{
			reason: "the Cluster was deleted",
			meanwhile: func(t *testing.T, w *world) {
				w.Cache.FreezeObjects(newCluster())
				testenv.Must(t, w.Delete(t.Context(), newCluster()))
			},
		},
		{
			reason: "the Cluster was replaced by another of its name, whose lock is another Machine's",
			meanwhile: func(t *testing.T, w *world) {
				w.Cache.FreezeObjects(newCluster())
				testenv.Must(t, w.Delete(t.Context(), newCluster()))
				successor := newCluster()
				successor.UID = "successor"
				testenv.Must(t, w.Client.Create(t.Context(), successor), w.Client.Create(t.Context(), lockOf(successor.UID, "m")))
			},
			lock: `{"machineName":"m"}`,
		},
		{
			reason:  "the lock belongs to a deleted Cluster of that name: the garbage collector will delete it, so it protects nothing",
			objects: []client.Object{lockOf("predecessor", "m")},
		},
		{
			reason: "then it is acquired again", objects: []client.Object{lockOf("predecessor", "m")}, rounds: 2, init: true, lock: `{"machineName":"m"}`,
		},
		{
			reason: "the cache does not have the holder yet", objects: []client.Object{lockOf("cluster-test", "other"), newMachine("other", true)},
			meanwhile: func(_ *testing.T, w *world) {
				w.Cache.Hide(newMachine("other", true))
			},
			rounds: 2, lock: `{"machineName":"other"}`,
		},
		{
			reason: "the cache still has a deleted holder", objects: []client.Object{lockOf("cluster-test", "other"), newMachine("other", true)},
			meanwhile: func(t *testing.T, w *world) {
				w.Cache.FreezeObjects(newMachine("other", true))
				testenv.Must(t, w.Delete(t.Context(), newMachine("other", true)))
			},
			rounds: 2, init: true, lock: `{"machineName":"m"}`,
		},
		{
			reason: "a Machine of another cluster has the holder's name now", objects: []client.Object{lockOf("cluster-test", "other"), elsewhere},
			rounds: 2, init: true, lock: `{"machineName":"m"}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			w := newWorld(t, append(tt.objects, newCluster(), newMachine("m", true), newConfig("m", clusterSpec()))...)
			if tt.meanwhile != nil {
				tt.meanwhile(t, w)
			}
			for range max(1, tt.rounds) {
				w.mustReconcile(t, "m")
			}
			if got := len(w.inits(t)) == 1; got != tt.init || w.lockSays(t) != tt.lock {
				t.Errorf("initializes: %t, want %t; the lock contains %q, want %q", got, tt.init, w.lockSays(t), tt.lock)
			}
		})
	}
}

func TestReleaseLeavesTheLocksOfOthers(t *testing.T) {
	for reason, tt := range map[string]struct {
		lock *corev1.ConfigMap
		gone bool
	}{
		"its own":                 {lock: lockOf("cluster-test", "a"), gone: true},
		"one without owner":       {lock: lockHeld(`{"machineName":"a"}`), gone: true},
		"that of a later Cluster": {lock: lockOf("successor", "a")},
	} {
		w := newWorld(t, tt.lock)
		testenv.Must(t, w.c.locks.release(t.Context(), w.c.Clients, initialized(newCluster())))
		err := w.Get(t.Context(), client.ObjectKeyFromObject(tt.lock), &corev1.ConfigMap{})
		if apierrors.IsNotFound(err) != tt.gone {
			t.Errorf("%s: gone is %t, want %t", reason, apierrors.IsNotFound(err), tt.gone)
		}
	}
}

// twoMachines are a cluster without control plane object, with two Machines that could each initialize it.
func twoMachines(t *testing.T) *world {
	t.Helper()
	return newWorld(t, newCluster(), newMachine("a", true), newMachine("b", true), newConfig("a", clusterSpec()), newConfig("b", clusterSpec()))
}

// converge reconciles Machines until nothing changes, and initializes the control plane once there is data for it.
func (w *world) converge(t *testing.T, names ...string) {
	t.Helper()
	for range 4 {
		for _, name := range names {
			w.mustReconcile(t, name)
			if len(w.inits(t)) > 0 {
				w.becomesInitialized(t)
			}
		}
	}
}

// converged checks that one Machine initializes and the other joins.
func (w *world) converged(t *testing.T) {
	t.Helper()
	if inits := w.inits(t); len(inits) != 1 {
		t.Errorf("%q initialize the control plane, want one", inits)
	}
	for _, name := range []string{"a", "b"} {
		if config := w.config(t, name); !ptr.Deref(config.Status.Initialization.DataSecretCreated, false) || config.Status.DataSecretName != name {
			t.Errorf("%s has no data: %+v", name, config.Status)
		}
	}
	if lock := w.lockSays(t); lock != "" {
		t.Errorf("the lock is left over: %s", lock)
	}
}

// TestOneInitWhereverItIsKilled kills the manager at each of its writes, and lets another one go on.
func TestOneInitWhereverItIsKilled(t *testing.T) {
	killed := errors.New("killed")
	for _, forwarded := range []bool{true, false} {
		for n, reached := 1, true; reached; n++ {
			reached = false
			t.Run(fmt.Sprintf("write %d, forwarded %t", n, forwarded), func(t *testing.T) {
				w, writes := twoMachines(t), 0
				kill := func(r fakeapi.Request) error {
					if !r.IsWrite() {
						return nil
					}
					if writes++; writes >= n {
						reached = true
						return killed
					}
					return nil
				}
				if forwarded {
					w.After = func(r fakeapi.Request, err error) error { return errors.Join(err, kill(r)) }
				} else {
					w.Before = kill
				}
				for _, name := range []string{"a", "b"} {
					if _, err := w.reconcile(t, name); err != nil && !reached {
						t.Fatal(err)
					}
				}
				w.Before, w.After = nil, nil
				w.restart()
				w.converge(t, "b", "a")
				w.converged(t)
			})
		}
	}
}

// TestOneInitWithTwoLeaders stops a leader before each of its writes while another one does everything, and then lets it
// go on with what it knew.
func TestOneInitWithTwoLeaders(t *testing.T) {
	for _, names := range [][]string{{"b"}, {"b", "a"}} {
		twoLeaders(t, names)
	}
}

// twoLeaders lets the other leader see to the Machines of these names only.
func twoLeaders(t *testing.T, names []string) {
	for n, reached := 1, true; reached; n++ {
		reached = false
		t.Run(fmt.Sprintf("before write %d, for %s", n, names), func(t *testing.T) {
			w, writes := twoMachines(t), 0
			w.Cache.FreezeObjects(newCluster())
			w.Cache.FreezeObjects(newMachine("a", true))
			old := w.runner
			w.Before = func(r fakeapi.Request) error {
				if !r.IsWrite() {
					return nil
				}
				if writes++; writes != n {
					return nil
				}
				reached = true
				w.Before, w.Cache = nil, w.NewCache()
				w.restart()
				w.converge(t, names...)
				return nil
			}
			for range 3 {
				// Its errors, if any, are stale.
				if _, err := old.Reconcile(t.Context(), request("a")); err != nil {
					t.Log(err)
				}
			}
			w.Before, w.Cache = nil, w.NewCache()
			w.restart()
			w.converge(t, "b", "a")
			w.converged(t)
		})
	}
}
