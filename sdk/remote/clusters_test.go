package remote

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/pki"
)

func TestConnect(t *testing.T) {
	server := newAPI(t, serving, node("n1", "fake://1", "1"), node("n2", "", "1"))
	w := newWorld(t)
	w.listen()
	w.secret(blue, server.kubeconfig(t))
	if _, err := w.clusters.Get(t.Context(), blue); !IsNotConnected(err) {
		t.Fatalf("the first Get must not wait for the connection, it returned %v", err)
	}
	w.await("connection blue")
	cluster, err := w.clusters.Get(t.Context(), blue)
	if err != nil {
		t.Fatalf("the event means that the cluster is connected: %v", err)
	}
	found := &corev1.NodeList{}
	if err := cluster.List(t.Context(), found, client.MatchingFields{NodeProviderID: "fake://1"}); err != nil {
		t.Fatal(err)
	}
	if len(found.Items) != 1 || found.Items[0].Name != "n1" {
		t.Errorf("the Node of provider ID fake://1 is n1, got %v", found.Items)
	}
	if again, err := w.clusters.Get(t.Context(), blue); err != nil || again != cluster {
		t.Errorf("a second Get must return the same connection, it returned another one, or %v", err)
	}
	for _, r := range server.asked("") {
		if !strings.Contains(r, "/api/v1/nodes") {
			t.Errorf("connecting needs the Nodes and nothing else, but it asked: %s", r)
		}
	}
}

func TestNoSecret(t *testing.T) {
	w := newWorld(t)
	_, err := w.clusters.Get(t.Context(), blue)
	want := "not connected to the workload cluster default/blue: Secret default/blue-kubeconfig does not exist yet"
	if !IsNotConnected(err) || err.Error() != want {
		t.Errorf("a cluster without kubeconfig is not connected: got %v, want %s", err, want)
	}
}

func TestEventsOfNodes(t *testing.T) {
	server := newAPI(t, serving, node("n1", "fake://1", "1"))
	w := newWorld(t)
	w.listen()
	w.secret(blue, server.kubeconfig(t))
	w.connected(blue)
	w.await("n1 of blue")
	server.put(node("n2", "", "2"))
	w.await("n2 of blue")
	server.put(node("n1", "fake://1", "3")) // changes nothing that matters
	server.put(node("n2", "fake://2", "4"))
	select {
	case e := <-w.events:
		if e != "n2 of blue" {
			t.Errorf("got event %q: only the Node whose provider ID changed matters", e)
		}
	case <-time.After(patience):
		t.Error("no event of the Node that changed")
	}
}

