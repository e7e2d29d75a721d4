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
	foreignGroup = "foreign.example.com"
	// foreignNewest is the newest version of the provider's API; foreignOlder is served, too.
	foreignNewest, foreignOlder = "v1beta1", "v1alpha1"
	foreignFinalizer            = "machine.foreign.example.com"
)

// foreign is a provider of infrastructure, bootstrap data and control planes that knows nothing of this project but the
// contract, as its authors in the world do: definitions, one ClusterRole, and controllers over a group of its own. Its
// machines are Nodes of the management cluster, which stands in for the workload cluster.
type foreign struct {
	client.Client
	namespace  string
	host       string
	port       int64
	kubeconfig []byte
}

// Foreign installs the provider and runs its controllers in the namespace until the test ends.
func (w *World) Foreign() {
	t := w.t
	t.Helper()
	e := shared.server.Start(t)
	for _, kind := range []string{"FooCluster", "FooMachine", "FooConfig", "FooControlPlane"} {
		e.Install(t, foreignDefinition(kind, "spec"), foreignDefinition(kind+clusterv1.TemplateSuffix, "spec", "template", "spec"))
	}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "foreign-capi", Labels: map[string]string{"cluster.x-k8s.io/aggregate-to-manager": "true"}},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{foreignGroup}, Resources: []string{"*"},
			Verbs: []string{"create", "delete", "get", "list", "patch", "update", "watch"}}},
	}
	if err := w.Client.Create(t.Context(), role); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("granting the managers their rights: %v", err)
	}
	if err := w.runForeign(); err != nil {
		t.Fatalf("starting the foreign provider: %v", err)
	}
}

func (w *World) runForeign() error {
	where, err := url.Parse(w.Config.Host)
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(where.Host)
	if err != nil {
		return err
	}
	f := &foreign{namespace: w.Namespace, host: host}
	if f.port, err = strconv.ParseInt(port, 10, 32); err != nil {
		return err
	}
	if f.kubeconfig, err = os.ReadFile(w.Kubeconfig); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(w.Config, ctrl.Options{
		Scheme: w.Client.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{w.Namespace: {}}},
		Client:     client.Options{Cache: &client.CacheOptions{Unstructured: true, DisableFor: []client.Object{&corev1.Node{}}}},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		return err
	}
	f.Client = mgr.GetClient()
	for kind, do := range map[string]func(context.Context, *unstructured.Unstructured) error{
		"FooCluster": f.cluster, "FooControlPlane": f.controlPlane, "FooConfig": f.config, "FooMachine": f.machine,
	} {
		if err := f.add(mgr, kind, do); err != nil {
			return err
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = mgr.Start(ctx) }) // Its end is ours.
	w.t.Cleanup(func() { stop(); running.Wait() })
	return nil
}

// add runs do for every object of a kind that has an owner, whenever it or the Cluster or Machine of its name changes.
func (f *foreign) add(mgr ctrl.Manager, kind string, do func(context.Context, *unstructured.Unstructured) error) error {
	sameName := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
	})
	return builder.ControllerManagedBy(mgr).Named(strings.ToLower(kind)).For(foreignObject(kind, types.NamespacedName{})).
		Watches(&clusterv1.Machine{}, sameName).Watches(&clusterv1.Cluster{}, sameName).
		Complete(reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			o := foreignObject(kind, r.NamespacedName)
			if err := f.Get(ctx, r.NamespacedName, o); err != nil || metav1.GetControllerOf(o) == nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			return reconcile.Result{}, do(ctx, o)
		}))
}

func foreignObject(kind string, name types.NamespacedName) *unstructured.Unstructured {
	return object(foreignGroup+"/"+foreignNewest, kind, name.Namespace, name.Name)
}

// cluster has its endpoint at once, and says that it is ready one step later.
func (f *foreign) cluster(ctx context.Context, o *unstructured.Unstructured) error {
	endpoint := map[string]any{"host": f.host, "port": f.port}
	return errors.Join(
		f.set(ctx, o, map[string]any{"controlPlaneEndpoint": endpoint}),
		f.say(ctx, o, map[string]any{"ready": true, "failureDomains": map[string]any{"a": map[string]any{"controlPlane": true}}}))
}

