package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
)

func TestTokenIsRenewed(t *testing.T) {
	tests := []struct {
		reason string
		later  time.Duration
		joined bool
		gone   bool
		err    error
		// expires is when the token expires afterwards, counted from its creation.
		expires  time.Duration
		again    time.Duration
		requests bool
	}{
		{reason: "a fresh token is good", later: time.Minute, expires: ttl, again: ttl / 3, requests: true},
		{reason: "with five sixths of its life left it is still", later: ttl / 6, expires: ttl, again: ttl / 3, requests: true},
		{reason: "with less it is prolonged", later: ttl/6 + time.Second, expires: ttl + ttl/6 + time.Second, again: ttl / 3, requests: true},
		{reason: "also when it expired and is still there", later: time.Hour, expires: ttl + time.Hour, again: ttl / 3, requests: true},
		{reason: "a machine that joined needs none", later: time.Hour, joined: true, expires: ttl},
		{reason: "one that expired and was cleaned up is recreated", later: time.Hour, gone: true, expires: ttl + time.Hour, again: ttl / 3, requests: true},
		{reason: "unless the machine joined", later: time.Hour, gone: true, joined: true},
		{reason: "without connection it is tried later", later: time.Hour, err: remote.ErrNotConnected, expires: ttl, again: backstop},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			machine := newMachine("w", false)
			w := newWorld(t, testCA(t), initialized(newCluster()), machine, newConfig("w", bootstrapv1.KubeadmConfigSpec{}))
			w.mustReconcile(t, "w")
			if tt.joined {
				live := get(t, w, "w", &clusterv1.Machine{})
				live.Status.NodeRef = clusterv1.MachineNodeReference{Name: "w"}
				testenv.Must(t, w.Status().Update(t.Context(), live))
			}
			token := &corev1.Secret{}
			testenv.Must(t, w.workload.Client.Get(t.Context(), tokenKey(tokenID(uidOf("w"))), token))
			secret := string(token.Data["token-secret"])
			if tt.gone {
				testenv.Must(t, w.workload.Client.Delete(t.Context(), token))
			}
			w.workload.Err, w.workload.Requests = tt.err, nil
			w.Clock.SetTime(now.Add(tt.later))
			result := w.mustReconcile(t, "w")
			if result.RequeueAfter != tt.again || (len(w.workload.Requests) > 0) != tt.requests {
				t.Errorf("again after %v, want %v; requests %q, want any: %v", result.RequeueAfter, tt.again, w.workload.Requests, tt.requests)
			}
			token = &corev1.Secret{}
			err := w.workload.Client.Get(t.Context(), tokenKey(tokenID(uidOf("w"))), token)
			if tt.expires == 0 {
				if !apierrors.IsNotFound(err) {
					t.Errorf("a token that is not needed exists, error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := now.Add(tt.expires).Format(time.RFC3339)
			if got := string(token.Data["expiration"]); got != want || string(token.Data["token-secret"]) != secret {
				t.Errorf("expires %s, want %s, with the same secret", got, want)
			}
		})
	}
}

// tokens returns the tokens of the workload cluster, by name.
func (w *world) tokens(t *testing.T) map[string]map[string]string {
	t.Helper()
	list := &corev1.SecretList{}
	testenv.Must(t, w.workload.Client.List(t.Context(), list))
	out := map[string]map[string]string{}
	for _, s := range list.Items {
		out[s.Name] = map[string]string{}
		for key, value := range s.Data {
			out[s.Name][key] = string(value)
		}
	}
	return out
}

func (w *world) cleanTokens(t *testing.T) {
	t.Helper()
	testenv.Must(t, w.workload.Client.DeleteAllOf(t.Context(), &corev1.Secret{}, client.InNamespace(metav1.NamespaceSystem)))
}

// TestManagersDownLongerThanTheTokenLifetime: the data that a machine has, or is about to get, works again.
func TestManagersDownLongerThanTheTokenLifetime(t *testing.T) {
	tests := []struct {
		reason string
		// meanwhile is what happened while the managers were down, and what their caches miss.
		meanwhile func(t *testing.T, w *world)
		spec      bootstrapv1.KubeadmConfigSpec
		again     bool
	}{
		{reason: "the machine has not joined", again: true},
		{
			reason: "it has joined, and the cache is stale",
			meanwhile: func(t *testing.T, w *world) {
				w.Cache.FreezeObjects(newMachine("w", true))
				machine := get(t, w, "w", &clusterv1.Machine{})
				machine.Status.NodeRef = clusterv1.MachineNodeReference{Name: "w"}
				testenv.Must(t, w.Status().Update(t.Context(), machine))
			},
		},
		{
			reason: "its Machine is deleted, and the cache is stale",
			meanwhile: func(t *testing.T, w *world) {
				w.Cache.FreezeObjects(newMachine("w", true))
				testenv.Must(t, w.Delete(t.Context(), newMachine("w", false)))
			},
		},
		{
			reason: "the data is deleted: its token is unknown",
			meanwhile: func(t *testing.T, w *world) {
				testenv.Must(t, w.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "w"}}))
			},
		},
		{
			reason: "the data has another owner now",
			meanwhile: func(t *testing.T, w *world) {
				secret := get(t, w, "w", &corev1.Secret{})
				secret.OwnerReferences = nil
				testenv.Must(t, w.Update(t.Context(), secret))
			},
		},
		{
			reason: "a user's token is not recreated",
			spec: bootstrapv1.KubeadmConfigSpec{JoinConfiguration: bootstrapv1.JoinConfiguration{Discovery: bootstrapv1.Discovery{
				BootstrapToken: bootstrapv1.BootstrapTokenDiscovery{Token: "abcdef.0123456789abcdef"}}}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			w := newWorld(t, testCA(t), initialized(newCluster()), newMachine("w", false), newConfig("w", tt.spec))
			w.mustReconcile(t, "w")
			before, data := w.tokens(t), get(t, w, "w", &corev1.Secret{})
			w.cleanTokens(t)
			w.Clock.SetTime(now.Add(time.Hour))
			if tt.meanwhile != nil {
				tt.meanwhile(t, w)
			}
			w.restart()
			result := w.mustReconcile(t, "w")
			want := map[string]map[string]string{}
			if tt.again {
				want = before
				for name := range want {
					want[name]["expiration"] = now.Add(time.Hour + ttl).Format(time.RFC3339)
				}
			}
			if diff := cmp.Diff(want, w.tokens(t)); diff != "" {
				t.Errorf("tokens, -want +got:\n%s", diff)
			}
			if (result.RequeueAfter == ttl/3) != tt.again {
				t.Errorf("again after %s", result.RequeueAfter)
			}
			if !tt.again {
				return
			}
			if diff := cmp.Diff(data, get(t, w, "w", &corev1.Secret{})); diff != "" {
				t.Errorf("the infrastructure may have read the data, so it must not change, -want +got:\n%s", diff)
			}
		})
	}
}

