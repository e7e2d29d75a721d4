package journey

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// TestUpgradeFromV17 upgrades the components of Cluster API v1.7, whose CRDs have stored objects in old API versions, to this
// project's. Every object of a Cluster, and every object of the components that is still needed, stays the same one; what was
// for cert-manager goes.
func TestUpgradeFromV17(t *testing.T) {
	t.Parallel()
	tools := shared.Management(t).Tools
	r, w := NewPublished(t, tools)
	c := w.Subject(NewCluster("kept", w.Class(w.Tools.OlderTemplate())).Workers(1).Build())
	plain := w.plainNeighbor()
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(1), c.WorkloadMatches)
	plain.Eventually("the Cluster without a class becomes ready", plainIsReady...)
	wantPlain := plain.objects()
	if old := w.storeOldVersions(); old < 15 {
		t.Errorf("only %d CRDs have stored old versions", old)
	}
	components := r.objects(publishedVersion)
	wantComponents, wantObjects, wantSecrets := w.uids(components), w.objects(), w.secretContent()
	maps.DeleteFunc(wantComponents, func(name string, _ types.UID) bool {
		return strings.HasPrefix(name, "Certificate ") || strings.HasPrefix(name, "Issuer ")
	})
	answered := w.Admission()
	_, definitionsBefore := w.crds()

	r.Release("v2.0.0")
	w.Upgrade()
	c.Eventually("the Cluster stays ready", Ready, ControlPlanes(1), Workers(1), c.WorkloadMatches)

	if n := answered(); n < 100 {
		t.Errorf("webhooks answered %d requests only", n)
	}
	if diff := cmp.Diff(wantComponents, w.uids(components)); diff != "" {
		t.Errorf("objects of v1.7's components (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantObjects, w.objects()); diff != "" {
		t.Errorf("objects of the Cluster (-before +after):\n%s", diff)
	}
	plain.Eventually("the Cluster without a class stays ready", plainIsReady...)
	if diff := cmp.Diff(wantPlain, plain.objects()); diff != "" {
		t.Errorf("objects of the Cluster without a class (-before +after):\n%s", diff)
	}
	if wantSecrets != w.secretContent() {
		t.Error("Secrets of the Cluster have changed") // Their content must not be in a log.
	}
	for _, d := range w.deployments() {
		if image := d.Spec.Template.Spec.Containers[0].Image; !strings.HasSuffix(image, ":v2.0.0") || d.Status.AvailableReplicas != 1 {
			t.Errorf("Deployment %s has image %s and %d available replicas", d.Name, image, d.Status.AvailableReplicas)
		}
	}
	w.definitionsAreOurs(definitionsBefore)
	w.nothingIsInjected(r.objects("v2.0.0"))
	c.Change(SetWorkers(2))
	c.Eventually("the upgraded providers reconcile", Ready, Workers(2), c.WorkloadMatches)
	before := c.Snapshot()
	for _, version := range []string{"v1beta2", "v1beta1"} {
		if r := w.Tools.Clusterctl(t.Context(), "", "upgrade", "storage", "--storage-version", version, "--kubeconfig", w.Kubeconfig); r.Failed {
			t.Fatal(r)
		}
		w.stored(version)
	}
	c.Eventually("the Cluster stays ready in another version", Ready, Workers(2), SameMachines((*Snapshot).Workers, before),
		SameMachines((*Snapshot).ControlPlane, before), c.WorkloadMatches)
	c.Change(SetWorkers(1))
	c.Eventually("providers reconcile what is stored in another version", Ready, Workers(1), c.WorkloadMatches)
	c.HandedBack()
	plain.Eventually("the Cluster without a class stays ready in the hands of the previous version", plainIsReady...)
	if diff := cmp.Diff(wantPlain, plain.objects()); diff != "" {
		t.Errorf("objects of the Cluster without a class (-before +handed back):\n%s", diff)
	}
	c.Change(SetWorkers(2))
	c.Eventually("the Cluster is as the previous version wants it", Ready, Workers(2), c.WorkloadMatches)
	c.Gone()
	plain.Gone()
}

// plainCheck is a health check of the worker of a Plain Cluster.
const plainCheck = `
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachineHealthCheck
metadata: {name: workers}
spec:
  clusterName: c
  selector: {matchLabels: {cluster.x-k8s.io/deployment-name: workers}}
  unhealthyConditions: [{type: Ready, status: Unknown, timeout: 5m}]
`

// plainIsReady are the conditions of plainNeighbor's Cluster.
var plainIsReady = []Condition{Ready, ControlPlanes(1), Workers(1), Pools(1)} // a constant list

// plainNeighbor creates a Cluster without a class in a namespace of its own: with a MachinePool, a health check, and what a
// ClusterResourceSet applies.
func (w *World) plainNeighbor() *Subject {
	w.t.Helper()
	n := w.Management.World(w.t)
	n.Applied(manifests("pod-network", n.podNetwork()), resourceSet("network", "ApplyOnce", "ConfigMap/pod-network"))
	c := n.Plain(Plain{ControlPlanes: 1, Workers: 1}.String() + plainCheck)
	c.Applied(c.poolObjects("pool", 1)...)
	c.Change(func(cluster *clusterv1.Cluster) { cluster.Labels = map[string]string{"network": "ours"} })
	c.Eventually("the pod network is applied", c.bound("network ConfigMap/pod-network=true"))
	return c
}

