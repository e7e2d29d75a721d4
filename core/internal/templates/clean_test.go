package templates

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/contract"
	"sigs.k8s.io/cluster-api/provider/external"
	"sigs.k8s.io/cluster-api/provider/step"
)

func spec(bootstrap, infrastructure string) clusterv1.MachineTemplateSpec {
	return clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{
		Bootstrap:         clusterv1.Bootstrap{ConfigRef: &corev1.ObjectReference{APIVersion: "test.io/v1", Kind: "BootTemplate", Name: bootstrap}},
		InfrastructureRef: corev1.ObjectReference{APIVersion: "test.io/v1", Kind: "InfraTemplate", Name: infrastructure},
	}}
}

func deployment(bootstrap, infrastructure string, deleting bool) *clusterv1.MachineDeployment {
	md := &clusterv1.MachineDeployment{ObjectMeta: objectMeta("md", deleting, clusterv1.MachineDeploymentTopologyFinalizer)}
	md.Spec.Template = spec(bootstrap, infrastructure)
	return md
}

func set(name, bootstrap, infrastructure string, deleting bool) *clusterv1.MachineSet {
	ms := &clusterv1.MachineSet{ObjectMeta: objectMeta(name, deleting, clusterv1.MachineSetTopologyFinalizer)}
	ms.Labels[clusterv1.MachineDeploymentNameLabel] = "md"
	ms.Spec.Template = spec(bootstrap, infrastructure)
	return ms
}

func objectMeta(name string, deleting bool, finalizer string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{clusterv1.ClusterTopologyOwnedLabel: ""}, Finalizers: []string{finalizer}}
	if deleting {
		m.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	}
	return m
}

func template(kind, name string, labels map[string]string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("test.io/v1")
	u.SetKind(kind)
	u.SetNamespace("ns")
	u.SetName(name)
	u.SetLabels(labels)
	return u
}

func crd(name string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{contract.Label(): "v1"}}}
}

func TestDeletingTemplates(t *testing.T) {
	cases := map[string]struct {
		reason  string
		deleted client.Object
		others  []client.Object
		want    []string // remaining templates
	}{
		"DeploymentAlone": {reason: "no other object uses the templates", deleted: deployment("b1", "i1", true), want: []string{"b2", "i2", "user"}},
		"DeploymentWithSet": {
			reason: "another MachineSet uses one of the templates", deleted: deployment("b1", "i1", true),
			others: []client.Object{set("ms", "b1", "i2", false)}, want: []string{"b1", "b2", "i2", "user"},
		},
		"SetOfRevision": {
			reason: "the MachineDeployment uses another infrastructure template now", deleted: set("old", "b1", "i1", true),
			others: []client.Object{deployment("b1", "i2", false)}, want: []string{"b1", "b2", "i2", "user"},
		},
		"SetsTogether": {
			reason: "objects that are being deleted need no templates", deleted: set("old", "b1", "i1", true),
			others: []client.Object{set("other", "b1", "i1", true), deployment("b1", "i1", true)}, want: []string{"b2", "i2", "user"},
		},
		"SetWithoutDeployment": {reason: "the MachineDeployment is gone", deleted: set("old", "b1", "i1", true), want: []string{"b2", "i2", "user"}},
		"UsersTemplate":        {reason: "a template of a user is kept", deleted: set("old", "user", "i1", true), want: []string{"b1", "b2", "i2", "user"}},
		"GoneAlready":          {reason: "templates that no longer exist do not block the deletion", deleted: set("old", "b3", "i3", true), want: []string{"b1", "b2", "i1", "i2", "user"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, cleaner := world(t, append(tc.others, tc.deleted)...)
			var err error
			switch obj := tc.deleted.(type) {
			case *clusterv1.MachineDeployment:
				_, err = cleaner.MachineDeployment(t.Context(), obj)
			case *clusterv1.MachineSet:
				_, err = cleaner.MachineSet(t.Context(), obj)
			}
			if err != nil || len(tc.deleted.GetFinalizers()) != 0 {
				t.Errorf("%s: finalizers = %v, err = %v", tc.reason, tc.deleted.GetFinalizers(), err)
			}
			if diff := cmp.Diff(tc.want, remaining(t, c)); diff != "" {
				t.Errorf("%s: templates, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func world(t *testing.T, objects ...client.Object) (client.Client, Cleaner) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	owned := map[string]string{clusterv1.ClusterTopologyOwnedLabel: ""}
	objects = append(objects, crd("boottemplates.test.io"), crd("infratemplates.test.io"),
		template("BootTemplate", "b1", owned), template("BootTemplate", "b2", owned), template("BootTemplate", "user", nil),
		template("InfraTemplate", "i1", owned), template("InfraTemplate", "i2", owned))
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	reader := external.Reader{Client: c, Versions: contract.APIVersions{Reader: c}}
	return c, Cleaner{Outside: step.Outside{Client: c, Live: c}, External: reader, LiveExternal: reader}
}

// TestStaleCache has different objects in the cache and in the API server.
func TestStaleCache(t *testing.T) {
	for _, tc := range []struct {
		reason       string
		cached, live []client.Object
		want         []string
	}{
		{"a MachineSet that exists only in the cache needs no template",
			[]client.Object{set("gone", "b1", "i1", false), deployment("b1", "i1", false)},
			[]client.Object{deployment("b2", "i2", false)}, []string{"b2", "i2", "user"}},
		{"a MachineSet that is not in the cache yet needs its templates",
			[]client.Object{deployment("b2", "i2", false)},
			[]client.Object{set("new", "b1", "i1", false), deployment("b2", "i2", false)}, []string{"b1", "b2", "i1", "i2", "user"}},
		{"a MachineDeployment that uses the templates again needs them",
			[]client.Object{deployment("b2", "i2", false)}, []client.Object{deployment("b1", "i1", false)}, []string{"b1", "b2", "i1", "i2", "user"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			old := set("old", "b1", "i1", true)
			cached, cleaner := world(t, append(tc.cached, old.DeepCopy())...)
			live, other := world(t, append(tc.live, old.DeepCopy())...)
			cleaner.Client, cleaner.Live, cleaner.LiveExternal = live, live, other.LiveExternal
			if err := cached.Delete(t.Context(), template("BootTemplate", "b1", nil)); err != nil { // it is missing in the cache
				t.Fatal(err)
			}
			if _, err := cleaner.MachineSet(t.Context(), old); err != nil || len(old.Finalizers) != 0 {
				t.Errorf("finalizers = %v, err = %v", old.Finalizers, err)
			}
			if diff := cmp.Diff(tc.want, remaining(t, live)); diff != "" {
				t.Errorf("templates, -want +got:\n%s", diff)
			}
		})
	}
}

func remaining(t *testing.T, c client.Client) []string {
	t.Helper()
	var names []string
	for _, kind := range []string{"BootTemplate", "InfraTemplate"} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("test.io/v1")
		list.SetKind(kind + "List")
		if err := c.List(t.Context(), list, client.InNamespace("ns")); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			names = append(names, list.Items[i].GetName())
		}
	}
	slices.Sort(names)
	return names
}

func TestFinalizer(t *testing.T) {
	ms := set("ms", "b1", "i1", false)
	ms.Finalizers = nil
	_, cleaner := world(t, ms)
	if _, err := cleaner.MachineSet(t.Context(), ms); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{clusterv1.MachineSetTopologyFinalizer}, ms.Finalizers); diff != "" {
		t.Errorf("finalizers, -want +got:\n%s", diff)
	}
}
