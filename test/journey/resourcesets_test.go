package journey

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

const addonsAPI = "addons.cluster.x-k8s.io/v1beta1"

// resourceSet returns a ClusterResourceSet for Clusters with the label network: ours; resources are "<kind>/<name>".
func resourceSet(name, strategy string, resources ...string) *unstructured.Unstructured {
	set := object(addonsAPI, "ClusterResourceSet", "", name)
	var refs []any
	for _, r := range resources {
		kind, name, _ := strings.Cut(r, "/")
		refs = append(refs, map[string]any{"kind": kind, "name": name})
	}
	set.Object["spec"] = map[string]any{
		"strategy": strategy, "resources": refs, "clusterSelector": map[string]any{"matchLabels": map[string]any{"network": "ours"}},
	}
	return set
}

// manifests returns a ConfigMap with manifests.
func manifests(name string, values ...string) *corev1.ConfigMap {
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{}}
	for i, v := range values {
		c.Data[fmt.Sprintf("%d.yaml", i)] = v
	}
	return c
}

// podNetwork returns the manifest of the pod network of our node images.
func (w *World) podNetwork() string {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.Tools.Root, "providers", "infrastructure-docker", "nodeimage", "files", "node", "kind", "manifests", "default-cni.yaml"))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}

// autoscaler returns the manifest of the cluster autoscaler in the book.
func (w *World) autoscaler() string {
	w.t.Helper()
	page, err := os.ReadFile(filepath.Join(w.Tools.Root, "docs", "book", "resourcesets.md"))
	if err != nil {
		w.t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "cluster-autoscaler.yaml <<'YAML'\n")
	text, _, found := strings.Cut(text, "\nYAML\n")
	if !found {
		w.t.Fatal("the book has no manifest of the cluster autoscaler")
	}
	return text
}

// applied is a Condition: the condition of a ClusterResourceSet is this status and reason, and its message contains the words.
func (c *Subject) applied(set, status, reason string, words ...string) Condition {
	return func(*Snapshot) error {
		o := object(addonsAPI, "ClusterResourceSet", c.Namespace, set)
		if err := c.Client.Get(c.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		for _, item := range conditions {
			is, _ := item.(map[string]any)
			if is["type"] != "ResourcesApplied" {
				continue
			}
			if got, _ := is["reason"].(string); is["status"] != status || got != reason {
				return fmt.Errorf("condition of %s = %v", set, is)
			}
			for _, word := range words {
				if message, _ := is["message"].(string); !strings.Contains(message, word) {
					return fmt.Errorf("message of %s = %q, without %q", set, message, word)
				}
			}
			return nil
		}
		return fmt.Errorf("%s has no condition", set)
	}
}

// bound is a Condition: the binding has these records, "<set> <kind>/<name>=<applied>"; none means that it does not exist.
func (c *Subject) bound(want ...string) Condition {
	return func(*Snapshot) error {
		b := object(addonsAPI, "ClusterResourceSetBinding", c.Namespace, c.Name)
		err := c.Client.Get(c.t.Context(), client.ObjectKeyFromObject(b), b)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		var got []string
		entries, _, _ := unstructured.NestedSlice(b.Object, "spec", "bindings")
		for _, item := range entries {
			entry, _ := item.(map[string]any)
			resources, _ := entry["resources"].([]any)
			for _, item := range resources {
				r, _ := item.(map[string]any)
				got = append(got, fmt.Sprintf("%v %v/%v=%v", entry["clusterResourceSetName"], r["kind"], r["name"], r["applied"]))
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			return fmt.Errorf("binding = %q, want %q", got, want)
		}
		return nil
	}
}

// hasApplied is a Condition: objects exist in the workload cluster.
func (c *Subject) hasApplied(namespace, name string, objects ...client.Object) Condition {
	return func(*Snapshot) error {
		w, err := c.reach(c.t.Context())
		if err != nil {
			return err
		}
		var errs []error
		for _, o := range objects {
			key := client.ObjectKey{Namespace: namespace, Name: name}
			switch o.(type) {
			case *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding:
				key.Namespace = ""
			}
			errs = append(errs, w.client.Get(c.t.Context(), key, o))
		}
		return errors.Join(errs...)
	}
}

// TestResourceSets applies a pod network and the cluster autoscaler of the book to a Cluster while it is created, and then changes manifests,
// objects, labels and ClusterResourceSets.
func TestResourceSets(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	class := w.Class(w.Tools.ProjectTemplate())
	w.Applied(
		manifests("network", w.podNetwork(), "- broken\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: mark}\ndata: {a: once}\n"),
		resourceSet("network", "ApplyOnce", "ConfigMap/network"),
		manifests("scaler", w.autoscaler()), manifests("mark", configMapOf("mark-2", "a: one, dropped: one")),
		resourceSet("scaler", "Reconcile", "ConfigMap/scaler", "ConfigMap/mark", "Secret/later"),
	)
	cluster := NewCluster("sets", class).Workers(1).Build()
	cluster.Labels = map[string]string{"network": "ours"}
	c := w.Subject(cluster)
	c.Eventually("the pod network and the autoscaler are applied", Ready, ControlPlanes(1), Workers(1), c.WorkloadMatches,
		c.bound("network ConfigMap/network=false", "scaler ConfigMap/mark=true", "scaler ConfigMap/scaler=true"),
		c.hasApplied("kube-system", "node-network", &appsv1.DaemonSet{}, &corev1.ServiceAccount{}, &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}, &corev1.ConfigMap{}),
		c.hasApplied("kube-system", "cluster-autoscaler", &appsv1.Deployment{}, &corev1.ServiceAccount{}, &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}),
		c.hasApplied("default", "mark", &corev1.ConfigMap{}),
		c.applied("network", "False", "ApplyFailed", "1 Cluster: sets: ConfigMap network, key 1.yaml, document 1: must be an object"),
		c.applied("scaler", "False", "RetrievingResourceFailed", "Secret later does not exist"))
	c.describesSets("network", "scaler")
	c.Eventually("both failures are explained", c.ExplainsAll("ResourcesNotApplied ClusterResourceSet/network", "ResourcesNotApplied ClusterResourceSet/scaler"))

	w.Applied(manifests("network", w.podNetwork(), configMapOf("mark", "a: two")))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "later"}, Type: "addons.cluster.x-k8s.io/resource-set"}
	w.Applied(secret)
	c.Eventually("both are repaired", c.applied("network", "True", ""), c.applied("scaler", "True", ""),
		c.bound("network ConfigMap/network=true", "scaler ConfigMap/mark=true", "scaler ConfigMap/scaler=true", "scaler Secret/later=true"), c.ExplainsNothing)
	c.changedByUsers()

	c.unlabeled()
	c.Delete()
	c.Eventually("the binding is deleted with the Cluster", c.bound())
}

