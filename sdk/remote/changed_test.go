package remote

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/pki"
)

// TestAChangedKubeconfigIsNoticed asks for the cluster with an event only, as controllers do.
func TestAChangedKubeconfigIsNoticed(t *testing.T) {
	cases := map[string]struct {
		reason string
		// kubeconfig is that of the Secret before. Nil: there is no Secret.
		kubeconfig func(t *testing.T) []byte
		// begun waits for the result of the first attempt.
		begun func(w *world)
	}{
		"Connected": {
			"the credentials of a connection that stands are no longer those of the Secret",
			func(t *testing.T) []byte { return newAPI(t, serving).kubeconfig(t) },
			func(w *world) { w.await("connection blue") },
		},
		"Refused": {
			"its owner fixed what was rejected, and does not have to wait for the next attempt or a call of Get",
			func(t *testing.T) []byte {
				return newAPI(t, serving).altered(t, func(_ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) {
					user.Exec = &clientcmdapi.ExecConfig{Command: "login", APIVersion: "client.authentication.k8s.io/v1"}
				})
			},
			func(w *world) { w.await("connection blue") },
		},
		"Broken": {
			"a kubeconfig that the API server does not accept is replaced by one that it does",
			func(t *testing.T) []byte { return newAPI(t, refusing).kubeconfig(t) },
			func(w *world) { w.pauses.next(w.t) },
		},
		"Missing": {
			"a cluster was asked for before it had a kubeconfig",
			nil, func(*world) {},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.listen()
			secrets := w.handler(w.secrets)
			secret := pki.NewSecret(blue, pki.Kubeconfig, map[string][]byte{}, nil)
			if c.kubeconfig != nil {
				secret = w.secret(blue, c.kubeconfig(t))
			}
			if _, err := w.clusters.Get(t.Context(), blue); !IsNotConnected(err) {
				t.Fatalf("got %v, want that the cluster is not connected yet", err)
			}
			c.begun(w)
			w.clusters.mu.Lock()
			before := w.clusters.clusters[blue]
			w.clusters.mu.Unlock()

			server := newAPI(t, serving)
			cached := secret.DeepCopy()
			secret.Data[pki.KubeconfigKey] = server.kubeconfig(t)
			if c.kubeconfig == nil {
				if err := w.management.Create(t.Context(), secret); err != nil {
					t.Fatal(err)
				}
				secrets.OnAdd(secret, false)
			} else {
				if err := w.management.Update(t.Context(), secret); err != nil {
					t.Fatal(err)
				}
				secrets.OnUpdate(cached, secret)
			}
			w.await("connection blue")
			if diff := cmp.Diff(server.URL, w.connected(blue).Config.Host); diff != "" {
				t.Errorf("%s: host -want +got:\n%s", c.reason, diff)
			}
			if before != nil && w.clusters.current(before) != nil {
				t.Errorf("%s: the previous connection is still open", c.reason)
			}
		})
	}
}

func TestOtherChangesLeaveTheConnectionAlone(t *testing.T) {
	server := newAPI(t, serving)
	w := newWorld(t)
	w.listen()
	secrets := w.handler(w.secrets)
	secret := w.secret(blue, server.kubeconfig(t))
	before := w.connected(blue)

	labeled := secret.DeepCopy()
	labeled.Labels["touched"] = "yes"
	ca := pki.NewSecret(blue, pki.ClusterCA, map[string][]byte{pki.KubeconfigKey: []byte("x")}, nil)
	stranger := pki.NewSecret(green, pki.Kubeconfig, map[string][]byte{pki.KubeconfigKey: []byte("x")}, nil)
	for _, c := range []struct {
		reason string
		after  any
	}{
		{"the kubeconfig is the same", labeled},
		{"it is not the Secret of a kubeconfig", ca},
		{"Get was not called for that cluster", stranger},
		{"it is no Secret", &corev1.ConfigMap{ObjectMeta: secret.ObjectMeta}},
	} {
		secrets.OnUpdate(secret, c.after)
		secrets.OnAdd(c.after, true)
		if before.ended.Err() != nil {
			t.Fatalf("%s, and the connection was closed", c.reason)
		}
	}
	w.clusters.notify(types.NamespacedName{Name: "last"})
	w.await("connection last")
	if diff := cmp.Diff(map[string]int{}, w.passed); diff != "" {
		t.Errorf("events that nothing is the reason of -want +got:\n%s", diff)
	}
}

// TestAClusterThatNeverHadAKubeconfigIsForgotten: nothing about it may be remembered, because a Cluster of that name may be created later.
func TestAClusterThatNeverHadAKubeconfigIsForgotten(t *testing.T) {
	w := newWorld(t)
	gone := w.handler(w.gone)
	if _, err := w.clusters.Get(t.Context(), blue); !IsNotConnected(err) || !strings.Contains(err.Error(), "does not exist yet") {
		t.Fatalf("got %v, want that there is no kubeconfig", err)
	}
	gone.OnDelete(&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: green.Namespace, Name: green.Name}})
	if len(w.clusters.away) != 1 {
		t.Errorf("%d clusters are remembered as disconnected, want the existing one", len(w.clusters.away))
	}
	gone.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: blue.Namespace, Name: blue.Name}}})
	if len(w.clusters.away) != 0 {
		t.Errorf("deleted clusters are remembered: %v", w.clusters.away)
	}
}
