package journey

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

const (
	thirdPartyGroup = "thirdparty.example.com"
	// newestVersion is the newest version of the provider's API; olderVersion is also served.
	newestVersion, olderVersion = "v1beta1", "v1alpha1"
	thirdPartyFinalizer         = "machine.thirdparty.example.com"
)

// thirdParty is a provider of infrastructure, bootstrap data and control planes that depends only on the contract, as
// providers outside of this project do: CRDs, one ClusterRole, and controllers for its own API group. Its machines are Nodes
// of the management cluster, which is also the workload cluster.
type thirdParty struct {
	client.Client
	namespace  string
	host       string
	port       int64
	kubeconfig []byte
}

// ThirdPartyProvider installs the provider and runs its controllers in the namespace until the test ends.
func (w *World) ThirdPartyProvider() {
	w.t.Helper()
	w.installThirdParty()
	w.startThirdParty(w.newThirdParty())
}

// startThirdParty runs the controllers until the test ends.
func (w *World) startThirdParty(f *thirdParty, mgr ctrl.Manager) {
	w.t.Helper()
	for kind, do := range map[string]func(context.Context, *unstructured.Unstructured) error{
		"FooCluster": f.cluster, "FooControlPlane": f.controlPlane, "FooConfig": f.config, "FooMachine": f.machine,
	} {
		if err := f.add(mgr, kind, do); err != nil {
			w.t.Fatalf("starting the third-party provider: %v", err)
		}
	}
	w.runUntilEnd(mgr)
}

// installThirdParty installs the CRDs, and grants the managers permissions for them.
func (w *World) installThirdParty() {
	t := w.t
	t.Helper()
	e := shared.server.Start(t)
	for _, kind := range []string{"FooCluster", "FooMachine", "FooConfig", "FooControlPlane"} {
		e.Install(t, thirdPartyDefinition(kind, "spec"), thirdPartyDefinition(kind+clusterv1.TemplateSuffix, "spec", "template", "spec"))
	}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "thirdparty-capi", Labels: map[string]string{"cluster.x-k8s.io/aggregate-to-manager": "true"}},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{thirdPartyGroup}, Resources: []string{"*"},
			Verbs: []string{"create", "delete", "get", "list", "patch", "update", "watch"}}},
	}
	if err := w.Client.Create(t.Context(), role); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("granting permissions to the managers: %v", err)
	}
}

// newThirdParty returns the provider, and a manager for its controllers. Its workload cluster is the management cluster.
func (w *World) newThirdParty() (*thirdParty, ctrl.Manager) {
	t := w.t
	t.Helper()
	address, err := url.Parse(w.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(address.Host)
	if err != nil {
		t.Fatal(err)
	}
	f := &thirdParty{namespace: w.Namespace, host: host}
	if f.port, err = strconv.ParseInt(port, 10, 32); err != nil {
		t.Fatal(err)
	}
	if f.kubeconfig, err = os.ReadFile(w.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(w.Config, ctrl.Options{
		Scheme: w.Client.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{w.Namespace: {}}},
		Client: client.Options{
			Cache: &client.CacheOptions{Unstructured: true, DisableFor: []client.Object{&corev1.Node{}, &corev1.Secret{}}},
		},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		t.Fatalf("starting the third-party provider: %v", err)
	}
	f.Client = mgr.GetClient()
	return f, mgr
}

// runUntilEnd runs a manager until the test ends.
func (w *World) runUntilEnd(mgr ctrl.Manager) {
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = mgr.Start(ctx) }) // It ends with the context.
	w.t.Cleanup(func() { stop(); running.Wait() })
}

// add runs do for every object of a kind with an owner, when it or the Cluster or Machine with its name changes.
func (f *thirdParty) add(mgr ctrl.Manager, kind string, do func(context.Context, *unstructured.Unstructured) error) error {
	sameName := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
	})
	return builder.ControllerManagedBy(mgr).Named(strings.ToLower(kind)).For(thirdPartyObject(kind, types.NamespacedName{})).
		Watches(&clusterv1.Machine{}, sameName).Watches(&clusterv1.Cluster{}, sameName).
		Complete(reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			o := thirdPartyObject(kind, r.NamespacedName)
			if err := f.Get(ctx, r.NamespacedName, o); err != nil || metav1.GetControllerOf(o) == nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			return reconcile.Result{}, do(ctx, o)
		}))
}

func thirdPartyObject(kind string, name types.NamespacedName) *unstructured.Unstructured {
	return object(thirdPartyGroup+"/"+newestVersion, kind, name.Namespace, name.Name)
}

// cluster sets the endpoint, and then the status.
func (f *thirdParty) cluster(ctx context.Context, o *unstructured.Unstructured) error {
	endpoint := map[string]any{"host": f.host, "port": f.port}
	return errors.Join(
		f.set(ctx, o, map[string]any{"controlPlaneEndpoint": endpoint}),
		f.setStatus(ctx, o, map[string]any{"ready": true, "failureDomains": map[string]any{"a": map[string]any{"controlPlane": true}}}))
}