// TestTokensAreRecreatedOnceConnected: after a start there is no connection yet, and kubeadm looks for its token for five
// minutes only.
func TestTokensAreRecreatedOnceConnected(t *testing.T) {
	spec := bootstrapv1.KubeadmConfigSpec{}
	w := newWorld(t, testCA(t), initialized(newCluster()), newMachine("w", false), newConfig("w", spec),
		newMachine("joined", false), newConfig("joined", spec), newMachine("new", false), newConfig("new", spec), newConfig("orphan", spec))
	for _, name := range []string{"w", "joined"} {
		w.mustReconcile(t, name)
	}
	joined := get(t, w, "joined", &clusterv1.Machine{})
	joined.Status.NodeRef = clusterv1.MachineNodeReference{Name: "joined"}
	testenv.Must(t, w.Status().Update(t.Context(), joined))
	w.cleanTokens(t)
	w.Clock.SetTime(now.Add(time.Hour))
	w.restart()
	w.workload.Err = remote.ErrNotConnected
	if result := w.mustReconcile(t, "w"); result.RequeueAfter != backstop || backstop > time.Minute {
		t.Errorf("without connection it is tried again after %s", result.RequeueAfter)
	}
	w.workload.Err = nil
	var woken []string
	for _, r := range w.c.waitingFor(t.Context(), types.NamespacedName{Namespace: "default", Name: newCluster().Name}) {
		woken = append(woken, r.Name)
	}
	if diff := cmp.Diff([]string{"new", "orphan", "w"}, woken); diff != "" {
		t.Errorf("the connection triggers (-want +got):\n%s", diff)
	}
	w.mustReconcile(t, "w")
	if tokens := w.tokens(t); len(tokens) != 1 {
		t.Errorf("tokens %v, want that of the machine that has not joined", tokens)
	}
}

func TestInitDataNeedsNoToken(t *testing.T) {
	w := newWorld(t, newCluster(), newMachine("m", true), newConfig("m", clusterSpec()))
	w.mustReconcile(t, "m")
	w.becomesInitialized(t)
	w.mustReconcile(t, "m")
	if tokens := w.tokens(t); len(tokens) != 0 {
		t.Errorf("tokens %v for the machine that initialized the control plane", tokens)
	}
}

