package machinepool

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func TestDeleteNodes(t *testing.T) {
	patient := func(p *clusterv1.MachinePool) {
		p.Spec.Template.Spec.Deletion.NodeDeletionTimeoutSeconds = ptr.To[int32](0)
	}
	down := &remote.NotConnectedError{Cause: errors.New("down")}
	tests := map[string]struct {
		reason  string
		pool    *clusterv1.MachinePool
		cluster *clusterv1.Cluster
		since   time.Duration
		down    error
		fails   bool
		waits   bool
		writes  []string
		left    []corev1.ObjectReference
	}{
		"Own":      {reason: "its own Nodes are deleted, not those that registered under their names", pool: pool(withIDs("a"), withNodes("a", "b", "gone")), writes: []string{"delete Node a"}},
		"Late":     {reason: "a Node joined after the pool was deleted", pool: pool(withIDs("a")), cluster: build.Cluster(object.Initialized), writes: []string{"delete Node a"}},
		"LateDown": {reason: "one may have joined", pool: pool(withIDs("a")), cluster: build.Cluster(object.Initialized), down: down, waits: true},
		"LatePatient": {reason: "a Node that is not known does not hold the pool forever, even without a timeout", pool: pool(withIDs("a"), patient),
			cluster: build.Cluster(object.Initialized), since: time.Minute, down: down},
		"LateConnecting": {reason: "nor while a connection is attempted again and again", pool: pool(withIDs("a")),
			cluster: build.Cluster(object.Initialized), since: time.Hour, down: connecting(t, time.Hour)},
		"Connecting": {reason: "a manager that has just started connects first", pool: pool(withNodes("a")), since: time.Hour, down: connecting(t, time.Second), waits: true, left: refsTo("a")},
		"TooEarly":   {reason: "no Node can join yet: do not connect", pool: pool(withIDs("a")), down: errors.New("connected")},
		"Cluster":    {reason: "the Cluster is being deleted", pool: pool(withNodes("a")), cluster: build.Cluster(object.Deleting), left: refsTo("a")},
		"None":       {reason: "there are none: do not connect", pool: pool(), down: errors.New("connected")},
		"Retry":      {reason: "it is tried again", pool: pool(withNodes("a")), fails: true, waits: true, writes: []string{"delete Node a"}, left: refsTo("a")},
		"Down":       {reason: "also without a connection", pool: pool(withNodes("a")), down: down, waits: true, left: refsTo("a")},
		"GivenUp":    {reason: "but not forever", pool: pool(withNodes("a")), since: time.Minute, down: down, left: refsTo("a")},
		"Patient":    {reason: "unless the template says so", pool: pool(withNodes("a"), patient), since: time.Hour, down: down, waits: true, left: refsTo("a")},
		"Reachable":  {reason: "an attempt is made even if the timeout has passed", pool: pool(withNodes("a")), since: time.Hour, writes: []string{"delete Node a"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := tc.pool
			p.DeletionTimestamp, p.Finalizers = &metav1.Time{Time: now.Add(-tc.since)}, []string{clusterv1.MachinePoolFinalizer}
			w := newWorld(t, p)
			w.node(t, "a")
			w.node(t, "b", func(n *corev1.Node) { n.UID = "another" })
			w.workload.Err = tc.down
			if tc.fails {
				w.workload.After = func(r fakeapi.Request, err error) error {
					if r.Verb == "delete" {
						return errors.New("no")
					}
					return err
				}
			}
			cluster := tc.cluster
			if cluster == nil {
				cluster = build.Cluster()
			}
			result, err := w.step(t, "delete-nodes", &scope{pool: p, cluster: cluster})
			if err != nil || result.Ends() != tc.waits || tc.waits && result.After() != nodeRetry {
				t.Errorf("%s: waits %s for %q, err = %v", tc.reason, result.After(), result.Waiting(), err)
			}
			if diff := cmp.Diff(tc.writes, w.Writes); diff != "" {
				t.Errorf("%s: writes (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.left, p.Status.NodeRefs); diff != "" {
				t.Errorf("%s: references (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// connecting returns the error of a workload cluster that has not been connected to since a manager started.
func connecting(t *testing.T, since time.Duration) error {
	t.Helper()
	cluster := types.NamespacedName{Namespace: "default", Name: "c"}
	s := fakeapi.New(t, fakeapi.Options{Objects: []client.Object{pki.NewSecret(cluster, pki.Kubeconfig, nil, nil)}})
	_, err := remote.New(remote.Options{Secrets: struct {
		client.Reader
		cache.Informers
	}{Reader: s.Client}, Scheme: s.Client.Scheme(), Clock: clocktesting.NewFakeClock(now.Add(-since))}).Get(t.Context(), cluster)
	if !remote.IsConnecting(err) {
		t.Fatal(err)
	}
	return err
}

// TestGivingUpIsAnEvent reconciles a pool whose workload cluster is down: the finalizer is removed, and an event reports the Nodes.
func TestGivingUpIsAnEvent(t *testing.T) {
	p := pool(withNodes("a"), object.Deleting)
	p.Finalizers = []string{clusterv1.MachinePoolFinalizer}
	w := newWorld(t, p, build.Cluster(object.Initialized))
	w.workload.Err = &remote.NotConnectedError{Cause: errors.New("down")}
	w.Clock.SetTime(now.Add(time.Minute))
	declared := w.declared()
	if _, err := declared.Runner(w.Controller.Clients).Reconcile(t.Context(), requestFor(p)); err != nil {
		t.Fatal(err)
	}
	if err := w.Server.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the pool exists: %v, err = %v", p.Finalizers, err)
	}
	events := strings.Join(w.Events(), "\n")
	if !strings.HasPrefix(events, "Warning FailedDeleteNode Gave up deleting 1 Nodes after 10s") {
		t.Errorf("events: %s", events)
	}
}
