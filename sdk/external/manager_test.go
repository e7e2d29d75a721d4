package external

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

var server testenv.Server

func TestMain(m *testing.M) { server.Main(m) }

func gadgetCRD() *apiextensionsv1.CustomResourceDefinition {
	yes := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "gadgets.external.test", Labels: map[string]string{contract.V1Beta1.Label(): "v1"}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "external.test", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "gadgets", Singular: "gadget", Kind: "Gadget", ListKind: "GadgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: &yes,
				}},
			}},
		},
	}
}

// A kind that did not exist when the manager started can be watched and read.
func TestAManagerLearnsAKindWhileItRuns(t *testing.T) {
	e := server.Start(t)
	mgr, err := ctrl.NewManager(e.Config, ctrl.Options{
		Scheme:  e.Client.Scheme(),
		Metrics: metricsserver.Options{BindAddress: "0"},
		Client:  client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		// Names must be unique in a process, and tests may run several times in one.
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	requests := make(chan reconcile.Request, 100)
	c, err := controller.New("external", mgr, controller.Options{Reconciler: reconcile.Func(
		func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			requests <- r
			return reconcile.Result{}, nil
		})})
	if err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { stopped <- mgr.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Errorf("the manager failed: %v", err)
		}
	}()
	<-mgr.Elected()

	e.Install(t, gadgetCRD())
	reader := Reader{Client: mgr.GetClient(), Versions: contract.APIVersions{Reader: mgr.GetClient()}}
	one := gadget(e.Namespace(t), "one")
	if err := e.Client.Create(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Client.Delete(t.Context(), one); err != nil {
			t.Error(err)
		}
	}()
	// The watch reports what already exists, so nothing is missed between getting an object and watching its kind.
	watcher := NewWatcher(c, mgr.GetCache())
	if err := watcher.Watch(t.Context(), one.GroupVersionKind(), &handler.EnqueueRequestForObject{}); err != nil {
		t.Fatal(err)
	}
	expect(t, requests, one)
	ref := &clusterv1.ContractVersionedObjectReference{APIGroup: "external.test", Kind: "Gadget", Name: "one"}
	got, err := reader.Get(t.Context(), ref, one.GetNamespace())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(one.Object, got.Object); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	one.SetLabels(map[string]string{"changed": "yes"})
	if err := e.Client.Update(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	expect(t, requests, one)
}

func gadget(namespace, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "external.test/v1", "kind": "Gadget", "metadata": map[string]any{"name": name, "namespace": namespace},
	}}
}

func expect(t *testing.T, requests <-chan reconcile.Request, obj client.Object) {
	t.Helper()
	select {
	case r := <-requests:
		if r.NamespacedName != client.ObjectKeyFromObject(obj) {
			t.Fatalf("request for %s, want %s", r, client.ObjectKeyFromObject(obj))
		}
	case <-time.After(time.Minute):
		t.Fatalf("no request for %s", client.ObjectKeyFromObject(obj))
	}
}
