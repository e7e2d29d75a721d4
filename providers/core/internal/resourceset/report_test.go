package resourceset

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/binding"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/outcome"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// failing returns the Outcome of a Cluster to which ConfigMap m could not be applied.
func failing(problems ...string) outcome.Outcome {
	return outcome.Outcome{Failures: map[addonsv1.ResourceRef]outcome.Failure{inConfigMap("m"): {Problems: problems}}}
}

func TestReport(t *testing.T) {
	const other corev1.SecretType = "Opaque"
	was := func(c clusterv1.Condition) func(*addonsv1.ClusterResourceSet) {
		return func(s *addonsv1.ClusterResourceSet) { s.SetV1Beta1Conditions(clusterv1.Conditions{c}) }
	}
	applied := was(condition.True(addonsv1.ResourcesAppliedV1Beta1Condition))
	failed := was(condition.False(addonsv1.ResourcesAppliedV1Beta1Condition, "Warning", "ApplyFailed", "before"))
	many := []client.Object{set(), configMap("m")}
	outcomes := map[string]outcome.Outcome{}
	for i := range 20 {
		name := fmt.Sprintf("c%02d", i)
		many = append(many, cluster(name), bound(name, i >= 5, "s"))
		outcomes[name] = failing("x")
	}
	for _, tc := range []struct {
		reason   string
		objects  []client.Object
		outcomes map[string]outcome.Outcome
		want     string
		err      string
	}{
		{reason: "no Cluster", objects: []client.Object{set(), configMap("m")}},
		{reason: "no Cluster is left", objects: []client.Object{set(failed), configMap("m")}, want: "True"},
		{reason: "applied", objects: []client.Object{set(), configMap("m"), cluster("c"), bound("c", true, "s")}, want: "True"},
		{reason: "not applied yet", objects: []client.Object{set(), configMap("m"), cluster("c")}},
		{reason: "a new Cluster does not make the condition flap", objects: []client.Object{set(applied), configMap("m"), cluster("c")}, want: "True"},
		{reason: "Clusters that are not ready, paused or not selected do not count", want: "True", objects: []client.Object{
			set(), configMap("m"), cluster("c"), bound("c", true, "s"), cluster("p", object.Paused), bound("p", false, "s"),
			cluster("q", func(c *clusterv1.Cluster) { c.Annotations = map[string]string{clusterv1.PausedAnnotation: ""} }), bound("q", false, "s"),
			cluster("u", func(c *clusterv1.Cluster) { c.Labels = nil }), bound("u", false, "s"), cluster("i", func(c *clusterv1.Cluster) { c.SetV1Beta1Conditions(nil) }),
		}},
		{reason: "failed", objects: []client.Object{set(), configMap("m"), cluster("c"), bound("c", false, "s"), cluster("d"), bound("d", true, "s")},
			outcomes: map[string]outcome.Outcome{"c": failing("one", "two")}, want: "False Warning ApplyFailed cannot apply to 1 Cluster: c: ConfigMap m, one, two"},
		{reason: "many failed", objects: many, outcomes: outcomes,
			want: "False Warning ApplyFailed cannot apply to 5 Clusters: c00: ConfigMap m, x, c01: ConfigMap m, x, c02: ConfigMap m, x, and 2 more"},
		{reason: "the problem is long", objects: []client.Object{set(), configMap("m"), cluster("c"), bound("c", false, "s")},
			outcomes: map[string]outcome.Outcome{"c": failing(strings.Repeat("x", 1000))},
			want:     "False Warning ApplyFailed cannot apply to 1 Cluster: c: ConfigMap m, " + strings.Repeat("x", 484) + "..."},
		{reason: "after a restart, the reason is unknown until it failed again", want: "False Warning ApplyFailed before",
			objects: []client.Object{set(failed), configMap("m"), cluster("c"), bound("c", false, "s")}},
		{reason: "an unreachable Cluster", objects: []client.Object{set(applied), configMap("m"), cluster("c"), cluster("d"), bound("d", true, "s")},
			outcomes: map[string]outcome.Outcome{"c": {Unreachable: "no connection"}},
			want:     "False Error RemoteClusterClientFailed cannot connect to 1 Cluster: c: no connection"},
		{reason: "an unreachable Cluster to which all was applied before is no problem", want: "True",
			objects:  []client.Object{set(), configMap("m"), cluster("c"), bound("c", true, "s")},
			outcomes: map[string]outcome.Outcome{"c": {Unreachable: "no connection"}}},
		{reason: "missing", objects: []client.Object{set(withResources(inConfigMap("gone"), inSecret("gone"), inConfigMap("m"))), configMap("m"), cluster("c"), bound("c", true, "s")},
			want: "False Warning RetrievingResourceFailed ConfigMap gone does not exist, Secret gone does not exist"},
		{reason: "a Secret of another type, and everything else", want: "False Warning WrongSecretType Secret other must have type addons.cluster.x-k8s.io/resource-set: " +
			"delete it and create it with this type; ConfigMap gone does not exist; cannot connect to 1 Cluster: d: no connection; cannot apply to 1 Cluster: c: ConfigMap m, x",
			err: "terminal error: Secret other must have type addons.cluster.x-k8s.io/resource-set: delete it and create it with this type",
			objects: []client.Object{
				set(withResources(inSecret("other"), inConfigMap("gone"), inConfigMap("m"))), secret("other", other), configMap("m"), cluster("c"), bound("c", false, "s"), cluster("d"),
			},
			outcomes: map[string]outcome.Outcome{"c": failing("x"), "d": {Unreachable: "no connection"}}},
		{reason: "the selector is invalid", objects: []client.Object{set(func(s *addonsv1.ClusterResourceSet) {
			s.Spec.ClusterSelector = metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}
		}), configMap("m")}, want: "False Warning ClusterMatchFailed spec.clusterSelector is invalid: ", err: "terminal error: spec.clusterSelector is invalid: "},
		{reason: "the selector is empty", objects: []client.Object{set(func(s *addonsv1.ClusterResourceSet) { s.Spec.ClusterSelector = metav1.LabelSelector{} }), configMap("m"), cluster("c")},
			want: "False Warning ClusterMatchFailed spec.clusterSelector must not be empty", err: "terminal error: spec.clusterSelector must not be empty"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, tc.objects...)
			w.Cache.Hide(secret("other", other)) // It has only Secrets of the documented type.
			for name, o := range tc.outcomes {
				w.ledger.Record(client.ObjectKey{Namespace: "default", Name: name}, "s", o)
			}
			_, err := w.reconcile()
			got, text := w.state(), ""
			if err != nil {
				text = err.Error()
			}
			if strings.HasSuffix(tc.want, ": ") && strings.HasPrefix(got, tc.want) && strings.HasPrefix(text, tc.err) {
				return
			}
			if diff := cmp.Diff([]string{tc.want, tc.err}, []string{got, text}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			w.Writes = nil
			_, _ = w.reconcile()
			if len(w.Writes) > 0 {
				t.Errorf("the same again writes %v", w.Writes)
			}
		})
	}
}

