package templates

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

var build = object.Builder{Namespace: "ns"}

func kind(name string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "test.io", Version: "v1", Kind: name}
}

func spec(bootstrap, infrastructure string) clusterv1.MachineTemplateSpec {
	return clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{
		Bootstrap:         clusterv1.Bootstrap{ConfigRef: *object.Reference(kind("BootTemplate"), bootstrap)},
		InfrastructureRef: *object.Reference(kind("InfraTemplate"), infrastructure),
	}}
}

func deployment(bootstrap, infrastructure string, deleting bool) *clusterv1.MachineDeployment {
	md := build.MachineDeployment("md")
	md.Finalizers = []string{clusterv1.MachineDeploymentTopologyFinalizer}
	md.Spec.Template = spec(bootstrap, infrastructure)
	return ofTopology(md, deleting)
}

func set(name, bootstrap, infrastructure string, deleting bool) *clusterv1.MachineSet {
	ms := build.MachineSet(name)
	ms.Finalizers = []string{clusterv1.MachineSetTopologyFinalizer}
	ms.Labels[clusterv1.MachineDeploymentNameLabel] = "md"
	ms.Spec.Template = spec(bootstrap, infrastructure)
	return ofTopology(ms, deleting)
}

func ofTopology[T client.Object](obj T, deleting bool) T {
	obj.GetLabels()[clusterv1.ClusterTopologyOwnedLabel] = ""
	if deleting {
		object.Deleting(obj)
	}
	return obj
}

func template(name, of string, labels map[string]string) *unstructured.Unstructured {
	u := build.Template(kind(name), of)
	u.SetLabels(labels)
	return u
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
		"KindGone": {
			reason: "templates of kinds that are not installed do not exist", want: []string{"b1", "b2", "i2", "user"},
			deleted: func() client.Object {
				ms := set("old", "b1", "i1", true)
				ms.Spec.Template.Spec.Bootstrap.ConfigRef = *object.Reference(kind("Gadget"), "g")
				return ms
			}(),
		},
		"GoneAlready": {reason: "templates that no longer exist do not block the deletion", deleted: set("old", "b3", "i3", true), want: []string{"b1", "b2", "i1", "i2", "user"}},
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

func world(t *testing.T, objects ...client.Object) (*fakeapi.Server, Cleaner) {
	t.Helper()
	owned := map[string]string{clusterv1.ClusterTopologyOwnedLabel: ""}
	objects = append(objects, object.CRD(kind("BootTemplate")), object.CRD(kind("InfraTemplate")),
		template("BootTemplate", "b1", owned), template("BootTemplate", "b2", owned), template("BootTemplate", "user", nil),
		template("InfraTemplate", "i1", owned), template("InfraTemplate", "i2", owned))
	s := fakeapi.New(t, fakeapi.Options{Objects: objects})
	clients := s.ForController()
	live := external.Reader{Client: clients.Live, Versions: contract.APIVersions{Reader: clients.Client}}
	return s, Cleaner{Clients: clients, External: fakeapi.External(clients), LiveExternal: live}
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
			live, cleaner := world(t, append(tc.live, old.DeepCopy())...)
			live.Cache.Hide(append(tc.live, template("BootTemplate", "b1", nil))...)
			live.Cache.Show(tc.cached...)
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
		testenv.Must(t, c.List(t.Context(), list, client.InNamespace("ns")))
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
