package migrator

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/migration"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

var server testenv.Server

func TestMain(m *testing.M) { server.Main(m) }

// thing returns an object of the kind that TestOverAPIServer defines.
func thing(version, namespace, name, value string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"value": value}}}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: "migrator.example", Version: version, Kind: "Thing"})
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// managers returns the field managers of an object, with versions.
func managers(o client.Object) []string {
	var all []string
	for _, f := range o.GetManagedFields() {
		all = append(all, fmt.Sprintf("%s %s %s", f.Manager, f.Operation, f.APIVersion))
	}
	return all
}

// TestOverAPIServer migrates objects that two managers have written in a version that is no longer served, by a controller of a manager.
func TestOverAPIServer(t *testing.T) {
	e := server.Start(t)
	namespace := e.Namespace(t)
	crd := object.CRD(schema.GroupVersionKind{Group: "migrator.example", Version: "v1", Kind: "Thing"})
	crd.Labels[clusterv1.ProviderNameLabel] = "p"
	e.Install(t, crd)
	apply := func(o *unstructured.Unstructured, owner string) error {
		return e.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o.DeepCopy()), client.FieldOwner(owner), client.ForceOwnership)
	}
	testenv.Must(t, apply(thing("v1", namespace, "applied", "a"), "applier"))
	testenv.Must(t, e.Client.Create(t.Context(), thing("v1", namespace, "created", "a"), client.FieldOwner("creator")))
	before := map[string]string{}
	for _, name := range []string{"applied", "created"} {
		o := thing("v1", namespace, name, "")
		testenv.Must(t, e.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o))
		before[name] = o.GetResourceVersion()
	}
	// The next release stores v2, and no longer serves v1.
	testenv.Must(t, e.Client.Get(t.Context(), client.ObjectKeyFromObject(crd), crd))
	v2 := *crd.Spec.Versions[0].DeepCopy()
	v2.Name = "v2"
	crd.Spec.Versions[0].Served, crd.Spec.Versions[0].Storage = false, false
	crd.Spec.Versions = append(crd.Spec.Versions, v2)
	testenv.Must(t, e.Client.Update(t.Context(), crd))
	testenv.Eventually(t, "v2 is served", func() error {
		return e.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "applied"}, thing("v2", "", "", ""))
	})
	e.Run(t, testenv.Scheme(t), namespace, func(mgr ctrl.Manager) error {
		c := &Controller{Clients: step.ClientsOf(mgr, name, ""), Options: Options{
			Definitions: labels.SelectorFromSet(labels.Set{clusterv1.ProviderNameLabel: "p"}),
			Stores:      func(context.Context, migration.Definition) (string, error) { return "v2", nil },
		}}
		c.Clock = hurried{testclock.NewFakeClock(time.Now())}
		return step.Add(t.Context(), mgr, c.Clients, c.declared())
	})
	testenv.Eventually(t, "the definition has the mark", func() error {
		live := &apiextensionsv1.CustomResourceDefinition{}
		if err := e.Client.Get(t.Context(), client.ObjectKeyFromObject(crd), live); err != nil {
			return err
		}
		if !isMarked(live) || len(live.Status.StoredVersions) != 1 {
			return fmt.Errorf("annotations %v, stored versions %v", live.Annotations, live.Status.StoredVersions)
		}
		return nil
	})
	// Then the old version can be removed.
	testenv.Must(t, e.Client.Get(t.Context(), client.ObjectKeyFromObject(crd), crd))
	crd.Spec.Versions = crd.Spec.Versions[1:]
	testenv.Must(t, e.Client.Update(t.Context(), crd))
	for _, name := range []string{"applied", "created"} {
		o := thing("v2", namespace, name, "")
		testenv.Must(t, e.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o))
		if o.GetResourceVersion() == before[name] {
			t.Errorf("%s was not stored again", name)
		}
		if diff := cmp.Diff([]string{"crd-migration Update migrator.example/v2"}, managers(o)); diff != "" {
			t.Errorf("managers of %s, -want +got:\n%s", name, diff)
		}
		testenv.Must(t, apply(thing("v2", namespace, name, "b"), "applier"))
		empty := thing("v2", namespace, name, "")
		empty.Object["spec"] = map[string]any{"other": "c"}
		testenv.Must(t, apply(empty, "applier"), e.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o))
		if diff := cmp.Diff(map[string]any{"other": "c"}, o.Object["spec"]); diff != "" {
			t.Errorf("applying does not remove a field of %s, -want +got:\n%s", name, diff)
		}
	}
}

// hurried is a clock on which API servers have had time to notice a definition whenever it is read.
type hurried struct{ *testclock.FakeClock }

func (h hurried) Now() time.Time {
	h.Step(settle)
	return h.FakeClock.Now()
}
