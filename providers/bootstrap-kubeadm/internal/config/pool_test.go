package config

import (
	"encoding/base64"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// newPool returns a MachinePool of one replica, with this number of Nodes.
func newPool(nodes int) *clusterv1.MachinePool {
	return build.MachinePool("p", func(p *clusterv1.MachinePool) {
		p.Spec.Template.Spec.Version = "v1.31.0"
		p.Status.NodeRefs = make([]corev1.ObjectReference, nodes)
	})
}

// poolConfig belongs to the MachinePool.
func poolConfig(spec bootstrapv1.KubeadmConfigSpec) *bootstrapv1.KubeadmConfig {
	return object.ControlledBy(&bootstrapv1.KubeadmConfig{ObjectMeta: build.Meta("KubeadmConfig", "p"), Spec: spec}, newPool(0))
}

func withToken(token string) bootstrapv1.KubeadmConfigSpec {
	return bootstrapv1.KubeadmConfigSpec{JoinConfiguration: bootstrapv1.JoinConfiguration{
		Discovery: bootstrapv1.Discovery{BootstrapToken: bootstrapv1.BootstrapTokenDiscovery{Token: token}},
	}}
}

func newPoolWorld(t *testing.T, cluster *clusterv1.Cluster, pool *clusterv1.MachinePool, config *bootstrapv1.KubeadmConfig) *world {
	t.Helper()
	w := newWorld(t, testCA(t), cluster, pool, config)
	w.startPools()
	return w
}

// startPools starts a new process with the feature gates for pools and Ignition.
func (w *world) startPools() {
	w.restart()
	w.c.pools, w.c.ignition = true, true
	declared := w.c.declared()
	declared.Progress = nil // Status is written immediately.
	w.runner = declared.Runner(w.c.Clients)
}

var encoded = regexp.MustCompile(`data:;base64,([A-Za-z0-9+/=]+)`)

// dataOf returns the data of the pool; if it is Ignition, with the content of its files.
func (w *world) dataOf(t *testing.T) string {
	t.Helper()
	data := string(get(t, w, "p", &corev1.Secret{}).Data["value"])
	return encoded.ReplaceAllStringFunc(data, func(source string) string {
		content, err := base64.StdEncoding.DecodeString(encoded.FindStringSubmatch(source)[1])
		testenv.Must(t, err)
		return string(content)
	})
}

// usable reports whether one of the tokens of the workload cluster that has not expired is in the data of the pool.
func (w *world) usable(t *testing.T) bool {
	t.Helper()
	data := w.dataOf(t)
	for _, token := range w.tokens(t) {
		expires, err := time.Parse(time.RFC3339, token["expiration"])
		if strings.Contains(data, token["token-id"]+"."+token["token-secret"]) && err == nil && expires.After(w.Clock.Now()) {
			return true
		}
	}
	return false
}

func TestPoolData(t *testing.T) {
	cp := bootstrapv1.KubeadmConfigSpec{JoinConfiguration: bootstrapv1.JoinConfiguration{ControlPlane: &bootstrapv1.JoinControlPlane{}}}
	previous := newPool(0)
	previous.Spec.Template.Spec.Bootstrap.DataSecretName = ptr.To("data-of-the-previous-config")
	unversioned := newPool(0)
	unversioned.Spec.Template.Spec.Version = ""
	labeled := newPool(0)
	labeled.Labels[clusterv1.MachineControlPlaneLabel] = ""
	tests := []struct {
		reason  string
		cluster *clusterv1.Cluster
		pool    *clusterv1.MachinePool
		spec    bootstrapv1.KubeadmConfigSpec
		data    bool
		state   string
		err     string
	}{
		{reason: "machines of pools join as workers", cluster: initialized(newCluster()), pool: newPool(0), data: true, state: "True"},
		{reason: "the data of a previous config is not used", cluster: initialized(newCluster()), pool: previous, data: true, state: "True"},
		{reason: "they wait for the control plane", cluster: newCluster(), pool: newPool(0), state: "False Info WaitingForControlPlaneAvailable"},
		{reason: "pools never initialize a control plane", cluster: newCluster(), pool: labeled, spec: clusterSpec(), state: "False Info WaitingForControlPlaneAvailable"},
		{reason: "and never join one", cluster: initialized(newCluster()), pool: labeled, spec: cp, state: "False Warning DataSecretGenerationFailed",
			err: "spec.joinConfiguration.controlPlane is set, but MachinePool p is a worker"},
		{reason: "the version is that of the pool", cluster: initialized(newCluster()), pool: unversioned, state: "False Warning DataSecretGenerationFailed",
			err: "MachinePool p has no spec.template.spec.version"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			w := newPoolWorld(t, tt.cluster, tt.pool, poolConfig(tt.spec))
			_, err := w.reconcile(t, "p")
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
			config := w.config(t, "p")
			if got := states(config)[bootstrapv1.DataSecretAvailableV1Beta1Condition]; got != tt.state {
				t.Errorf("DataSecretAvailable is %q, want %q", got, tt.state)
			}
			if !tt.data {
				if created := w.created(t); len(created) > 0 {
					t.Errorf("created %q", created)
				}
				return
			}
			if !ptr.Deref(config.Status.Initialization.DataSecretCreated, false) || config.Status.DataSecretName != "p" {
				t.Errorf("status = %+v; want the Secret with the config's name", config.Status)
			}
			join := w.document(t, "p").file("/run/kubeadm/kubeadm-join-config.yaml")
			if !strings.Contains(join, "node.cluster.x-k8s.io/uninitialized") || strings.Contains(join, "controlPlane:") || !w.usable(t) {
				t.Errorf("kubeadm's configuration is not that of a worker with a valid token:\n%s", join)
			}
		})
	}
}