func TestHistoryIsTooOld(t *testing.T) {
	server := newAPI(t, serving, node("n1", "fake://1", "1"), node("n2", "fake://2", "2"))
	w := newWorld(t)
	w.listen()
	w.secret(blue, server.kubeconfig(t))
	before := w.connected(blue)
	w.await("n2 of blue")
	server.awaitWatch(t)
	server.expire("n2")
	w.await("n2 of blue")
	if err := before.Get(t.Context(), client.ObjectKey{Name: "n2"}, &corev1.Node{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want that what went in between is not found", err)
	}
	if after, err := w.clusters.Get(t.Context(), blue); err != nil || after != before {
		t.Errorf("a history that is too old is no reason to connect again, got another connection or %v", err)
	}
}

func TestLateListeners(t *testing.T) {
	server := newAPI(t, serving, node("n1", "fake://1", "1"))
	w := newWorld(t)
	w.listen()
	w.secret(blue, server.kubeconfig(t))
	w.connected(blue)
	w.await("n1 of blue")
	w.listen() // as a controller does that starts after others
	for seen := map[string]bool{}; !seen["connection blue"] || !seen["n1 of blue"]; {
		select {
		case e := <-w.events:
			seen[e] = true
		case <-time.After(patience):
			t.Fatalf("a controller that starts later must be notified of the connection and its objects, got %v", seen)
		}
	}
}

func TestAnUnresponsiveClusterDoesNotBlock(t *testing.T) {
	stuck, fine := newAPI(t, hanging), newAPI(t, serving)
	w := newWorld(t)
	w.listen()
	w.secret(blue, stuck.kubeconfig(t))
	w.secret(green, fine.kubeconfig(t))
	if _, err := w.clusters.Get(t.Context(), blue); !IsNotConnected(err) {
		t.Fatalf("got %v, want that it is being connected", err)
	}
	stuck.awaitRequest(t, "/api/v1/nodes")
	w.connected(green)
	if _, err := w.clusters.Get(t.Context(), blue); !IsNotConnected(err) {
		t.Errorf("got %v, want that it is still being connected", err)
	}
}

func TestKubeconfigChanges(t *testing.T) {
	first, second := newAPI(t, serving), newAPI(t, serving)
	w := newWorld(t)
	w.listen()
	secret := w.secret(blue, first.kubeconfig(t))
	before := w.connected(blue)

	secret.Labels["touched"] = "yes"
	if err := w.management.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if same, err := w.clusters.Get(t.Context(), blue); err != nil || same != before {
		t.Errorf("a change of the Secret that leaves the kubeconfig alone must leave the connection alone, got another one or %v", err)
	}

	secret.Data[pki.KubeconfigKey] = second.kubeconfig(t)
	if err := w.management.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if _, err := w.clusters.Get(t.Context(), blue); !IsNotConnected(err) {
		t.Errorf("got %v, want that the new one is being connected", err)
	}
	after := w.connected(blue)
	if diff := cmp.Diff([]string{first.URL, second.URL}, []string{before.Config.Host, after.Config.Host}); diff != "" {
		t.Errorf("hosts -want +got:\n%s", diff)
	}
	if before.ended.Err() == nil {
		t.Error("the previous connection is still open")
	}
}

func TestReconnect(t *testing.T) {
	server := newAPI(t, serving, node("n1", "fake://1", "1"))
	w := newWorld(t)
	w.listen()
	w.secret(blue, server.kubeconfig(t))
	before := w.connected(blue)
	server.put(node("n2", "fake://2", "2"))
	w.await("n2 of blue")

	server.turn(refusing)
	w.lost(blue)
	if diff := cmp.Diff(200*time.Millisecond, w.pauses.next(t)); diff != "" {
		t.Errorf("the first pause is short: -want +got:\n%s", diff)
	}
	w.pauses.end <- time.Now()
	if diff := cmp.Diff(400*time.Millisecond, w.pauses.next(t)); diff != "" {
		t.Errorf("the backoff must increase while the cluster is disconnected: -want +got:\n%s", diff)
	}
	_, err := w.clusters.Get(t.Context(), blue)
	if !IsNotConnected(err) || !strings.Contains(err.Error(), "Unauthorized") {
		t.Errorf("got %v, want an error with the reason", err)
	}

	server.turn(serving)
	w.pauses.end <- time.Now()
	if after := w.connected(blue); after == before {
		t.Error("the connection is the one that was lost")
	}
}

func TestBackoffIsResetAfterAWhile(t *testing.T) {
	server := newAPI(t, serving)
	w := newWorld(t)
	w.listen()
	w.secret(blue, server.kubeconfig(t))
	ms := time.Millisecond
	for _, c := range []struct {
		reason string
		stood  time.Duration
		want   time.Duration
	}{
		{"the first pause is short", 0, 200 * ms},
		{"a connection that fails immediately does not reset the backoff", 14 * time.Second, 400 * ms},
		{"a connection that stood for a while is", 15 * time.Second, 200 * ms},
	} {
		w.pauses.stood.Store(int64(c.stood))
		w.connected(blue).end(errors.New("the cable was cut"))
		if diff := cmp.Diff(c.want, w.pauses.next(t)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", c.reason, diff)
		}
		w.pauses.end <- time.Now()
	}
}

func TestBackoffIsBounded(t *testing.T) {
	server := newAPI(t, refusing)
	w := newWorld(t)
	w.secret(blue, server.kubeconfig(t))
	if _, err := w.clusters.Get(t.Context(), blue); !IsNotConnected(err) {
		t.Fatal(err)
	}
	var got []time.Duration
	for range 9 {
		got = append(got, w.pauses.next(t))
		w.pauses.end <- time.Now()
	}
	ms := time.Millisecond
	want := []time.Duration{200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 6400 * ms, 12800 * ms, 15000 * ms, 15000 * ms}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestConnectionRefused(t *testing.T) {
	server := newAPI(t, serving, node("n1", "fake://1", "1"))
	w := newWorld(t)
	w.listen()
	w.secret(blue, server.kubeconfig(t))
	w.connected(blue)
	server.close()
	w.lost(blue)
}

// A server may keep its connections open and send nothing.
func TestSilentWatches(t *testing.T) {
	server := newAPI(t, serving, node("n1", "fake://1", "1"))
	w := newWorld(t)
	w.listen()
	w.secret(blue, server.kubeconfig(t))
	before := w.connected(blue)
	server.awaitWatch(t)
	heard := w.pauses.heard.Load()
	server.put(node("n2", "fake://2", "2"))
	w.await("n2 of blue")
	if w.pauses.heard.Load() <= heard {
		t.Error("an event must restart the timer")
	}
	(*w.pauses.silence.Load())()
	w.lost(blue)
	if cause := context.Cause(before.ended); cause == nil || !strings.Contains(cause.Error(), "no watch received anything for 2m30s") {
		t.Errorf("got %v, want the reason why the connection ended", cause)
	}
	w.pauses.end <- time.Now()
	w.connected(blue)
}

func TestSecretIsDeleted(t *testing.T) {
	server := newAPI(t, serving)
	w := newWorld(t)
	w.listen()
	secret := w.secret(blue, server.kubeconfig(t))
	before := w.connected(blue)
	if err := w.management.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if _, err := w.clusters.Get(t.Context(), blue); !IsNotConnected(err) {
		t.Errorf("got %v, want not connected: a deleted kubeconfig must not be used", err)
	}
	if before.ended.Err() == nil {
		t.Error("the connection is still open")
	}
	w.lost(blue)
	w.secret(blue, server.kubeconfig(t))
	w.connected(blue)
}

// Get is not called for a cluster that was deleted or moved, which may still be running.
func TestSecretIsDeletedWithoutFurtherCalls(t *testing.T) {
	server := newAPI(t, serving)
	w := newWorld(t)
	w.listen()
	secret := w.secret(blue, server.kubeconfig(t))
	before := w.connected(blue)
	other := pki.NewSecret(blue, pki.ClusterCA, nil, nil)
	w.clusters.secretGone(other)
	w.clusters.secretGone(toolscache.DeletedFinalStateUnknown{Obj: &corev1.ConfigMap{}})
	if before.ended.Err() != nil {
		t.Error("other Secrets have nothing to do with the connection")
	}
	if err := w.management.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	w.clusters.secretGone(toolscache.DeletedFinalStateUnknown{Obj: secret})
	if before.ended.Err() == nil {
		t.Error("the connection is still open")
	}
	w.lost(blue)
}

// TestSecretIsDeletedWhileDisconnected calls the loop itself, to see that it ends.
func TestSecretIsDeletedWhileDisconnected(t *testing.T) {
	server := newAPI(t, refusing)
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	conn := &connection{kubeconfig: server.kubeconfig(t), cancel: cancel}
	w.clusters.clusters[blue] = conn
	go func() { w.pauses.end <- time.Now() }()
	w.clusters.keepConnected(ctx, blue, conn) // there is no Secret
	if len(w.clusters.clusters) != 0 {
		t.Error("a cluster without kubeconfig must be forgotten")
	}
}

func TestAbandonLeavesASuccessorAlone(t *testing.T) {
	w := newWorld(t)
	successor := &connection{cancel: func() {}}
	w.clusters.clusters[blue] = successor
	w.clusters.abandon(blue, &connection{cancel: func() {}})
	if w.clusters.clusters[blue] != successor {
		t.Error("a connection that ends must not end the one that replaced it")
	}
}

func TestStop(t *testing.T) {
	server := newAPI(t, serving)
	w := newWorld(t)
	w.listen()
	w.secret(blue, server.kubeconfig(t))
	cluster := w.connected(blue)
	w.stop()
	if cluster.ended.Err() == nil {
		t.Error("the connection outlives the manager")
	}
	if _, err := w.clusters.Get(t.Context(), blue); !IsNotConnected(err) {
		t.Errorf("got %v, want no connection", err)
	}
}

func TestBeforeStart(t *testing.T) {
	server := newAPI(t, serving)
	w := newWorld(t)
	w.clusters = New(w.clusters.options) // not started
	t.Cleanup(w.clusters.stop)
	w.listen()
	w.secret(blue, server.kubeconfig(t))
	w.connected(blue)
}

func TestBrokenKubeconfigIsNotQuoted(t *testing.T) {
	w := newWorld(t)
	w.secret(blue, []byte("apiVersion: v1\nkind: hunter2\n"))
	if _, err := w.clusters.Get(t.Context(), blue); !IsNotConnected(err) {
		t.Fatal(err)
	}
	w.pauses.next(t) // the attempt failed
	_, err := w.clusters.Get(t.Context(), blue)
	want := "not connected to the workload cluster default/blue: the kubeconfig cannot be parsed"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// A previous leader must not change workload clusters, either.
func TestFormerLeader(t *testing.T) {
	lost := errors.New("no longer the leader")
	server := newAPI(t, serving)
	w := newWorld(t)
	w.clusters.options.CheckLeader = func() error { return lost }
	w.listen()
	w.secret(blue, server.kubeconfig(t))
	cluster := w.connected(blue)
	for method, refused := range map[string]bool{
		http.MethodGet: false, http.MethodHead: false, http.MethodPost: true, http.MethodPut: true, http.MethodPatch: true, http.MethodDelete: true,
	} {
		r, err := http.NewRequestWithContext(t.Context(), method, cluster.Config.Host+"/previous/"+method, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		response, err := cluster.http.Do(r)
		if err == nil {
			_ = response.Body.Close()
		}
		if errors.Is(err, lost) != refused || !refused && err != nil {
			t.Errorf("%s: %v, refused should be %t", method, err, refused)
		}
		if arrived := len(server.asked("/previous/" + method)); (arrived > 0) == refused {
			t.Errorf("%s arrived %d times, refused should be %t", method, arrived, refused)
		}
	}
}
