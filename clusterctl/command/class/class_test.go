package class

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

var server testenv.Server

func TestMain(m *testing.M) { server.Main(m) }

const files = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata: {name: shop}
spec:
  infrastructure:
    templateRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: InMemoryClusterTemplate, name: cloud}
  controlPlane:
    templateRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta2, kind: KubeadmControlPlaneTemplate, name: plane}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: InMemoryClusterTemplate
metadata: {name: cloud}
spec: {template: {spec: {}}}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: KubeadmControlPlaneTemplate
metadata: {name: plane}
spec: {template: {spec: {kubeadmConfigSpec: {preKubeadmCommands: [a]}}}}
`

// world is a namespace of a real API server, without controllers and webhooks, and the commands that work in it.
type world struct {
	*testing.T
	env       *testenv.Env
	namespace string
	client    client.WithWatch
	// answer is what the user types.
	answer string
	// context is the namespace of the kubeconfig's context, if it is another one.
	context string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	e := server.Start(t, "providers/core/config/crd", "providers/control-plane-kubeadm/config/crd", "providers/infrastructure-in-memory/config/crd")
	scheme, err := management.Scheme()
	testenv.Must(t, err)
	return &world{T: t, env: e, namespace: e.Namespace(t), client: e.NewClient(t, scheme)}
}

// run runs a command like a new process.
func (w *world) run(wire *testenv.Wire, run func(context.Context, *iostreams.Streams, func(management.Kubeconfig) (*management.Cluster, error)) error) (string, error) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	defer cancel()
	wire.Dead = cancel
	streams, buffers := iostreams.Test()
	buffers.In.WriteString(w.answer)
	err := run(ctx, streams, func(management.Kubeconfig) (*management.Cluster, error) {
		c := rest.CopyConfig(w.env.Config)
		c.QPS = -1
		c.Wrap(wire.Wrap)
		if w.context != "" {
			return management.New(c, w.context)
		}
		return management.New(c, w.namespace)
	})
	return strings.ReplaceAll(buffers.Out.String()+buffers.Err.String(), w.namespace, "NS"), err
}

// publish publishes files with --apply.
func (w *world) publish(wire *testenv.Wire, text string) (string, error) {
	w.Helper()
	file := filepath.Join(w.TempDir(), "class.yaml")
	testenv.Must(w.T, os.WriteFile(file, []byte(text), 0o600))
	return w.run(wire, func(ctx context.Context, s *iostreams.Streams, connect func(management.Kubeconfig) (*management.Cluster, error)) error {
		return runPublish(ctx, &PublishOptions{IO: s, Connect: connect, Files: []string{file}, Apply: true, Output: "name", Backoff: wait.Backoff{Steps: 1}})
	})
}

func (w *world) prune(wire *testenv.Wire, keep int, yes bool) (string, error) {
	w.Helper()
	return w.run(wire, func(ctx context.Context, s *iostreams.Streams, connect func(management.Kubeconfig) (*management.Cluster, error)) error {
		return runPrune(ctx, &PruneOptions{IO: s, Connect: connect, Clock: clock.RealClock{}, Class: "shop", Keep: keep, Yes: yes, Output: "text",
			Backoff: wait.Backoff{Steps: 1}})
	})
}

func all() *testenv.Wire { return &testenv.Wire{Limit: -1} }

// works is a run that must succeed.
func (w *world) works(output string, err error) string {
	w.Helper()
	if err != nil {
		w.Fatalf("%v\n%s", err, output)
	}
	return output
}

// fails is a run that must fail with a text.
func (w *world) fails(want string) func(string, error) {
	return func(output string, err error) {
		w.Helper()
		if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), w.namespace, "NS"), want) {
			w.Errorf("want an error with %q, got %v\n%s", want, err, output)
		}
	}
}

var hash = regexp.MustCompile(`-[a-z0-9]{10}\b`)

// have returns the classes and templates of the namespace, with # instead of hashes.
func (w *world) have() []string {
	w.Helper()
	var found []string
	for _, kind := range []string{"cluster.x-k8s.io/v1beta2 ClusterClass", "infrastructure.cluster.x-k8s.io/v1alpha1 InMemoryClusterTemplate",
		"controlplane.cluster.x-k8s.io/v1beta2 KubeadmControlPlaneTemplate"} {
		apiVersion, kind, _ := strings.Cut(kind, " ")
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(apiVersion)
		list.SetKind(kind + "List")
		testenv.Must(w.T, w.client.List(w.Context(), list, client.InNamespace(w.namespace)))
		for _, u := range list.Items {
			found = append(found, kind+" "+hash.ReplaceAllString(u.GetName(), "-#"))
		}
	}
	return found
}

// published are the objects of the files' revision.
func published() []string {
	return []string{"ClusterClass shop-#", "InMemoryClusterTemplate cloud-#", "KubeadmControlPlaneTemplate plane-#"}
}

// object creates an object, and returns it.
func (w *world) object(text string) *unstructured.Unstructured {
	w.Helper()
	objects, err := manifest.Parse([]byte(text))
	testenv.Must(w.T, err)
	objects[0].SetNamespace(w.namespace)
	testenv.Must(w.T, w.client.Create(w.Context(), &objects[0]))
	return &objects[0]
}

// class returns the revision, by the output of publish.
func (w *world) class(output string) *unstructured.Unstructured {
	w.Helper()
	_, name, _ := strings.Cut(strings.Split(output, "\n")[0], "/")
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(classKind())
	testenv.Must(w.T, w.client.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, u))
	return u
}

func TestApply(t *testing.T) {
	w := newWorld(t)
	first := w.works(w.publish(all(), files+"---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}\n"))
	want := `clusterclass.cluster.x-k8s.io/shop-#