// controlPlane is run by somebody else: it has no Machines and no replicas.
func (f *foreign) controlPlane(ctx context.Context, o *unstructured.Unstructured) error {
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
	return errors.Join(err, f.say(ctx, o, map[string]any{"initialized": true, "ready": true, "version": version, "externalManagedControlPlane": true}))
}

// config has nothing to say to machines.
func (f *foreign) config(ctx context.Context, o *unstructured.Unstructured) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: o.GetName(),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(o, o.GroupVersionKind())}},
		Type: clusterv1.ClusterSecretType, Data: map[string][]byte{"value": []byte("true")},
	}
	if err := f.Create(ctx, secret); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return f.say(ctx, o, map[string]any{"ready": true, "dataSecretName": secret.Name})
}

// machine is a Node, once there is bootstrap data for it.
func (f *foreign) machine(ctx context.Context, o *unstructured.Unstructured) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: f.namespace + "-" + o.GetName()}}
	node.Spec.ProviderID = "foreign://" + node.Name
	if !o.GetDeletionTimestamp().IsZero() {
		if err := f.Delete(ctx, node); client.IgnoreNotFound(err) != nil {
			return err
		}
		before := o.DeepCopy()
		controllerutil.RemoveFinalizer(o, foreignFinalizer)
		return client.IgnoreNotFound(f.Patch(ctx, o, client.MergeFrom(before)))
	}
	machine := &clusterv1.Machine{}
	if err := f.Get(ctx, client.ObjectKeyFromObject(o), machine); err != nil || machine.Spec.Bootstrap.DataSecretName == nil {
		return client.IgnoreNotFound(err)
	}
	before := o.DeepCopy()
	if controllerutil.AddFinalizer(o, foreignFinalizer) {
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
		f.say(ctx, o, map[string]any{"ready": true, "interruptible": true,
			"addresses": []any{map[string]any{"type": "InternalIP", "address": "192.0.2.1"}}}))
}

// set writes fields of the spec, and say of the status.
func (f *foreign) set(ctx context.Context, o *unstructured.Unstructured, fields map[string]any) error {
	change := foreignObject(o.GetKind(), client.ObjectKeyFromObject(o))
	change.Object["spec"] = fields
	return client.IgnoreNotFound(f.Patch(ctx, change, client.Merge))
}

func (f *foreign) say(ctx context.Context, o *unstructured.Unstructured, fields map[string]any) error {
	change := foreignObject(o.GetKind(), client.ObjectKeyFromObject(o))
	change.Object["status"] = fields
	return client.IgnoreNotFound(f.Status().Patch(ctx, change, client.Merge))
}

// foreignDefinition is a kind that is served in two versions. What is at the path gets defaults from the API server,
// also within lists, which appliers did not ask for.
func foreignDefinition(kind string, path ...string) *apiextensionsv1.CustomResourceDefinition {
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
		ObjectMeta: metav1.ObjectMeta{Name: one + "s." + foreignGroup,
			Labels: map[string]string{clusterv1.GroupVersion.String(): foreignOlder + "_" + foreignNewest}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: foreignGroup, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: one + "s", Singular: one, Kind: kind, ListKind: kind + "List"},
		},
	}
	for _, version := range []string{foreignOlder, foreignNewest} {
		definition.Spec.Versions = append(definition.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Served: true, Storage: version == foreignNewest,
			Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &defaulted},
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
		})
	}
	return definition
}

// foreignVersion is true when a reference names the newest version of the provider's API.
func foreignVersion(what string, ref *corev1.ObjectReference) error {
	if want := (schema.GroupVersion{Group: foreignGroup, Version: foreignNewest}).String(); ref == nil || ref.APIVersion != want {
		return fmt.Errorf("%s refers to %v, want version %s", what, ref, want)
	}
	return nil
}
