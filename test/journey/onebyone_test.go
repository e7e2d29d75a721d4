package journey

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// providerLabel is on what belongs to a provider.
const providerLabel = "cluster.x-k8s.io/provider"

// TestObjectsAreRestoredOneByOne restores the objects of a Cluster with and of one without a class as Velero does, in another management
// cluster without providers: in the order of their kinds, with other UIDs, without status, owners and managers of fields. The infrastructure,
// which the previous management cluster has left running, is found again: every object has its owners, and no Machine is replaced.
func TestObjectsAreRestoredOneByOne(t *testing.T) {
	t.Parallel()
	source := NewStandalone(t, shared.Management(t).Tools)
	testenv.Must(t, source.tools.install(t.Context(), source.kubeconfig()))
	w := source.Management().World(t)
	classy := w.Subject(NewCluster("classy", w.Class(w.Tools.ProjectTemplate())).ControlPlanes(1).Workers(2).Build())
	plain := w.Plain(Plain{ControlPlanes: 3, Workers: 1}.String())
	classy.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(2), classy.WorkloadMatches)
	plain.Eventually("the Cluster becomes ready", Ready, ControlPlanes(3), Workers(1), plain.WorkloadMatches)
	identity, owners := w.Identity(), w.owners()
	runs := map[string]reality{classy.Name: classy.nodesAndMembers(), plain.Name: plain.nodesAndMembers()}
	definitions, objects := definitionsOf(t, w.Client), w.saved()
	source.Kill()

	target := NewStandalone(t, source.tools)
	api := target.api()
	stripped(t, api, definitions...)
	established(t, api, definitions)
	testenv.Must(t, api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}))
	uids := stripped(t, api, objects...)
	setAllPaused(t, api, w.Namespace, true)
	target.takeMachines(source, uids)
	testenv.Must(t, target.tools.install(t.Context(), target.kubeconfig()))
	setAllPaused(t, api, w.Namespace, false)

	w = w.at(target.Management())
	classy, plain = classy.Moved(w), plain.Moved(w)
	classy.Eventually("the restored Cluster is ready", Ready, ControlPlanes(1), Workers(2), classy.WorkloadMatches)
	plain.Eventually("the restored Cluster is ready", Ready, ControlPlanes(3), Workers(1), plain.WorkloadMatches)
	plain.Eventually("every object has its owners again", func(*Snapshot) error {
		if diff := gocmp.Diff(owners, w.owners()); diff != "" {
			return fmt.Errorf("owners (-before +after):\n%s", diff)
		}
		return nil
	})
	if diff := gocmp.Diff(identity, w.Identity()); diff != "" {
		t.Errorf("Machines and other objects (-before +after):\n%s", diff)
	}
	for _, c := range []*Subject{classy, plain} {
		if diff := gocmp.Diff(runs[c.Name], c.nodesAndMembers()); diff != "" {
			t.Errorf("what runs in Cluster %s (-before +after):\n%s", c.Name, diff)
		}
	}
	classy.Change(SetWorkers(3))
	classy.Eventually("it can be scaled", Ready, ControlPlanes(1), Workers(3), classy.WorkloadMatches)
}

// nodesAndMembers returns what runs in a workload cluster.
func (c *Subject) nodesAndMembers() reality {
	return c.reality(c.Snapshot().ControlPlane()[0].Status.NodeRef.Name)
}

// owners returns the owners of each object in the namespace, by kind and name. Those of Secrets and ConfigMaps are not asked for.
func (w *World) owners() map[string][]string {
	w.t.Helper()
	found := map[string][]string{}
	w.each(func(resource string, o metav1.PartialObjectMetadata) {
		if resource == "secrets" || resource == "configmaps" {
			return
		}
		for _, owner := range o.OwnerReferences {
			key := resource + "/" + o.Name
			found[key] = append(found[key], owner.Kind+"/"+owner.Name)
			slices.Sort(found[key])
		}
	})
	return found
}