Warning: 1 other objects of the files are left out: they are no ClusterClasses and none of their templates
InMemoryClusterTemplate NS/cloud-# created
KubeadmControlPlaneTemplate NS/plane-# created
ClusterClass NS/shop-# created
`
	if diff := cmp.Diff(want, hash.ReplaceAllString(first, "-#")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	w.context = "default"
	again := w.works(w.publish(all(), strings.Replace(files, "name: shop}", "name: shop, namespace: "+w.namespace+"}", 1)))
	w.context = ""
	if strings.Count(again, "unchanged") != 3 {
		t.Errorf("the same files again:\n%s", again)
	}
	if edited := w.works(w.publish(all(), strings.Replace(files, "[a]", "[b]", 1))); strings.Count(edited, "created") != 2 || strings.Count(edited, "unchanged") != 1 {
		t.Errorf("a template that has not changed stays the same:\n%s", edited)
	}
	w.fails("the management cluster rejected ClusterClass NS/shop-")(w.publish(all(), strings.Replace(files, "spec:\n", "spec:\n  kubernetesVersions: [\"\"]\n", 1)))
	if got := w.have(); len(got) != 5 {
		t.Errorf("nothing is created if anything is rejected, got %v", got)
	}
	class := w.class(first)
	testenv.Must(t, unstructured.SetNestedField(class.Object, "v1.0.0", "metadata", "labels", "fleet.cluster.x-k8s.io/class"))
	testenv.Must(t, w.client.Update(t.Context(), class))
	w.fails("exists, and its metadata.labels.fleet.cluster.x-k8s.io/class differs: it was changed after it had been published")(w.publish(all(), files))
}

// TestPublishKilled kills the command after every request. What it has written is what the files have, the class comes last, and the same
// command completes it.
func TestPublishKilled(t *testing.T) {
	w := newWorld(t)
	undisturbed := all()
	w.works(w.publish(undisturbed, files))
	for n := range undisturbed.Log() {
		for _, lose := range []bool{false, true} {
			w.namespace = w.env.Namespace(t)
			wire := &testenv.Wire{Limit: n, Lose: lose}
			if _, err := w.publish(wire, files); err == nil {
				t.Errorf("killed at %s, without an error", wire.Last())
			}
			if got := w.have(); slices.Contains(got, published()[0]) && len(got) != 3 {
				t.Errorf("killed at %s: a class without its templates: %v", wire.Last(), got)
			}
			w.works(w.publish(all(), files))
			if diff := cmp.Diff(published(), w.have()); diff != "" {
				t.Errorf("killed at %s: -want +got:\n%s", wire.Last(), diff)
			}
		}
	}
	t.Logf("%d requests", len(undisturbed.Log()))
}

// revisions publishes n revisions of the class, and returns them.
func (w *world) revisions(n int) []*unstructured.Unstructured {
	w.Helper()
	var list []*unstructured.Unstructured
	for i := range n {
		list = append(list, w.class(w.works(w.publish(all(), strings.Replace(files, "[a]", fmt.Sprintf("[c%d]", i), 1)))))
	}
	return list
}

func (w *world) exists(u *unstructured.Unstructured) bool {
	w.Helper()
	err := w.client.Get(w.Context(), client.ObjectKeyFromObject(u), u.DeepCopy())
	testenv.Must(w.T, client.IgnoreNotFound(err))
	return err == nil
}

func (w *world) cluster(class *unstructured.Unstructured) {
	w.Helper()
	w.object(fmt.Sprintf(`{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: c}, spec: {topology: {classRef: {name: %s}, version: v1.31.0}}}`, class.GetName()))
}

// TestPruneKilled kills the command after every request. What is used stays, and the same command completes it.
func TestPruneKilled(t *testing.T) {
	w := newWorld(t)
	undisturbed := all()
	w.pruned(undisturbed)
	for n := range undisturbed.Log() {
		for _, lose := range []bool{false, true} {
			w.namespace = w.env.Namespace(t)
			w.pruned(&testenv.Wire{Limit: n, Lose: lose})
		}
	}
	t.Logf("%d requests", len(undisturbed.Log()))
}

// pruned makes four revisions of a class that is still there, and deletes all but the newest, and one that a Cluster uses; if the wire is cut,
// a second run continues.
func (w *world) pruned(wire *testenv.Wire) {
	w.Helper()
	class, _, _ := strings.Cut(files, "---")
	w.object(class)
	var revisions []*unstructured.Unstructured
	for i := range 4 {
		revisions = append(revisions, w.object(strings.Replace(class, "name: shop", fmt.Sprintf("name: shop-%d, labels: {fleet.cluster.x-k8s.io/class: shop}", i), 1)))
	}
	w.cluster(revisions[3])
	if output, err := w.prune(wire, 1, true); (err == nil) != (wire.Limit < 0) {
		w.Errorf("killed at %s: %v\n%s", wire.Last(), err, output)
	}
	w.works(w.prune(all(), 1, true))
	// The newest is one of the last second.
	if left := w.have(); !w.exists(revisions[3]) || len(left) > 3 || !slices.Contains(left, "ClusterClass shop") {
		w.Errorf("killed at %s: %v are left", wire.Last(), left)
	}
}

func TestPruneAsks(t *testing.T) {
	w := newWorld(t)
	w.fails("there is no class shop in NS: see `clusterctl class list -A`")(w.prune(all(), 1, false))
	revisions := w.revisions(3)
	w.fails("nothing is changed: there is no answer; use --yes without a terminal")(w.prune(all(), 1, false))
	w.answer = "yes\n"
	w.fails("nothing is changed")(w.prune(all(), 1, false))
	w.answer = "shop\n"
	// Somebody begins to use all of them while the user thinks.
	reads := 0
	wire := all()
	wire.Before = func(request string) {
		if strings.Contains(request, "/clusters?") || strings.HasSuffix(request, "/clusters") {
			if reads++; reads == 2 {
				for i, r := range revisions {
					w.object(fmt.Sprintf(`{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: c%d}, spec: {topology: {classRef: {name: %s}, version: v1.31.0}}}`, i, r.GetName()))
				}
			}
		}
	}
	if output := w.works(w.prune(wire, 1, false)); strings.Count(output, "is kept: a Cluster uses it") != 2 {
		t.Errorf("got:\n%s", output)
	}
	for _, r := range revisions {
		if !w.exists(r) {
			t.Errorf("%s is deleted", r.GetName())
		}
	}
	if output := w.works(w.prune(all(), 1, false)); !strings.Contains(output, "Nothing to delete") {
		t.Errorf("got:\n%s", output)
	}
}

// TestRefused: the webhook of ClusterClasses refuses to delete a class that a Cluster has begun to use; others are deleted.
func TestRefused(t *testing.T) {
	w := newWorld(t)
	revisions := w.revisions(4)
	var refused, deleted []string
	refusing := interceptor.NewClient(w.client, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if len(refused) == 0 {
				refused = append(refused, o.GetName())
				return apierrors.NewForbidden(schema.GroupResource{Resource: "clusterclasses"}, o.GetName(), errors.New("Clusters use it: c"))
			}
			deleted = append(deleted, o.GetName())
			return c.Delete(ctx, o, opts...)
		},
	})
	streams, _ := iostreams.Test()
	err := runPrune(t.Context(), &PruneOptions{
		IO: streams, Clock: clock.RealClock{}, Class: "shop", Keep: 1, Yes: true, Output: "text",
		Connect: func(management.Kubeconfig) (*management.Cluster, error) {
			return &management.Cluster{Client: refusing, Namespace: w.namespace}, nil
		},
	})
	w.fails("cannot delete ClusterClass NS/"+refused[0]+": ")("", err)
	if len(deleted) != 2 {
		t.Errorf("two others must be deleted, got %v", deleted)
	}
	for _, r := range revisions {
		if w.exists(r) == slices.Contains(deleted, r.GetName()) {
			t.Errorf("%s: exists %t", r.GetName(), w.exists(r))
		}
	}
}

// TestSharedTemplates: a template that another revision uses, but does not own yet, would be deleted with its only owner.
func TestSharedTemplates(t *testing.T) {
	w := newWorld(t)
	revisions := w.revisions(2)
	rows := w.works(w.prune(all(), 2, true))
	first := revisions[0]
	if strings.Index(rows, revisions[1].GetName()) < strings.Index(rows, first.GetName()) {
		first = revisions[1] // They are of the same second, and the order is that of names.
	}
	older := revisions[0]
	if first == revisions[0] {
		older = revisions[1]
	}
	name, _, _ := unstructured.NestedString(older.Object, "spec", "infrastructure", "ref", "name")
	template := &unstructured.Unstructured{}
	template.SetAPIVersion("infrastructure.cluster.x-k8s.io/v1alpha1")
	template.SetKind("InMemoryClusterTemplate")
	testenv.Must(t, w.client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, template))
	owner := func(u *unstructured.Unstructured) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Name: u.GetName(), UID: u.GetUID()}
	}
	template.SetOwnerReferences([]metav1.OwnerReference{owner(older)})
	testenv.Must(t, w.client.Update(t.Context(), template))
	w.fails("uses its InMemoryClusterTemplate " + name + ", and its controller has not made it an owner of that yet; run the command again")(w.prune(all(), 1, true))
	if !w.exists(older) {
		t.Fatal("it is deleted")
	}
	template.SetOwnerReferences([]metav1.OwnerReference{owner(older), owner(first)})
	testenv.Must(t, w.client.Update(t.Context(), template))
	w.works(w.prune(all(), 1, true))
	if w.exists(older) || !w.exists(first) {
		t.Error("the older one must be deleted")
	}
}

func TestList(t *testing.T) {
	w := newWorld(t)
	w.object(strings.Split(files, "---")[0])
	w.cluster(w.revisions(1)[0])
	run := func(output string, names ...string) (string, error) {
		return w.run(all(), func(ctx context.Context, s *iostreams.Streams, connect func(management.Kubeconfig) (*management.Cluster, error)) error {
			return runList(ctx, &ListOptions{IO: s, Connect: connect, Clock: clock.RealClock{}, Output: output, Names: names})
		})
	}
	text := regexp.MustCompile(` +\d+s +(\d) +`).ReplaceAllString(hash.ReplaceAllString(w.works(run("text")), "-#"), " N $1 ")
	want := "CLASS   NAME              AGE   CLUSTERS   VERSIONS      REVISION\n" +
		"shop    shop-# N 1 v1.31.0 (1)   newest\n" +
		"shop    shop N 0 -             no: edits change all its Clusters\n"
	if diff := cmp.Diff(want, text); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := hash.ReplaceAllString(w.works(run("name", "shop")), "-#"); got != "clusterclass.cluster.x-k8s.io/shop-#\nclusterclass.cluster.x-k8s.io/shop\n" {
		t.Errorf("names: %s", got)
	}
	if got := w.works(run("json")); !strings.Contains(got, `"newest": true`) {
		t.Errorf("json: %s", got)
	}
	w.fails("there is no class x in NS")(run("text", "x"))
}

func TestCompletion(t *testing.T) {
	w := newWorld(t)
	w.object(strings.Split(files, "---")[0])
	w.revisions(1)
	streams, _ := iostreams.Test()
	f := factory.New(streams, func(string) (string, bool) { return "", false }, nil)
	f.Connect = func(management.Kubeconfig) (*management.Cluster, error) {
		return &management.Cluster{Client: w.client, Namespace: w.namespace}, nil
	}
	cmd := NewPrune(f, nil)
	cmd.SetContext(t.Context())
	if got, _ := cmd.ValidArgsFunction(cmd, nil, ""); !slices.Equal(got, []string{"shop"}) {
		t.Errorf("got %v", got)
	}
}

func TestFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "classes")
	run := func(text string) (string, error) {
		streams, buffers := iostreams.Test()
		buffers.In.WriteString(text)
		err := runPublish(t.Context(), &PublishOptions{IO: streams, Files: []string{"-"}, Directory: dir, Output: "name"})
		return buffers.Out.String(), err
	}
	first, err := run(files)
	testenv.Must(t, err)
	if _, err := run(strings.Replace(files, "[a]", "[b]", 1)); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	testenv.Must(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, hash.ReplaceAllString(e.Name(), "-#"))
	}
	want := []string{"clusterclass-shop-#.yaml", "clusterclass-shop-#.yaml", "inmemoryclustertemplate-cloud-#.yaml",
		"kubeadmcontrolplanetemplate-plane-#.yaml", "kubeadmcontrolplanetemplate-plane-#.yaml"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	_, name, _ := strings.Cut(strings.TrimSpace(first), "/")
	testenv.Must(t, os.WriteFile(filepath.Join(dir, "clusterclass-"+name+".yaml"), []byte("edited"), 0o600))
	if _, err := run(files); err == nil || !strings.Contains(err.Error(), "has other content than ClusterClass "+name+": revisions do not change") {
		t.Errorf("got %v", err)
	}
}