// TestResources compares the owners of ConfigMaps and Secrets, and all writes.
// TestClustersOfOthers: with --watch-filter, Clusters without its label do not count: nothing is applied to them.
func TestClustersOfOthers(t *testing.T) {
	ours := func(obj client.Object) { obj.SetLabels(map[string]string{"cni": "ours", clusterv1.WatchLabel: "a"}) }
	s, c := set(), cluster("c")
	ours(s)
	ours(c)
	w := newWorld(t, s, configMap("m"), c, bound("c", true, "s"), cluster("d"), bound("d", false, "s"))
	w.filter = "a"
	w.restart()
	w.ledger.Record(client.ObjectKey{Namespace: "default", Name: "d"}, "s", failing("x"))
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if got := w.state(); got != "True" {
		t.Errorf("condition %q, want True", got)
	}
}

func TestResources(t *testing.T) {
	before := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}
	stale := binding.Owner(set())
	stale.APIVersion, stale.UID = "addons.cluster.x-k8s.io/v1alpha4", "before-restore"
	kind := addonsv1.ClusterResourceSetSecretType
	fresh := set(withResources(inConfigMap("a"), inConfigMap("b"), inConfigMap("done"), inSecret("s"), inSecret("other"), inConfigMap("a")))
	fresh.Finalizers = nil
	w := newWorld(t, fresh, configMap("a", before), configMap("b", stale), configMap("done", binding.Owner(set())), secret("s", kind), secret("other", "Opaque"))
	w.Cache.Hide(secret("other", ""))
	if _, err := w.reconcile(); err == nil {
		t.Error("no error for the Secret of another type")
	}
	want := []string{"patch ClusterResourceSet s", "patch ConfigMap a", "patch ConfigMap b", "patch Secret s", "patch ClusterResourceSet/status s"}
	if diff := cmp.Diff(want, w.Writes); diff != "" {
		t.Errorf("writes, -want +got:\n%s", diff)
	}
	owners := map[string][]metav1.OwnerReference{}
	for _, obj := range []client.Object{configMap("a"), configMap("b"), configMap("done"), secret("s", kind), secret("other", "")} {
		if err := w.Server.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			t.Fatal(err)
		}
		owners[obj.GetName()] = obj.GetOwnerReferences()
	}
	ours := binding.Owner(set())
	wanted := map[string][]metav1.OwnerReference{"a": {before, ours}, "b": {ours}, "done": {ours}, "s": {ours}, "other": nil}
	if diff := cmp.Diff(wanted, owners); diff != "" {
		t.Errorf("owners, -want +got:\n%s", diff)
	}
	if ours.Controller != nil || len(w.set().Finalizers) != 1 {
		t.Errorf("owner %v, finalizers %v", ours, w.set().Finalizers)
	}
}

