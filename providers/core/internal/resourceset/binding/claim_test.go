package binding

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// TestNothingToDo: Clusters and ClusterResourceSets in these states cost no request at all.
func TestNothingToDo(t *testing.T) {
	good := func(change ...func(*addonsv1.ClusterResourceSet)) *addonsv1.ClusterResourceSet {
		s := set("s", once, inConfigMap("m"))
		for _, f := range change {
			f(s)
		}
		return s
	}
	selecting := func(s metav1.LabelSelector) func(*addonsv1.ClusterResourceSet) {
		return func(set *addonsv1.ClusterResourceSet) { set.Spec.ClusterSelector = s }
	}
	for _, tc := range []struct {
		reason  string
		cluster *clusterv1.Cluster
		set     *addonsv1.ClusterResourceSet
	}{
		{"the control plane is not initialized", cluster("c", func(c *clusterv1.Cluster) { c.SetV1Beta1Conditions(nil) }), good()},
		{"the Cluster is paused", cluster("c", object.Paused), good()},
		{"the Cluster is paused by annotation", cluster("c", func(c *clusterv1.Cluster) { c.Annotations = map[string]string{clusterv1.PausedAnnotation: ""} }), good()},
		{"the Cluster has another label", cluster("c", func(c *clusterv1.Cluster) { c.Labels["cni"] = "theirs" }), good()},
		{"the selector is empty", cluster("c"), good(selecting(metav1.LabelSelector{}))},
		{"the selector is invalid", cluster("c"), good(selecting(metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}))},
		{"the set is in another namespace", cluster("c"), good(func(s *addonsv1.ClusterResourceSet) { s.Namespace = "other" })},
		{"the set has no finalizer yet", cluster("c"), good(func(s *addonsv1.ClusterResourceSet) { s.Finalizers = nil })},
		{"the set is paused", cluster("c"), good(func(s *addonsv1.ClusterResourceSet) {
			s.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
		})},
		{"the set is being deleted", cluster("c"), deleting(good())},
		{"the ConfigMap is missing", cluster("c"), good(func(s *addonsv1.ClusterResourceSet) { s.Spec.Resources[0].Name = "missing" })},
		{"the ConfigMap is in another namespace", cluster("c"), good(func(s *addonsv1.ClusterResourceSet) { s.Spec.Resources[0].Name = "elsewhere" })},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			elsewhere := configMap("elsewhere", yaml("x"))
			elsewhere.Namespace = "other"
			w := newWorld(t, tc.cluster, tc.set, configMap("m", yaml("x")), elsewhere)
			if result := w.run("c"); result != (ctrl.Result{}) {
				t.Errorf("result = %+v", result)
			}
			if len(w.Writes)+len(w.LiveReads)+len(w.workloads["c"].Requests) > 0 {
				t.Errorf("writes %v, reads %v, requests %v", w.Writes, w.LiveReads, w.workloads["c"].Requests)
			}
		})
	}
}

// TestWatchFilter: with --watch-filter, both Cluster and ClusterResourceSet need its label.
func TestWatchFilter(t *testing.T) {
	for _, tc := range []struct {
		reason       string
		filter       watch.Filter
		cluster, set string
		want         []string
	}{
		{reason: "there is no filter", want: []string{"s ConfigMap/m=true"}},
		{reason: "there is no filter, and both have a label", cluster: "a", set: "b", want: []string{"s ConfigMap/m=true"}},
		{reason: "both have its label", filter: "a", cluster: "a", set: "a", want: []string{"s ConfigMap/m=true"}},
		{reason: "the Cluster has no label", filter: "a", set: "a"},
		{reason: "the Cluster has the label of another manager", filter: "a", cluster: "b", set: "a"},
		{reason: "the ClusterResourceSet has no label", filter: "a", cluster: "a"},
		{reason: "the ClusterResourceSet has the label of another manager", filter: "a", cluster: "a", set: "b"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			labeled := func(obj client.Object, value string) {
				labels := map[string]string{"cni": "ours"}
				if value != "" {
					labels[clusterv1.WatchLabel] = value
				}
				obj.SetLabels(labels)
			}
			c, s := cluster("c"), set("s", once, inConfigMap("m"))
			labeled(c, tc.cluster)
			labeled(s, tc.set)
			w := newWorld(t, c, s, configMap("m", yaml("x")))
			w.filter = tc.filter
			w.restart()
			w.run("c")
			if diff := cmp.Diff(tc.want, w.state("c")); diff != "" {
				t.Errorf("binding (-want +got):\n%s", diff)
			}
			if tc.want == nil && len(w.Writes)+len(w.LiveReads)+len(w.workloads["c"].Requests) > 0 {
				t.Errorf("writes %v, reads %v, requests %v", w.Writes, w.LiveReads, w.workloads["c"].Requests)
			}
		})
	}
}