// controlPlane reports an externally managed control plane, which has no Machines and no replicas.
func (f *thirdParty) controlPlane(ctx context.Context, o *unstructured.Unstructured) error {
	name := o.GetLabels()[clusterv1.ClusterNameLabel]
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name + "-kubeconfig",
			Labels:          map[string]string{clusterv1.ClusterNameLabel: name},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(o, o.GroupVersionKind())}},
		Type: clusterv1.ClusterSecretType, Data: map[string][]byte{"value": f.kubeconfig},
	}
	if err := f.Create(ctx, secret); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	version, _, err := unstructured.NestedString(o.Object, "spec", "version")
	return errors.Join(err,
		f.setStatus(ctx, o, map[string]any{"initialized": true, "ready": true, "version": version, "externalManagedControlPlane": true}))
}

// config creates bootstrap data without content.
func (f *thirdParty) config(ctx context.Context, o *unstructured.Unstructured) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: o.GetName(),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(o, o.GroupVersionKind())}},
		Type: clusterv1.ClusterSecretType, Data: map[string][]byte{"value": []byte("true")},
	}
	if err := f.Create(ctx, secret); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return f.setStatus(ctx, o, map[string]any{"ready": true, "dataSecretName": secret.Name})
}

// machine creates a Node when there is bootstrap data.
func (f *thirdParty) machine(ctx context.Context, o *unstructured.Unstructured) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: f.namespace + "-" + o.GetName()}}
	node.Spec.ProviderID = "thirdparty://" + node.Name
	if !o.GetDeletionTimestamp().IsZero() {
		if err := f.Delete(ctx, node); client.IgnoreNotFound(err) != nil {
			return err
		}
		before := o.DeepCopy()
		controllerutil.RemoveFinalizer(o, thirdPartyFinalizer)
		return client.IgnoreNotFound(f.Patch(ctx, o, client.MergeFrom(before)))
	}
	machine := &clusterv1.Machine{}
	if err := f.Get(ctx, client.ObjectKeyFromObject(o), machine); err != nil || machine.Spec.Bootstrap.DataSecretName == nil {
		return client.IgnoreNotFound(err)
	}
	before := o.DeepCopy()
	if controllerutil.AddFinalizer(o, thirdPartyFinalizer) {
		if err := f.Patch(ctx, o, client.MergeFrom(before)); err != nil {
			return err
		}
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if err := f.Create(ctx, node.DeepCopy()); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := f.Status().Patch(ctx, node, client.Merge); err != nil {
		return err
	}
	return errors.Join(
		f.set(ctx, o, map[string]any{"providerID": node.Spec.ProviderID, "failureDomain": "a"}),
		f.setStatus(ctx, o, map[string]any{"ready": true, "interruptible": true,
			"addresses": []any{map[string]any{"type": "InternalIP", "address": "192.0.2.1"}}}))
}

// set patches the spec, and setStatus the status.
func (f *thirdParty) set(ctx context.Context, o *unstructured.Unstructured, fields map[string]any) error {
	change := thirdPartyObject(o.GetKind(), client.ObjectKeyFromObject(o))
	change.Object["spec"] = fields
	return client.IgnoreNotFound(f.Patch(ctx, change, client.Merge))
}

func (f *thirdParty) setStatus(ctx context.Context, o *unstructured.Unstructured, fields map[string]any) error {
	change := thirdPartyObject(o.GetKind(), client.ObjectKeyFromObject(o))
	change.Object["status"] = fields
	return client.IgnoreNotFound(f.Status().Patch(ctx, change, client.Merge))
}

// thirdPartyDefinition returns the CRD of a kind with two versions. The API server sets defaults for the fields at path,
// including fields in lists, that field managers have not applied.
func thirdPartyDefinition(kind string, path ...string) *apiextensionsv1.CustomResourceDefinition {
	defaulted := apiextensionsv1.JSONSchemaProps{
		Type: "object", XPreserveUnknownFields: ptr.To(true),
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"size": {Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"small"`)}},
			"disks": {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"gb": {Type: "integer", Default: &apiextensionsv1.JSON{Raw: []byte(`10`)}},
				},
			}}},
		},
	}
	for _, name := range slices.Backward(path) {
		defaulted = apiextensionsv1.JSONSchemaProps{
			Type: "object", XPreserveUnknownFields: ptr.To(true),
			Properties: map[string]apiextensionsv1.JSONSchemaProps{name: defaulted},
		}
	}
	one := strings.ToLower(kind)
	definition := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: one + "s." + thirdPartyGroup,
			Labels: map[string]string{clusterv1.GroupVersion.String(): olderVersion + "_" + newestVersion}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: thirdPartyGroup, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: one + "s", Singular: one, Kind: kind, ListKind: kind + "List"},
		},
	}
	for _, version := range []string{olderVersion, newestVersion} {
		definition.Spec.Versions = append(definition.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Served: true, Storage: version == newestVersion,
			Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &defaulted},
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
		})
	}
	return definition
}

// refersToVersion checks that a reference has a version of the provider's API.
func refersToVersion(what, version string, ref *corev1.ObjectReference) error {
	if want := (schema.GroupVersion{Group: thirdPartyGroup, Version: version}).String(); ref == nil || ref.APIVersion != want {
		return fmt.Errorf("%s has reference %v, want version %s", what, ref, want)
	}
	return nil
}