func TestPoolsRequireTheGate(t *testing.T) {
	w := newPoolWorld(t, initialized(newCluster()), newPool(0), poolConfig(bootstrapv1.KubeadmConfigSpec{}))
	w.c.pools = false
	w.mustReconcile(t, "p")
	if created := w.created(t); len(created) > 0 || len(w.workload.Requests) > 0 {
		t.Errorf("created %q, requests %q", created, w.workload.Requests)
	}
}

func TestPoolTokens(t *testing.T) {
	ignition := bootstrapv1.KubeadmConfigSpec{Format: bootstrapv1.Ignition}
	tests := []struct {
		reason string
		spec   bootstrapv1.KubeadmConfigSpec
		nodes  int
		later  time.Duration
		// gone is whether the token expired and was deleted.
		gone bool
		// token is a token of a user or of an earlier version.
		token *corev1.Secret
		err   error
		// rotated is whether the data has another token afterwards.
		rotated bool
		again   time.Duration
	}{
		{reason: "a fresh token is kept", nodes: 1, later: time.Minute, again: ttl/2 - time.Minute},
		{reason: "until half of its lifetime is over", nodes: 1, later: ttl / 2, rotated: true, again: ttl / 2},
		{reason: "also in Ignition data", spec: ignition, nodes: 1, later: ttl / 2, rotated: true, again: ttl / 2},
		{reason: "more Nodes than replicas have joined, too", nodes: 2, later: ttl / 2, rotated: true, again: ttl / 2},
		{reason: "while machines are missing, it is renewed", later: ttl / 2, again: ttl / 3},
		{reason: "also after it expired", later: time.Hour, again: ttl / 3},
		{reason: "an expired token of a complete pool is replaced: more machines may come", nodes: 1, later: time.Hour, rotated: true, again: ttl / 2},
		{reason: "also if it was deleted", nodes: 1, later: time.Hour, gone: true, rotated: true, again: ttl / 2},
		{reason: "and if machines are missing: the same token cannot be created again from Ignition data", spec: ignition, later: time.Hour, gone: true, rotated: true, again: ttl / 2},
		{reason: "a token of a user is not touched", spec: withToken("abcdef.0123456789abcdef"), nodes: 1, later: ttl / 2, token: tokenOfUser("of a user")},
		{reason: "a token of an earlier version, which is in the spec, is replaced", spec: withToken("abcdef.0123456789abcdef"), nodes: 1, later: ttl / 2,
			token: tokenOfUser(tokenDescription), rotated: true, again: ttl / 2},
		{reason: "also if it is gone", spec: withToken("abcdef.0123456789abcdef"), nodes: 1, later: time.Hour, rotated: true, again: ttl / 2},
		{reason: "without connection, it is tried later", nodes: 1, later: ttl / 2, err: remote.ErrNotConnected, again: backstop},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			w := newPoolWorld(t, initialized(newCluster()), newPool(tt.nodes), poolConfig(tt.spec))
			if tt.token != nil {
				testenv.Must(t, w.workload.Client.Create(t.Context(), tt.token))
			}
			w.mustReconcile(t, "p")
			before := w.dataOf(t)
			if tt.gone {
				w.cleanTokens(t)
			}
			w.Clock.SetTime(now.Add(tt.later))
			w.workload.Err = tt.err
			if result := w.mustReconcile(t, "p"); result.RequeueAfter != tt.again {
				t.Errorf("again after %s, want %s", result.RequeueAfter, tt.again)
			}
			if changed := w.dataOf(t) != before; changed != tt.rotated {
				t.Fatalf("the data changed: %t, want %t", changed, tt.rotated)
			}
			secret := get(t, w, "p", &corev1.Secret{})
			id := secret.Annotations[tokenAnnotation]
			if (id != "") != tt.rotated {
				t.Fatalf("annotations = %v", secret.Annotations)
			}
			if !tt.rotated {
				return
			}
			token, ok := w.tokens(t)["bootstrap-token-"+id]
			if want := w.Clock.Now().Add(ttl).Format(time.RFC3339); !ok || token["expiration"] != want {
				t.Errorf("token %s = %v, want one that expires %s", id, token, want)
			}
			if !w.usable(t) {
				t.Error("the data has no valid token")
			}
		})
	}
}