// TestTokenBeforeData: the managers stopped between the creation of the token and of its data.
func TestTokenBeforeData(t *testing.T) {
	for reason, later := range map[string]time.Duration{"it expires soon": ttl - time.Second, "it expired": time.Hour} {
		w := newWorld(t, testCA(t), initialized(newCluster()), newMachine("w", false), newConfig("w", bootstrapv1.KubeadmConfigSpec{}))
		w.Before = func(r fakeapi.Request) error {
			if r.IsWrite() {
				return errors.New("the process died here")
			}
			return nil
		}
		if _, err := w.reconcile(t, "w"); err == nil {
			t.Fatal("the data cannot be stored")
		}
		w.Before = nil
		w.Clock.SetTime(now.Add(later))
		w.restart()
		w.mustReconcile(t, "w")
		want := now.Add(later + ttl).Format(time.RFC3339)
		for name, token := range w.tokens(t) {
			if token["expiration"] != want {
				t.Errorf("%s: %s expires %s, want %s: the lifetime starts when the data exists", reason, name, token["expiration"], want)
			}
		}
	}
}

// TestAnInvalidTokenIsReplaced: what is found in the workload cluster in a token's place goes into data that
// is never recreated.
func TestAnInvalidTokenIsReplaced(t *testing.T) {
	valid := "0123456789abcdef"
	for reason, tt := range map[string]struct {
		found corev1.Secret
		kept  bool
	}{
		"created before an interruption": {found: corev1.Secret{Data: map[string][]byte{"token-secret": []byte(valid)}}, kept: true},
		"no data":                        {},
		"no secret":                      {found: corev1.Secret{Data: map[string][]byte{"token-id": []byte("x")}}},
		"one that is too short":          {found: corev1.Secret{Data: map[string][]byte{"token-secret": []byte(valid[1:])}}},
		"one with more text":             {found: corev1.Secret{Data: map[string][]byte{"token-secret": []byte(valid + "\nkind: X")}}},
		"no token at all":                {found: corev1.Secret{Type: corev1.SecretTypeOpaque}},
	} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t, testCA(t), initialized(newCluster()), newMachine("w", false), newConfig("w", bootstrapv1.KubeadmConfigSpec{}))
			key := tokenKey(tokenID(uidOf("w")))
			tt.found.Namespace, tt.found.Name = key.Namespace, key.Name
			testenv.Must(t, w.workload.Client.Create(t.Context(), &tt.found))
			w.mustReconcile(t, "w")
			token := &corev1.Secret{}
			testenv.Must(t, w.workload.Client.Get(t.Context(), key, token))
			secret := string(token.Data["token-secret"])
			if !regexp.MustCompile(`^[a-z0-9]{16}$`).MatchString(secret) || (secret == valid) != tt.kept {
				t.Errorf("the token's secret is %q; it must be kept: %t", secret, tt.kept)
			}
			data := string(get(t, w, "w", &corev1.Secret{}).Data["value"])
			if want := "token: " + tokenID(uidOf("w")) + "." + secret + "\n"; !strings.Contains(data, want) {
				t.Errorf("the data lacks %q", want)
			}
		})
	}
}

// TestTokensOfEarlierVersions: they are in the spec, and differ from those of users by their description.
func TestTokensOfEarlierVersions(t *testing.T) {
	for reason, tt := range map[string]struct {
		description string
		prolonged   bool
	}{
		"created by a manager": {description: "token generated by cluster-api-bootstrap-provider-kubeadm", prolonged: true},
		"created by a user":    {description: "mine"},
	} {
		config := newConfig("w", bootstrapv1.KubeadmConfigSpec{JoinConfiguration: bootstrapv1.JoinConfiguration{Discovery: bootstrapv1.Discovery{
			BootstrapToken: bootstrapv1.BootstrapTokenDiscovery{Token: "abcdef.0123456789abcdef"}}}})
		w := newWorld(t, testCA(t), initialized(newCluster()), newMachine("w", false), config)
		expiration := now.Add(time.Minute).Format(time.RFC3339)
		err := w.workload.Client.Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-abcdef"},
			Data:       map[string][]byte{"description": []byte(tt.description), "expiration": []byte(expiration)},
		})
		if err != nil {
			t.Fatal(err)
		}
		w.mustReconcile(t, "w") // generates the data
		w.mustReconcile(t, "w")
		got := w.tokens(t)["bootstrap-token-abcdef"]["expiration"]
		if (got != expiration) != tt.prolonged {
			t.Errorf("%s: expires %s, want it prolonged: %t", reason, got, tt.prolonged)
		}
	}
}

func TestTokenID(t *testing.T) {
	format := regexp.MustCompile(`^[a-z0-9]{6}$`)
	seen := map[string]bool{}
	for i := range 1000 {
		id := tokenID(types.UID(fmt.Sprintf("uid-%d", i)))
		if !format.MatchString(id) {
			t.Fatalf("%q is not the ID of a token", id)
		}
		seen[id] = true
	}
	if again := tokenID("uid-1"); len(seen) != 1000 || !seen[again] {
		t.Errorf("%d IDs of 1000 UIDs, want different, stable ones", len(seen))
	}
}