// TestResourcesThatLeft compares the owners of ConfigMaps and Secrets after a change of the spec, and all requests.
func TestResourcesThatLeft(t *testing.T) {
	ours, other := binding.Owner(set()), metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}
	kind := addonsv1.ClusterResourceSetSecretType
	left := secret("left", kind)
	left.OwnerReferences = []metav1.OwnerReference{ours}
	for _, tc := range []struct {
		reason string
		// live is what the spec has in the API server; the cache has the spec with only ConfigMap m.
		live   []addonsv1.ResourceRef
		writes []string
		stale  bool
	}{
		{
			reason: "they left", live: []addonsv1.ResourceRef{inConfigMap("m")},
			writes: []string{"patch ConfigMap left", "patch Secret left", "patch ClusterResourceSet/status s"},
		},
		{reason: "the cache is stale: they were added", live: []addonsv1.ResourceRef{inConfigMap("m"), inConfigMap("left"), inSecret("left")}, stale: true},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, set(), configMap("m", ours), configMap("left", other, ours), configMap("foreign", other), left.DeepCopy())
			w.Cache.Freeze(&addonsv1.ClusterResourceSetList{})
			if tc.stale {
				changed := w.set()
				changed.Spec.Resources, changed.Generation = tc.live, 2
				testenv.Must(t, w.Update(t.Context(), changed))
				w.Writes = nil
			}
			if _, err := w.reconcile(); err != nil { // It is retried if the cache is stale.
				t.Error(err)
			}
			if diff := cmp.Diff(tc.writes, slices.DeleteFunc(w.Writes, func(s string) bool { return tc.stale && strings.Contains(s, "/status") }),
				cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("writes, -want +got:\n%s", diff)
			}
			config, confidential := configMap("left"), secret("left", kind)
			testenv.Must(t, w.Server.Get(t.Context(), client.ObjectKeyFromObject(config), config))
			testenv.Must(t, w.Server.Get(t.Context(), client.ObjectKeyFromObject(confidential), confidential))
			got := [][]metav1.OwnerReference{config.OwnerReferences, confidential.OwnerReferences}
			want := [][]metav1.OwnerReference{{other}, nil}
			if tc.stale {
				want = [][]metav1.OwnerReference{{other, ours}, {ours}}
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("owners, -want +got:\n%s", diff)
			}
		})
	}
}