// tokenOfUser returns token abcdef, which expires as one that was created now.
func tokenOfUser(description string) *corev1.Secret {
	c := &Controller{tokenTTL: ttl}
	c.Clock = fixed{now}
	secret := c.tokenSecret("abcdef", "0123456789abcdef")
	secret.Data["description"] = []byte(description)
	return secret
}

type fixed struct{ at time.Time }

// Now implements clock.PassiveClock.
func (f fixed) Now() time.Time { return f.at }

// Since implements clock.PassiveClock.
func (f fixed) Since(t time.Time) time.Duration { return f.at.Sub(t) }

// TestPoolTokenChain rotates again and again: each token is another one, and the data always has a valid one.
func TestPoolTokenChain(t *testing.T) {
	w := newPoolWorld(t, initialized(newCluster()), newPool(1), poolConfig(bootstrapv1.KubeadmConfigSpec{}))
	w.mustReconcile(t, "p")
	seen := map[string]bool{w.dataOf(t): true}
	at := now
	for range 5 {
		result := w.mustReconcile(t, "p")
		at = at.Add(result.RequeueAfter)
		w.Clock.SetTime(at)
		w.mustReconcile(t, "p")
		if data := w.dataOf(t); seen[data] || !w.usable(t) {
			t.Fatal("the token is not a new, valid one")
		}
		seen[w.dataOf(t)] = true
	}
	if got := len(w.tokens(t)); got != 6 {
		t.Errorf("there are %d tokens, want one for each of 6 lifetimes", got)
	}
}

// killedAfterEach reconciles the pool of a new world, and kills the process after its first request; then of another one, after its
// second request, and so on. killed is called at once, restarted after two reconciles of a new process with a cache that is up to date.
func killedAfterEach(t *testing.T, start func() *world, killed, restarted func(w *world, stop int)) {
	t.Helper()
	const least = 5 // requests
	for stop := 1; ; stop++ {
		w := start()
		left := stop
		kill := func(r fakeapi.Request, err error) error {
			if r.Cached && r.Kind != "Secret" {
				return err
			}
			if left--; left == 0 {
				return errors.New("killed")
			}
			return err
		}
		w.After, w.workload.After = kill, kill
		_, err := w.reconcile(t, "p")
		w.After, w.workload.After = nil, nil
		if err == nil && left > 0 {
			if stop < least {
				t.Errorf("there are only %d requests", stop)
			}
			return
		}
		killed(w, stop)
		w.Cache = w.NewCache()
		w.startPools()
		for range 2 {
			w.mustReconcile(t, "p")
		}
		restarted(w, stop)
	}
}

