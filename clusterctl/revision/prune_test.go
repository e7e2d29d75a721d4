package revision

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/packages/manifest"
)

// class returns a ClusterClass of namespace ns with a template; base, if not empty, makes it a revision.
func class(base, name, template string, day int) string {
	labels := "{}"
	if base != "" {
		labels = "{fleet.cluster.x-k8s.io/class: " + base + "}"
	}
	return fmt.Sprintf(`
apiVersion: cluster.x-k8s.io/v1beta1
kind: ClusterClass
metadata: {namespace: ns, name: %s, uid: %s, labels: %s, creationTimestamp: "2026-01-%02dT00:00:00Z"}
spec: {infrastructure: {ref: {apiVersion: infra.example/v1, kind: CloudTemplate, name: %s}}}
`, name, name, labels, day, template)
}

// cluster returns a Cluster; topology are the fields of its class.
func cluster(namespace, topology, annotation string) string {
	return fmt.Sprintf(`
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {namespace: %s, name: c, annotations: {fleet.cluster.x-k8s.io/rollout: '%s'}}
spec: {topology: {version: v1.31.0, %s}}
`, namespace, annotation, topology)
}

func rollout(phase, ref string) string {
	return fmt.Sprintf(`
{apiVersion: fleet.cluster.x-k8s.io/v1alpha1, kind: ClusterRollout, metadata: {namespace: ns, name: r},
 spec: {change: {classRef: %s}}, status: {phase: "%s"}}
`, ref, phase)
}

func world(t *testing.T, objects ...string) *World {
	t.Helper()
	parsed, err := manifest.Parse([]byte(strings.Join(objects, "\n---\n")))
	if err != nil {
		t.Fatal(err)
	}
	w := &World{}
	into := map[string]*[]unstructured.Unstructured{"ClusterClass": &w.Classes, "Cluster": &w.Clusters, "ClusterRollout": &w.Rollouts}
	for _, u := range parsed {
		*into[u.GetKind()] = append(*into[u.GetKind()], u)
	}
	return w
}

