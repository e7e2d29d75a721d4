package contract

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Whatever an object of a provider has in it: reading it changes nothing, writing what was read changes nothing that can be
// read, and a clone is valid JSON with the given Cluster and owner.
func FuzzObject(f *testing.F) {
	const head = `{"apiVersion":"infrastructure.cluster.x-k8s.io/v1beta1","kind":"ThingTemplate","metadata":{"name":"one","namespace":"ns"},`
	for _, rest := range []string{
		`"spec":{"controlPlaneEndpoint":{"host":"lb","port":6443},"providerID":"x://1","failureDomain":"a","providerIDList":["x://1"]},"status":{"ready":true,"failureReason":"r","failureMessage":"m","replicas":3,"capacity":{"cpu":"2"},"addresses":[{"type":"InternalIP","address":"10.0.0.1"}],"failureDomains":{"a":{"controlPlane":true}},"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2024-04-01T10:00:00Z"}]}}`,
		`"spec":{"template":{"metadata":{"labels":{"a":"b"},"annotations":null},"spec":{"x":1}}}}`, `"spec":{"template":{"metadata":"x"}}}`, `"spec":{"template":[1]}}`, `"spec":{"template":{"spec":null,"status":1,"kind":"Evil","metadata":{"name":"other","ownerReferences":[{}],"finalizers":["x"]}}}}`, `"spec":null,"status":null}`, `"status":"nope"}`,
		`"status":{"ready":"true"}}`, `"status":{"replicas":4294967296}}`, `"status":{"replicas":1.5}}`, `"status":{"conditions":{"a":1}}}`, `"status":{"conditions":[null,{"lastTransitionTime":"x"}]}}`, `"status":{"capacity":{"cpu":"é"}}}`, `"status":{"capacity":{"cpu":1e400}}}`, `"status":{"addresses":[1]}}`,
		`"spec":{"version":"v1.30.0","replicas":3,"machineTemplate":{"metadata":{"labels":{"a":"b"}},"infrastructureRef":{"kind":"K","name":"n","apiVersion":"a/b","uid":"u"},"nodeDrainTimeout":"10s","nodeDeletionTimeout":"x"}},"status":{"version":"v1.29.0","initialized":true,"readyReplicas":3,"updatedReplicas":0}}`, `"spec":{"version":"é"},"status":{"version":"v1.30"}}`,
		`"spec":{"machineTemplate":{"nodeDrainTimeout":"9999999999h"}}}`, `"spec":{"failureDomain":"","providerID":1}}`, `"spec":{"template":{"metadata":{"labels":{"a":1}}}}}`,
	} {
		f.Add([]byte(head + rest))
	}
	f.Add([]byte(`{"apiVersion":1,"kind":"K","metadata":"x"}`))
	f.Add([]byte(`{"kind":"Template"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		u := &unstructured.Unstructured{}
		if len(text) > 16<<10 || u.UnmarshalJSON(text) != nil {
			t.Skip("nothing that an API server answers")
		}
		before := runtime.DeepCopyJSON(u.Object)
		for _, version := range []Version{V1Beta1, V1Beta2} {
			o := Object{Unstructured: &unstructured.Unstructured{Object: runtime.DeepCopyJSON(before)}, Contract: version}
			got := reading(o)
			if diff := cmp.Diff(got, reading(o)); diff != "" {
				t.Errorf("the second time (-first +second):\n%s", diff)
			}
			if diff := cmp.Diff(before, o.Object); diff != "" {
				t.Fatalf("reading changes it (-before +after):\n%s", diff)
			}
			checkWriting(t, o, got)
		}
		checkClone(t, &unstructured.Unstructured{Object: before})
	})
}

// reading returns the results of all accessors, including errors.
func reading(o Object) map[string]any {
	got, err := all(o)
	if err != nil {
		got["error"] = err.Error()
	}
	put := func(name string, value any, err error) {
		if got[name] = value; err != nil {
			got[name] = err.Error()
		}
	}
	cp := ControlPlaneOf(o)
	version, err := cp.Version()
	put("version", version, err)
	replicas, err := cp.Replicas()
	put("replicas", replicas, err)
	reported, err := cp.statusReplicas()
	put("reported", reported, err)
	ref, err := cp.InfrastructureRef()
	put("ref", ref, err)
	meta, err := cp.MachineMetadata()
	put("meta", meta, err)
	upgrading, err := cp.IsUpgrading()
	put("upgrading", upgrading, err)
	scaling, err := cp.IsScaling()
	put("scaling", scaling, err)
	templateMeta, err := cp.metadata("spec", "template", "metadata")
	put("templateMeta", templateMeta, err)
	return got
}

func checkWriting(t *testing.T, o Object, before map[string]any) {
	t.Helper()
	cp := ControlPlaneOf(o)
	if meta, err := cp.MachineMetadata(); err == nil {
		if err := cp.SetMachineMetadata(meta); err != nil && len(meta.Labels)+len(meta.Annotations) > 0 {
			t.Errorf("metadata that was read: %v", err)
		}
	}
	if version, err := cp.Version(); err == nil && version != nil {
		if err := cp.SetVersion(*version); err != nil {
			t.Errorf("a version that was read: %v", err)
		}
	}
	if replicas, err := cp.Replicas(); err == nil && replicas != nil {
		if err := cp.SetReplicas(*replicas); err != nil {
			t.Errorf("replicas that were read: %v", err)
		}
	}
	after := reading(o)
	delete(before, "ref") // The contract knows less of a reference than there can be.
	delete(after, "ref")
	for _, read := range []map[string]any{before, after} {
		if meta, ok := read["meta"].(clusterv1.ObjectMeta); ok {
			if len(meta.Labels) == 0 {
				meta.Labels = nil
			}
			if len(meta.Annotations) == 0 {
				meta.Annotations = nil
			}
			read["meta"] = meta
		}
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("written as it was read (-before +after):\n%s", diff)
	}
}

func checkClone(t *testing.T, template *unstructured.Unstructured) {
	t.Helper()
	source := template.DeepCopy()
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "K", Name: "n", UID: "u"}
	clone, err := Clone(CloneInput{Template: template, Name: "clone", Namespace: "there", ClusterName: "c", Owner: &owner, Labels: map[string]string{"l": "v"}})
	if diff := cmp.Diff(source.Object, template.Object); diff != "" {
		t.Errorf("cloning changes the template (-before +after):\n%s", diff)
	}
	if err != nil {
		return
	}
	if clone.GetName() != "clone" || clone.GetNamespace() != "there" || clone.GetKind() != KindOf(template.GetKind()) || clone.GetAPIVersion() != template.GetAPIVersion() {
		t.Errorf("the clone is %s %s %s/%s", clone.GetAPIVersion(), clone.GetKind(), clone.GetNamespace(), clone.GetName())
	}
	if owners := clone.GetOwnerReferences(); !cmp.Equal([]metav1.OwnerReference{owner}, owners) || len(clone.GetFinalizers()) > 0 || clone.GetUID() != "" {
		t.Errorf("the clone has metadata of its template: %v", clone.Object["metadata"])
	}
	if labels := clone.GetLabels(); labels["l"] != "v" || labels[clusterv1.ClusterNameLabel] != "c" {
		t.Errorf("the clone has labels %v", labels)
	}
	if _, err := json.Marshal(clone.Object); err != nil {
		t.Error(err)
	}
}

// Comparing versions is an order: it has a direction, a version is equal to itself, and a leading v does not count.
func FuzzCompareVersions(f *testing.F) {
	for _, v := range []string{"v1.27.3+vendor.2", "1.27.3+vendor.10", "v1.27.3+vendor.1.x", "v1.30.0-rc.1", "v1.30", "1", "", "v", "v01.02.03", "v1.2.3+99999999999999999999", "v1.2.3+1.a.é", "v1.2.3-"} {
		for _, w := range []string{"v1.27.3+vendor.1", "v1.30.0", "x"} {
			f.Add(v, w, "v1.27.3")
		}
	}
	f.Fuzz(func(t *testing.T, a, b, c string) {
		ab, err := CompareVersions(a, b)
		ba, errBack := CompareVersions(b, a)
		if (err == nil) != (errBack == nil) || sign(ab) != -sign(ba) {
			t.Errorf("%q and %q: %d, %v; back %d, %v", a, b, ab, err, ba, errBack)
		}
		if err != nil {
			return
		}
		if aa, err := CompareVersions(a, a); aa != 0 || err != nil {
			t.Errorf("%q and itself: %d, %v", a, aa, err)
		}
		bc, err := CompareVersions(b, c)
		if err != nil {
			return
		}
		if ac, err := CompareVersions(a, c); err != nil || ab <= 0 && bc <= 0 && ac > 0 || ab >= 0 && bc >= 0 && ac < 0 {
			t.Errorf("%q, %q, %q: %d, %d, but %d, %v", a, b, c, ab, bc, ac, err)
		}
	})
}

func sign(n int) int { return min(max(n, -1), 1) }

// The newest version of a label is one of those in it, and is the same whatever their order.
func FuzzNewest(f *testing.F) {
	for _, label := range []string{"v1_v2alpha1_v1beta2", "", "_", "v1", "v1beta10_v1beta2", "é_x", "v1__v2", "v99999999999999999999_v1"} {
		f.Add(label)
	}
	newest := func(t *testing.T, label string) string {
		t.Helper()
		found, err := APIVersions{Reader: definitions{"things.g": {V1Beta2.Label(): label}}}.Newest(t.Context(), schema.GroupKind{Group: "g", Kind: "Thing"})
		if (err == nil) != (strings.Trim(label, "_") != "") {
			t.Errorf("%q: %v", label, err)
		}
		return found.Version
	}
	f.Fuzz(func(t *testing.T, label string) {
		versions := strings.Split(label, "_")
		found := newest(t, label)
		if !slices.Contains(append(versions, ""), found) {
			t.Errorf("%q of %q", found, label)
		}
		slices.Reverse(versions)
		if other := newest(t, strings.Join(versions, "_")); version.CompareKubeAwareVersionStrings(other, found) != 0 {
			t.Errorf("%q of %q, but %q the other way round", found, label, other)
		}
	})
}