// TestPoolRotationIsInterrupted kills the process after every request, with and without a stale cache: machines can join with the data
// at any time, and one more token is enough.
func TestPoolRotationIsInterrupted(t *testing.T) {
	start := func() *world {
		w := newPoolWorld(t, initialized(newCluster()), newPool(1), poolConfig(bootstrapv1.KubeadmConfigSpec{}))
		w.mustReconcile(t, "p")
		w.Clock.SetTime(now.Add(ttl/2 + time.Second))
		return w
	}
	killedAfterEach(t, start, func(w *world, stop int) {
		if !w.usable(t) {
			t.Errorf("killed after request %d: the data has no valid token", stop)
		}
	}, func(w *world, stop int) {
		if tokens := w.tokens(t); len(tokens) != 2 || !w.usable(t) {
			t.Errorf("killed after request %d: there are %d tokens, want 2", stop, len(tokens))
		}
	})
}

// TestPoolRotationWithStaleCache does not see its own rotation: the next one continues the chain, and does not overwrite the data with
// an older token.
func TestPoolRotationWithStaleCache(t *testing.T) {
	w := newPoolWorld(t, initialized(newCluster()), newPool(1), poolConfig(bootstrapv1.KubeadmConfigSpec{}))
	w.mustReconcile(t, "p")
	w.Cache.Freeze(&corev1.SecretList{})
	w.Clock.SetTime(now.Add(ttl / 2))
	for range 3 {
		w.mustReconcile(t, "p")
	}
	if tokens := w.tokens(t); len(tokens) != 2 || !w.usable(t) {
		t.Errorf("there are %d tokens, want 2", len(tokens))
	}
}

// TestPoolDataOfAnother does not overwrite a Secret that belongs to another owner, and creates one that a user deleted.
func TestPoolDataOfAnother(t *testing.T) {
	w := newPoolWorld(t, initialized(newCluster()), newPool(1), poolConfig(bootstrapv1.KubeadmConfigSpec{}))
	w.mustReconcile(t, "p")
	w.Clock.SetTime(now.Add(ttl / 2))
	secret := get(t, w, "p", &corev1.Secret{})
	testenv.Must(t, w.Delete(t.Context(), secret))
	other := &corev1.Secret{ObjectMeta: build.Meta("Secret", "p"), Data: map[string][]byte{"value": []byte("mine")}}
	testenv.Must(t, w.Create(t.Context(), other))
	w.mustReconcile(t, "p")
	if data := w.dataOf(t); data != "mine" {
		t.Errorf("the data is %q", data)
	}
	if got, want := states(w.config(t, "p"))[bootstrapv1.DataSecretAvailableV1Beta1Condition], "False Warning DataSecretGenerationFailed"; got != want {
		t.Errorf("DataSecretAvailable is %q, want %q", got, want)
	}
	testenv.Must(t, w.Delete(t.Context(), other))
	w.mustReconcile(t, "p")
	if !w.usable(t) {
		t.Error("the data is not created again")
	}
	if diff := cmp.Diff("True", states(w.config(t, "p"))[bootstrapv1.DataSecretAvailableV1Beta1Condition]); diff != "" {
		t.Errorf("DataSecretAvailable (-want +got):\n%s", diff)
	}
}

// TestPoolIsGone generates nothing for a pool that does not exist.
func TestPoolIsGone(t *testing.T) {
	w := newPoolWorld(t, initialized(newCluster()), newPool(0), poolConfig(bootstrapv1.KubeadmConfigSpec{}))
	testenv.Must(t, w.Delete(t.Context(), newPool(0)))
	w.mustReconcile(t, "p")
	if err := w.Get(t.Context(), request("p").NamespacedName, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("reading the data: %v", err)
	}
}