// saved returns what a backup of the namespace has, sorted by kind and name.
func (w *World) saved() []unstructured.Unstructured {
	w.t.Helper()
	var all []unstructured.Unstructured
	kinds := map[string]bool{}
	w.each(func(_ string, o metav1.PartialObjectMetadata) {
		group := o.GroupVersionKind().Group
		if !strings.HasSuffix(group, "cluster.x-k8s.io") && o.Kind != "Secret" && o.Kind != "ConfigMap" || o.Name == "kube-root-ca.crt" {
			return
		}
		if id := o.APIVersion + o.Kind; !kinds[id] {
			kinds[id] = true
			list := &unstructured.UnstructuredList{}
			list.SetAPIVersion(o.APIVersion)
			list.SetKind(o.Kind + "List")
			testenv.Must(w.t, w.Client.List(w.t.Context(), list, client.InNamespace(w.Namespace)))
			all = append(all, list.Items...)
		}
	})
	slices.SortFunc(all, func(a, b unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetKind(), b.GetKind()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return slices.DeleteFunc(all, func(u unstructured.Unstructured) bool { return u.GetName() == "kube-root-ca.crt" })
}

// definitionsOf returns the CustomResourceDefinitions of providers.
func definitionsOf(t testing.TB, api client.Client) []unstructured.Unstructured {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("apiextensions.k8s.io/v1")
	list.SetKind("CustomResourceDefinitionList")
	testenv.Must(t, api.List(t.Context(), list, client.HasLabels{providerLabel}))
	return list.Items
}

// stripped creates objects without what Velero does not restore, and returns their new UIDs by the ones that they had.
func stripped(t testing.TB, api client.Client, objects ...unstructured.Unstructured) map[string]string {
	t.Helper()
	uids := map[string]string{}
	for i := range objects {
		u := objects[i].DeepCopy()
		before := string(u.GetUID())
		delete(u.Object, "status")
		for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "ownerReferences"} {
			unstructured.RemoveNestedField(u.Object, "metadata", field)
		}
		if err := api.Create(t.Context(), u); err != nil {
			t.Fatalf("restoring %s %s: %v", u.GetKind(), u.GetName(), err)
		}
		uids[before] = string(u.GetUID())
	}
	return uids
}

// established waits until the API server serves the kinds of definitions.
func established(t testing.TB, api client.Client, definitions []unstructured.Unstructured) {
	t.Helper()
	for i := range definitions {
		u := definitions[i].DeepCopy()
		err := wait.PollUntilContextTimeout(t.Context(), tick, conditionTimeout, true, func(ctx context.Context) (bool, error) {
			if err := api.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
				return false, err
			}
			conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
			return slices.ContainsFunc(conditions, func(c any) bool {
				fields := c.(map[string]any)
				return fields["type"] == "Established" && fields["status"] == "True"
			}), nil
		})
		if err != nil {
			t.Fatalf("waiting for %s: %v", u.GetName(), err)
		}
	}
}

// setAllPaused pauses or resumes all Clusters of a namespace. They are read and written as they are stored, which no manager has to convert.
func setAllPaused(t testing.TB, api client.Client, namespace string, paused bool) {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("cluster.x-k8s.io/v1beta2")
	list.SetKind("ClusterList")
	testenv.Must(t, api.List(t.Context(), list, client.InNamespace(namespace)))
	for i := range list.Items {
		patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"paused":%t}}`, paused))
		testenv.Must(t, api.Patch(t.Context(), &list.Items[i], patch))
	}
	if len(list.Items) == 0 {
		t.Fatal("there are no Clusters")
	}
}

// api returns a client for objects of any kind, while there are no providers.
func (s *Standalone) api() client.Client {
	s.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig())
	testenv.Must(s.t, err)
	config.QPS = -1
	scheme := runtime.NewScheme()
	testenv.Must(s.t, corev1.AddToScheme(scheme))
	api, err := client.New(config, client.Options{Scheme: scheme})
	testenv.Must(s.t, err)
	return api
}

// nodeUID returns the UID of the Node of a simulated machine.
func nodeUID(machine string) string {
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte(machine+"\x00node")).String()
}

// takeMachines takes the simulated clusters of another management cluster, which has ended, before there is a provider. A real provider finds
// machines by names or provider IDs, the simulated one by UIDs, so they get the new ones.
func (s *Standalone) takeMachines(from *Standalone, uids map[string]string) {
	s.t.Helper()
	root := filepath.Join(from.directory, "data")
	journals := 0
	testenv.Must(s.t, filepath.WalkDir(filepath.Join(root, "components"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		journals++
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for before, after := range uids {
			content = bytes.ReplaceAll(content, []byte(before), []byte(after))
			content = bytes.ReplaceAll(content, []byte(nodeUID(before)), []byte(nodeUID(after)))
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		to := filepath.Join(s.directory, "data", name)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		return os.WriteFile(to, content, 0o600)
	}))
	if journals == 0 {
		s.t.Fatal("there are no simulated clusters")
	}
}