// TestWaiting covers workload clusters that are not ready.
func TestWaiting(t *testing.T) {
	away := func(since time.Duration, cause error) error {
		return &remote.NotConnectedError{Since: object.Now().Add(-since), Cause: cause}
	}
	for _, tc := range []struct {
		reason      string
		connection  error
		noService   bool
		fails       error
		after       time.Duration
		unreachable string
	}{
		{reason: "connecting", connection: away(0, errors.New("connecting")), after: awayDelay},
		{reason: "not connected for a short time", connection: away(20*time.Second, errors.New("refused")), after: 10 * time.Second},
		{reason: "not connected for a long time", connection: away(time.Minute, errors.New("refused 127.0.0.1:3452")), unreachable: "there is no connection to its API server"},
		{reason: "the kubeconfig is rejected", connection: away(0, &remote.RejectedError{What: "a program", Allow: "exec"}),
			unreachable: "not connected to the workload cluster /: rejected: a program (only allowed with --workload-cluster-allow=exec)"},
		{reason: "the API server is starting", noService: true, after: serviceRetry},
		{reason: "connected, but no response", fails: context.DeadlineExceeded, after: silentRetry,
			unreachable: "reading Service kubernetes: the API server of the workload cluster did not respond"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, set("s", once, inConfigMap("m")), configMap("m", yaml("x")))
			w.workloads["c"].Err = tc.connection
			if tc.noService {
				testenv.Must(t, w.workloads["c"].Client.Delete(t.Context(), service()))
			}
			w.workloads["c"].Before = func(fakeapi.Request) error { return tc.fails }
			result := w.run("c")
			last, _ := w.ledger.Of(client.ObjectKey{Namespace: "default", Name: "c"}, "s")
			if result.RequeueAfter != tc.after || last.Unreachable != tc.unreachable || len(w.Writes) > 0 {
				t.Errorf("after %s, %q, writes %v; want %s, %q", result.RequeueAfter, last.Unreachable, w.Writes, tc.after, tc.unreachable)
			}
		})
	}
}

// TestDeletedSet: a ClusterResourceSet whose deletion the cache does not have gets no record.
func TestDeletedSet(t *testing.T) {
	for _, tc := range []struct {
		reason string
		change func(w *world, s *addonsv1.ClusterResourceSet)
	}{
		{"being deleted", func(w *world, s *addonsv1.ClusterResourceSet) { testenv.Must(w.t, w.Server.Delete(w.t.Context(), s)) }},
		{"deleted", func(w *world, s *addonsv1.ClusterResourceSet) {
			s.Finalizers = nil
			testenv.Must(w.t, w.Server.Update(w.t.Context(), s), w.Server.Delete(w.t.Context(), s))
		}},
		{"created again", func(w *world, s *addonsv1.ClusterResourceSet) {
			s.Finalizers = nil
			testenv.Must(w.t, w.Server.Update(w.t.Context(), s), w.Server.Delete(w.t.Context(), s))
			again := set("old", once, inConfigMap("m"))
			again.UID = "another"
			testenv.Must(w.t, w.Server.Create(w.t.Context(), again))
		}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, set("old", once, inConfigMap("m")), set("s", once, inConfigMap("n")), configMap("m", yaml("x")), configMap("n", yaml("y")))
			w.Cache.Freeze(&addonsv1.ClusterResourceSetList{})
			old := set("old", once)
			testenv.Must(t, w.Server.Get(t.Context(), client.ObjectKeyFromObject(old), old))
			tc.change(w, old)
			w.run("c")
			if diff := cmp.Diff([]string{"s ConfigMap/n=true"}, w.state("c")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if owners := w.binding("c").OwnerReferences; len(owners) != 1 || owners[0].Name != "s" {
				t.Errorf("owners = %v", owners)
			}
		})
	}
}

// TestConcurrentDeletion: an entry that is removed while manifests are applied is not written again, and others are not lost.
func TestConcurrentDeletion(t *testing.T) {
	w := newWorld(t, set("a", once, inConfigMap("m")), set("b", once, inConfigMap("n")), configMap("m", yaml("x")), configMap("n", yaml("y")))
	w.workloads["c"].Before = func(r fakeapi.Request) error {
		if r.Name == "y" {
			b := w.binding("c")
			Remove(b, set("a", once))
			testenv.Must(t, w.Server.Update(t.Context(), b))
		}
		return nil
	}
	w.run("c")
	if diff := cmp.Diff([]string{"b ConfigMap/n=true"}, w.state("c")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestLegacyBinding completes a binding of an older version; what it records is not applied again.
func TestLegacyBinding(t *testing.T) {
	s := set("s", once, inConfigMap("m"))
	legacy := &addonsv1.ClusterResourceSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c", UID: "legacy", OwnerReferences: []metav1.OwnerReference{
			ownership.Reference(cluster("c"), clusterv1.GroupVersion.WithKind("Cluster"), false),
			{APIVersion: "addons.cluster.x-k8s.io/v1alpha4", Kind: "ClusterResourceSet", Name: "s", UID: "before-restore"},
		}},
		Spec: addonsv1.ClusterResourceSetBindingSpec{Bindings: []addonsv1.ResourceSetBinding{
			{ClusterResourceSetName: "s", Resources: []addonsv1.ResourceBinding{{ResourceRef: inConfigMap("m"), Hash: "sha256:other", Applied: ptr.To(true)}}},
		}},
	}
	w := newWorld(t, s, legacy, configMap("m", yaml("x")))
	w.run("c")
	b := w.binding("c")
	if diff := cmp.Diff([]metav1.OwnerReference{Owner(s)}, b.OwnerReferences); diff != "" || b.Spec.ClusterName != "c" {
		t.Errorf("clusterName %q, owners -want +got:\n%s", b.Spec.ClusterName, diff)
	}
	if diff := cmp.Diff([]string{"patch ClusterResourceSetBinding c"}, w.Writes); diff != "" {
		t.Errorf("writes, -want +got:\n%s", diff)
	}
}

