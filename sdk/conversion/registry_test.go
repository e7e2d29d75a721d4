package conversion

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	infrav1beta1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta1"
	infrav1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	ipamv1alpha1 "sigs.k8s.io/cluster-api/api/ipam/v1alpha1"
	ipamv1beta1 "sigs.k8s.io/cluster-api/api/ipam/v1beta1"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
)

// The registry has every version of every kind that v1.7 and v1.14 serve, if a kind has several.
func TestRegistryIsComplete(t *testing.T) {
	facts := os.Getenv("CAPI_FACTS_DIR")
	if facts == "" {
		facts = filepath.Join("..", "..", "..", "shared", "facts")
	}
	files, err := filepath.Glob(filepath.Join(facts, "data", "crds-v1.*", "*", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Skipf("the reference data is absent, so nothing was compared: set CAPI_FACTS_DIR to the directory with data/crds-v1.7 (%v)", err)
	}
	want := map[string]map[string]bool{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(content, crd); err != nil {
			t.Fatal(err)
		}
		name := crd.Spec.Names.Kind + "." + crd.Spec.Group
		for _, version := range crd.Spec.Versions {
			if !version.Served {
				continue
			}
			if want[name] == nil {
				want[name] = map[string]bool{}
			}
			want[name][version.Name] = true
		}
	}
	maps.DeleteFunc(want, func(_ string, versions map[string]bool) bool { return len(versions) < 2 })
	got := map[string]map[string]bool{}
	registry := New(nil)
	for _, kind := range registry.Kinds() {
		got[kind.String()] = map[string]bool{}
		for _, version := range registry.Versions(kind) {
			got[kind.String()][version] = true
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestVersions(t *testing.T) {
	registry := New(nil)
	claim := schema.GroupKind{Group: ipamv1.GroupVersion.Group, Kind: "IPAddressClaim"}
	if diff := cmp.Diff([]string{"v1beta2", "v1beta1", "v1alpha1"}, registry.Versions(claim)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if hub, ok := registry.Hub(claim); !ok || hub != "v1beta2" {
		t.Errorf("the hub is %q, %t", hub, ok)
	}
	unknown := schema.GroupKind{Kind: "ConfigMap"}
	if hub, ok := registry.Hub(unknown); ok || registry.Versions(unknown) != nil {
		t.Errorf("a kind that is not converted has the hub %q and versions %v", hub, registry.Versions(unknown))
	}
	for _, kind := range registry.Kinds() {
		for _, version := range registry.Versions(kind) {
			o, err := registry.NewObject(kind.WithVersion(version))
			if err != nil {
				t.Fatal(err)
			}
			if gvk, ok := registry.KindOf(o); !ok || gvk != kind.WithVersion(version) || o.GetObjectKind().GroupVersionKind() != gvk {
				t.Errorf("%s %s has the kind %s, %t", kind, version, gvk, ok)
			}
		}
	}
}

// oldClaim is a claim of the oldest version, whose controllers find its Cluster by a label.
func oldClaim() *ipamv1alpha1.IPAddressClaim {
	claim := &ipamv1alpha1.IPAddressClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "a", UID: "u", ResourceVersion: "7", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m", APIVersion: "ipam.cluster.x-k8s.io/v1alpha1"}},
	}}
	claim.Spec.PoolRef = corev1.TypedLocalObjectReference{APIGroup: new(string), Kind: "Pool", Name: "p"}
	*claim.Spec.PoolRef.APIGroup = "ipam.example"
	return claim
}

// Objects are converted between all versions, typed or unstructured.
func TestConvert(t *testing.T) {
	registry, claim := New(nil), oldClaim()
	want := &ipamv1.IPAddressClaim{ObjectMeta: *claim.ObjectMeta.DeepCopy()}
	want.SetGroupVersionKind(ipamv1.GroupVersion.WithKind("IPAddressClaim"))
	want.Spec.ClusterName = "c"
	want.Spec.PoolRef = ipamv1.IPPoolReference{APIGroup: "ipam.example", Kind: "Pool", Name: "p"}

	typed := &ipamv1.IPAddressClaim{Status: ipamv1.IPAddressClaimStatus{AddressRef: ipamv1.IPAddressReference{Name: "stale"}}}
	if err := registry.Convert(t.Context(), claim, typed); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, typed); diff != "" {
		t.Errorf("typed (-want +got):\n%s", diff)
	}

	source := &unstructured.Unstructured{}
	var err error
	if source.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(claim); err != nil {
		t.Fatal(err)
	}
	source.SetGroupVersionKind(ipamv1alpha1.GroupVersion.WithKind("IPAddressClaim"))
	tree := newTree(want.GroupVersionKind())
	if err := registry.Convert(t.Context(), source, tree); err != nil {
		t.Fatal(err)
	}
	fromTree := &ipamv1.IPAddressClaim{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(tree.Object, fromTree); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, fromTree); diff != "" {
		t.Errorf("unstructured (-want +got):\n%s", diff)
	}

	// Between two old versions, over the hub.
	between := &ipamv1beta1.IPAddressClaim{}
	if err := registry.Convert(t.Context(), claim, between); err != nil {
		t.Fatal(err)
	}
	if between.Spec.ClusterName != "c" || between.UID != "u" || between.Annotations != nil {
		t.Errorf("v1beta1 is %+v", between)
	}

	// To the same version.
	same := newTree(ipamv1alpha1.GroupVersion.WithKind("IPAddressClaim"))
	if err := registry.Convert(t.Context(), claim, same); err != nil {
		t.Fatal(err)
	}
	if same.GetUID() != "u" || same.GetAPIVersion() != ipamv1alpha1.GroupVersion.String() {
		t.Errorf("the copy is %v", same.Object)
	}
}

// The source of a conversion and its result have nothing in common.
func TestConvertCopies(t *testing.T) {
	registry := New(nil)
	cluster := &clusterv1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: map[string]string{"a": "b"}, Finalizers: []string{"f"}}}
	cluster.Spec.ClusterNetwork = &clusterv1beta1.ClusterNetwork{Pods: &clusterv1beta1.NetworkRanges{CIDRBlocks: []string{"10.0.0.0/8"}}}
	hub, before := &clusterv1.Cluster{}, cluster.DeepCopy()
	if err := registry.Convert(t.Context(), cluster, hub); err != nil {
		t.Fatal(err)
	}
	hub.Labels["a"], hub.Finalizers[0], hub.Spec.ClusterNetwork.Pods.CIDRBlocks[0] = "x", "x", "x"
	if diff := cmp.Diff(before, cluster); diff != "" {
		t.Errorf("the source has changed (-before +after):\n%s", diff)
	}
}