func TestRows(t *testing.T) {
	w := world(t, class("", "shop", "t", 9), class("shop", "shop-a", "t-a", 1), class("shop", "shop-b", "t-b", 2), class("", "other", "t", 1),
		cluster("ns", "class: shop-a", ""), cluster("elsewhere", "class: shop-a, classNamespace: ns", ""), cluster("elsewhere", "class: shop-a", ""),
		cluster("ns", "classRef: {name: shop}", ""))
	got, err := w.Rows("shop")
	if err != nil {
		t.Fatal(err)
	}
	day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
	want := []Row{
		{Namespace: "ns", Name: "shop-b", Class: "shop", Revision: true, Created: day(2), Newest: true},
		{Namespace: "ns", Name: "shop-a", Class: "shop", Revision: true, Created: day(1), Clusters: 2, Versions: map[string]int{"v1.31.0": 2}},
		{Namespace: "ns", Name: "shop", Class: "shop", Created: day(9), Clusters: 1, Versions: map[string]int{"v1.31.0": 1}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if all, _ := w.Rows(); len(all) != 4 || all[0].Name != "other" {
		t.Errorf("without names, all classes are listed, got %v", all)
	}
}

func TestPrune(t *testing.T) {
	revisions := []string{class("", "shop", "t", 9), class("shop", "shop-1", "t-1", 1), class("shop", "shop-2", "t-2", 2), class("shop", "shop-3", "t-1", 3)}
	for _, tc := range []struct {
		reason string
		more   []string
		keep   int
		want   string // name, why it is kept, templates; shared with
	}{
		{"nothing is used", nil, 1, "shop-3 it is one of the newest|shop-2 [CloudTemplate t-2]|shop-1 shop-3 uses t-1"},
		{"more are kept", nil, 2, "shop-3 it is one of the newest|shop-2 it is one of the newest|shop-1 shop-3 uses t-1"},
		{"a template of two that are deleted", []string{class("shop", "shop-4", "t-4", 4)}, 1,
			"shop-4 it is one of the newest|shop-3 [CloudTemplate t-1]|shop-2 [CloudTemplate t-2]|shop-1"},
		{"the class itself shares a template", []string{class("", "market", "t-2", 4)}, 1,
			"shop-3 it is one of the newest|shop-2 market uses t-2|shop-1 shop-3 uses t-1"},
		{"a Cluster uses one", []string{cluster("ns", "class: shop-1", "")}, 1, "shop-3 it is one of the newest|shop-2 [CloudTemplate t-2]|shop-1 a Cluster uses it"},
		{"a Cluster of another namespace, in v1beta2", []string{cluster("b", "classRef: {name: shop-2, namespace: ns}", "")}, 1,
			"shop-3 it is one of the newest|shop-2 a Cluster uses it|shop-1 shop-3 uses t-1"},
		{"the same name in another namespace", []string{cluster("b", "class: shop-2", "")}, 1,
			"shop-3 it is one of the newest|shop-2 [CloudTemplate t-2]|shop-1 shop-3 uses t-1"},
		{"a rollout that has not begun", []string{rollout("", "{name: shop-2}")}, 1,
			"shop-3 it is one of the newest|shop-2 ClusterRollout ns/r is in progress|shop-1 shop-3 uses t-1"},
		{"a rollout is in progress", []string{rollout("Halted", "{name: shop-1, namespace: ns}")}, 1,
			"shop-3 it is one of the newest|shop-2 [CloudTemplate t-2]|shop-1 ClusterRollout ns/r is in progress"},
		{"a rollout is complete", []string{rollout("Completed", "{name: shop-2}")}, 1,
			"shop-3 it is one of the newest|shop-2 [CloudTemplate t-2]|shop-1 shop-3 uses t-1"},
		{"a rollout was aborted", []string{rollout("Aborted", "{name: shop-2}")}, 1,
			"shop-3 it is one of the newest|shop-2 [CloudTemplate t-2]|shop-1 shop-3 uses t-1"},
		{"a rollout of a class in another namespace", []string{rollout("Halted", "{name: shop-2, namespace: b}")}, 1,
			"shop-3 it is one of the newest|shop-2 [CloudTemplate t-2]|shop-1 shop-3 uses t-1"},
		{"a Cluster can go back", []string{cluster("ns", "class: shop-3", `{"previous": {"classRef": {"name": "shop-2"}}}`)}, 1,
			"shop-3 a Cluster uses it|shop-2 a rollout of Cluster ns/c can go back to it|shop-1 shop-3 uses t-1"},
		{"a Cluster of another namespace can go back", []string{cluster("b", "class: x", `{"previous": {"classRef": {"name": "shop-2", "namespace": "ns"}}}`)}, 1,
			"shop-3 it is one of the newest|shop-2 a rollout of Cluster b/c can go back to it|shop-1 shop-3 uses t-1"},
		{"a rollout that changes no class", []string{cluster("ns", "class: shop-3", `{"rollout": "r", "previous": {"version": "v1.30.0"}}`), rollout("Halted", "{}")}, 1,
			"shop-3 a Cluster uses it|shop-2 [CloudTemplate t-2]|shop-1 shop-3 uses t-1"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			decisions, err := world(t, append(append([]string{}, revisions...), tc.more...)...).Prune(types.NamespacedName{Namespace: "ns", Name: "shop"}, tc.keep)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range decisions {
				line := d.Name + " " + d.Keep
				if len(d.Templates) > 0 {
					line += fmt.Sprint(d.Templates)
				}
				for _, s := range d.Shared {
					line += s.By.GetName() + " uses " + s.Name
				}
				got = append(got, strings.TrimSpace(line))
			}
			if diff := cmp.Diff(strings.Split(tc.want, "|"), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestUnreadable: without knowing to which class a rollout goes back, nothing is deleted.
func TestUnreadable(t *testing.T) {
	_, err := world(t, class("shop", "shop-1", "t", 1), cluster("ns", "class: x", "{")).Prune(types.NamespacedName{Namespace: "ns", Name: "shop"}, 1)
	if err == nil || !strings.Contains(err.Error(), "Cluster ns/c: the annotation fleet.cluster.x-k8s.io/rollout cannot be read") {
		t.Errorf("got %v", err)
	}
}