// TestUnselected keeps what is recorded of a Cluster whose label was removed: when it is selected again, nothing is applied again.
func TestUnselected(t *testing.T) {
	w := newWorld(t, set("s", once, inConfigMap("m")), configMap("m", yaml("x")))
	w.run("c")
	for _, labels := range []map[string]string{nil, {"cni": "ours"}} {
		c := cluster("c")
		testenv.Must(t, w.Server.Get(t.Context(), client.ObjectKeyFromObject(c), c))
		c.Labels = labels
		testenv.Must(t, w.Server.Update(t.Context(), c))
		w.quiet()
		w.run("c")
		if len(w.Writes)+len(w.workloads["c"].Requests) > 0 {
			t.Errorf("labels %v: writes %v", labels, w.Writes)
		}
	}
	if diff := cmp.Diff([]string{"s ConfigMap/m=true"}, w.state("c")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRelease(t *testing.T) {
	bound := func() *addonsv1.ClusterResourceSetBinding {
		return &addonsv1.ClusterResourceSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c", UID: "b"}}
	}
	for _, tc := range []struct {
		reason string
		stale  bool
		want   []string
	}{
		{reason: "the Cluster is being deleted", want: []string{"delete ClusterResourceSetBinding c"}},
		{reason: "another Cluster has its name", stale: true},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, deleting(cluster("c")), bound())
			if tc.stale {
				w.Live.Show(cluster("c"))
			}
			w.run("c")
			if diff := cmp.Diff(tc.want, w.Writes); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestInterrupted stops the process after each request, with and without the response, with a cache that lags behind or not. The result
// is the same.
func TestInterrupted(t *testing.T) {
	objects := func() []client.Object {
		return []client.Object{
			set("a", once, inConfigMap("m"), inSecret("b")), set("z", always, inConfigMap("m")),
			configMap("m", yaml("x"), yaml("y")), secret("b", addonsv1.ClusterResourceSetSecretType, yaml("v")),
		}
	}
	want := []string{"a ConfigMap/m=true", "a Secret/b=true", "z ConfigMap/m=true"}
	for _, stale := range []bool{false, true} {
		for at := 1; at < 40; at++ {
			w := newWorld(t, objects()...)
			if stale {
				w.Cache.Freeze(&addonsv1.ClusterResourceSetBindingList{})
			}
			count, killed := 0, false
			kill := func(_ fakeapi.Request, err error) error {
				if count++; count >= at {
					killed = true
					return errors.New("killed")
				}
				return err
			}
			w.After, w.workloads["c"].After = kill, kill
			_, _ = w.reconcile("c")
			w.After, w.workloads["c"].After = nil, nil
			w.Cache.Thaw()
			w.restart()
			for range 3 {
				if _, err := w.reconcile("c"); err != nil {
					t.Fatalf("stopped after %d: %v", at, err)
				}
				w.Clock.Step(silentRetry)
			}
			if diff := cmp.Diff(want, w.state("c")); diff != "" {
				t.Fatalf("stopped after %d, stale %t, -want +got:\n%s", at, stale, diff)
			}
			if !killed {
				break
			}
			if at == 39 && !stale { // A stale cache is polled.
				t.Error("the reconcile does not end")
			}
		}
	}
}

// TestTwoLeaders: a process with an old cache, whose leadership has ended, does not lose what the other has recorded.
func TestTwoLeaders(t *testing.T) {
	w := newWorld(t, set("a", once, inConfigMap("m")), set("b", once, inConfigMap("n")), configMap("m", yaml("x")), configMap("n", yaml("y")))
	w.Cache.Freeze(&addonsv1.ClusterResourceSetBindingList{})
	original := w.reconcile
	w.Cache = w.NewCache()
	w.restart()
	w.run("c")
	want := w.binding("c")
	for range 3 {
		if _, err := original("c"); err != nil && !strings.Contains(fmt.Sprint(err), "already exists") {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, w.binding("c")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, name := range []string{"x", "y"} {
		testenv.Must(t, w.workloads["c"].Client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &corev1.ConfigMap{}))
	}
}