func TestConvertErrors(t *testing.T) {
	registry := New(nil)
	for _, pair := range [][2]runtime.Object{
		{&corev1.ConfigMap{}, &clusterv1.Cluster{}},
		{&clusterv1.Cluster{}, &corev1.ConfigMap{}},
		{&clusterv1.Cluster{}, newTree(clusterv1.GroupVersion.WithKind("ClusterList"))},
		{&clusterv1.Cluster{}, newTree(schema.GroupVersionKind{Group: clusterv1.GroupVersion.Group, Version: "v1alpha3", Kind: "Cluster"})},
		{&clusterv1.Cluster{}, &unstructured.Unstructured{}},
	} {
		if err := registry.Convert(t.Context(), pair[0], pair[1]); !errors.Is(err, ErrUnknownKind) {
			t.Errorf("%T to %T: %v", pair[0], pair[1], err)
		}
	}
	if err := registry.Convert(t.Context(), &clusterv1.Cluster{}, &clusterv1beta1.Machine{}); err == nil {
		t.Error("a Cluster was converted to a Machine")
	}
	if kinds := registry.Kinds(); !slices.IsSortedFunc(kinds, func(a, b schema.GroupKind) int {
		if a.String() < b.String() {
			return -1
		}
		return 1
	}) {
		t.Errorf("kinds are not sorted: %v", kinds)
	}
}

// Other providers have kinds of which a field has another shape in each contract.
func TestFurtherKinds(t *testing.T) {
	group := schema.GroupVersion{Group: "infrastructure.cluster.x-k8s.io", Version: "v1alpha2"}
	older := schema.GroupVersion{Group: group.Group, Version: "v1alpha1"}
	registry := New(nil, Infrastructure[infrav1.DockerCluster, infrav1beta1.DockerCluster](group, older, "RackCluster"))
	if diff := cmp.Diff([]string{"v1alpha2", "v1alpha1"}, registry.Versions(group.WithKind("RackCluster").GroupKind())); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
	status := map[string]any{
		"ready": true, "failureDomains": map[string]any{"a": map[string]any{"controlPlane": true}},
		"conditions": []any{map[string]any{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"}},
	}
	written := newTree(older.WithKind("RackCluster"))
	written.Object["status"] = status
	now, back := newTree(group.WithKind("RackCluster")), newTree(older.WithKind("RackCluster"))
	if err := errors.Join(registry.Convert(t.Context(), written, now), registry.Convert(t.Context(), now, back)); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"initialization": map[string]any{"provisioned": true},
		"failureDomains": []any{map[string]any{"name": "a", "controlPlane": true}},
		"deprecated":     map[string]any{"v1beta1": map[string]any{"conditions": status["conditions"]}},
	}
	if diff := cmp.Diff(want, now.Object["status"]); diff != "" {
		t.Errorf("status for contract v1beta2 (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(status, back.Object["status"]); diff != "" {
		t.Errorf("status after it was converted back (-want +got):\n%s", diff)
	}
}