// describesSets checks the output of clusterctl.
func (c *Subject) describesSets(names ...string) {
	c.t.Helper()
	r := c.Tools.Clusterctl(c.t.Context(), "", "describe", "cluster", c.Name, "--namespace", c.Namespace, "--kubeconfig", c.Kubeconfig, "--show-resourcesets")
	for _, name := range names {
		if r.Failed || !strings.Contains(r.Out, "ClusterResourceSet "+name) {
			c.t.Errorf("describe does not show ClusterResourceSet %s: %s", name, r)
		}
	}
}

// changedByUsers changes objects in the workload cluster, and then the manifests.
func (c *Subject) changedByUsers() {
	c.t.Helper()
	workload := c.Workload()
	for _, name := range []string{"mark", "mark-2"} {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		patch := client.RawPatch(types.MergePatchType, []byte(`{"data":{"a":"user","added":"user"}}`))
		if err := workload.client.Patch(c.t.Context(), o, patch); err != nil {
			c.t.Fatal(err)
		}
	}
	c.Applied(manifests("network", c.podNetwork(), configMapOf("mark", "a: three")), manifests("mark", configMapOf("mark-2", "a: three")))
	c.Eventually("Reconcile applies the new manifest, and keeps what users added", func(*Snapshot) error {
		data, err := workload.data(c.t.Context(), "mark-2")
		if err != nil || data["a"] != "three" || data["added"] != "user" || data["dropped"] != "" {
			return fmt.Errorf("data = %v, err = %w", data, err)
		}
		return nil
	})
	if data, err := workload.data(c.t.Context(), "mark"); err != nil || data["a"] != "user" {
		c.t.Errorf("ApplyOnce changes an object: %v, %v", data, err)
	}
}

// unlabeled removes the label of the Cluster, and then a ClusterResourceSet: what was applied stays.
func (c *Subject) unlabeled() {
	c.t.Helper()
	// What another set applies by the new labels shows that the manager has seen them: they and the manifests are in different caches.
	seen := resourceSet("seen", "ApplyOnce", "ConfigMap/seen")
	if err := unstructured.SetNestedStringMap(seen.Object, map[string]string{"seen": "yes"}, "spec", "clusterSelector", "matchLabels"); err != nil {
		c.t.Fatal(err)
	}
	c.Applied(manifests("seen", configMapOf("seen", "a: b")), seen)
	c.Change(func(cluster *clusterv1.Cluster) {
		delete(cluster.Labels, "network")
		cluster.Labels["seen"] = "yes"
	})
	c.Eventually("the new labels are seen", c.hasApplied("default", "seen", &corev1.ConfigMap{}))
	c.Applied(manifests("mark", configMapOf("mark-2", "a: four")))
	scaler := object(addonsAPI, "ClusterResourceSet", c.Namespace, "scaler")
	if err := c.Client.Delete(c.t.Context(), scaler); err != nil {
		c.t.Fatal(err)
	}
	c.Eventually("the ClusterResourceSet is deleted, and its entry", c.bound("network ConfigMap/network=true", "seen ConfigMap/seen=true"), func(*Snapshot) error {
		if err := c.Client.Get(c.t.Context(), client.ObjectKeyFromObject(scaler), scaler); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it still exists: %w", err)
		}
		return nil
	})
	if data, err := c.Workload().data(c.t.Context(), "mark-2"); err != nil || data["a"] != "three" {
		c.t.Errorf("a Cluster without the label is changed: %v, %v", data, err)
	}
	c.Eventually("the autoscaler is still there", c.hasApplied("kube-system", "cluster-autoscaler", &appsv1.Deployment{}))
}

// configMapOf returns the manifest of a ConfigMap in the workload cluster.
func configMapOf(name, data string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %q}\ndata: {%s}\n", name, data)
}

// data returns the data of a ConfigMap in namespace default.
func (w *Workload) data(ctx context.Context, name string) (map[string]string, error) {
	o := &corev1.ConfigMap{}
	err := w.client.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, o)
	return o.Data, err
}