// objects returns the objects of all components of a version that v1.7 has.
func (r *Repository) objects(version string) []*unstructured.Unstructured {
	r.t.Helper()
	var all []*unstructured.Unstructured
	for _, p := range publishedComponents(r.Tools.Infrastructure) {
		r.Edit(p.label, version, func(components string) string {
			objects, err := parseObjects(components)
			testenv.Must(r.t, err)
			all = append(all, objects...)
			return components
		})
	}
	return all
}

// uids returns the UIDs of those objects that exist.
func (w *World) uids(objects []*unstructured.Unstructured) map[string]types.UID {
	w.t.Helper()
	found := map[string]types.UID{}
	for _, o := range objects {
		live := object(o.GetAPIVersion(), o.GetKind(), o.GetNamespace(), o.GetName())
		err := w.Client.Get(w.t.Context(), client.ObjectKeyFromObject(o), live)
		if apierrors.IsNotFound(err) {
			continue
		}
		testenv.Must(w.t, err)
		found[o.GetKind()+" "+client.ObjectKeyFromObject(o).String()] = live.GetUID()
	}
	return found
}

// objects returns the UIDs of all objects in the namespace, with the keys of Inventory.
func (w *World) objects() map[string]types.UID {
	w.t.Helper()
	found := map[string]types.UID{}
	w.each(func(resource string, o metav1.PartialObjectMetadata) { found[resource+"/"+o.Name] = o.UID })
	return found
}

// secretContent returns the content of all Secrets in the namespace.
func (w *World) secretContent() string {
	w.t.Helper()
	list := &corev1.SecretList{}
	testenv.Must(w.t, w.Client.List(w.t.Context(), list, client.InNamespace(w.Namespace)))
	if len(list.Items) == 0 {
		w.t.Fatal("the Cluster has no Secrets")
	}
	var content strings.Builder
	for _, s := range list.Items {
		content.WriteString(s.Name + "\n")
		for _, key := range slices.Sorted(maps.Keys(s.Data)) {
			content.WriteString(key + "=" + string(s.Data[key]) + "\n")
		}
	}
	return content.String()
}

// storeOldVersions records all versions of the CRDs as stored, and returns in how many there are several.
func (w *World) storeOldVersions() int {
	w.t.Helper()
	api, crds := w.crds()
	several := 0
	for _, crd := range crds {
		if len(crd.Spec.Versions) == 1 {
			continue
		}
		several++
		before := crd.DeepCopy()
		crd.Status.StoredVersions = nil
		for _, v := range crd.Spec.Versions {
			crd.Status.StoredVersions = append(crd.Status.StoredVersions, v.Name)
		}
		testenv.Must(w.t, api.Status().Patch(w.t.Context(), &crd, client.MergeFrom(before)))
	}
	return several
}

// definitionsAreOurs checks that objects are stored in the version in which they were, and that definitions with v1beta2 can be converted.
func (w *World) definitionsAreOurs(before []apiextensionsv1.CustomResourceDefinition) {
	w.t.Helper()
	_, crds := w.crds()
	for _, crd := range crds {
		isNew := !slices.ContainsFunc(before, func(b apiextensionsv1.CustomResourceDefinition) bool { return b.Name == crd.Name })
		var served []string
		for _, v := range crd.Spec.Versions {
			if v.Served {
				served = append(served, v.Name)
			}
		}
		// What is stored stays v1beta1, or what was before: v1.7 could be installed again.
		stored := crd.Status.StoredVersions
		if slices.Contains(stored, "v1beta2") && !isNew || slices.ContainsFunc(stored, func(v string) bool { return !slices.Contains(served, v) }) {
			w.t.Errorf("stored versions of %s: %v", crd.Name, stored)
		}
		switch converts := crd.Spec.Conversion != nil && crd.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter; {
		case converts != slices.Contains(served, "v1beta2"):
			w.t.Errorf("%s serves %v, and is converted by a webhook: %t", crd.Name, served, converts)
		case converts && len(crd.Spec.Conversion.Webhook.ClientConfig.CABundle) == 0:
			w.t.Errorf("%s has no CA bundle", crd.Name)
		}
	}
}

// stored checks that the kinds which have a version store it, and nothing else.
func (w *World) stored(version string) {
	w.t.Helper()
	_, crds := w.crds()
	turned := 0
	for _, crd := range crds {
		if !slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == "v1beta2" && v.Served }) {
			continue
		}
		want := version
		if crd.Spec.Names.Kind == "ExtensionConfig" && version == "v1beta1" {
			want = "v1alpha1" // It has no v1beta1.
		}
		if stored := crd.Status.StoredVersions; !slices.Equal(stored, []string{want}) {
			w.t.Errorf("%s stores %v, want %s", crd.Name, stored, want)
		}
		turned++
	}
	if turned < 15 {
		w.t.Errorf("only %d kinds have v1beta2", turned)
	}
}

// nothingIsInjected checks that no object is annotated for cert-manager.
func (w *World) nothingIsInjected(objects []*unstructured.Unstructured) {
	w.t.Helper()
	for _, o := range objects {
		live := object(o.GetAPIVersion(), o.GetKind(), o.GetNamespace(), o.GetName())
		testenv.Must(w.t, w.Client.Get(w.t.Context(), client.ObjectKeyFromObject(o), live))
		if from, ok := live.GetAnnotations()[injectAnnotation]; ok {
			w.t.Errorf("%s %s still has annotation %s=%s", o.GetKind(), o.GetName(), injectAnnotation, from)
		}
	}
}
