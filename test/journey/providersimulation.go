package journey

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

const (
	// simulatedPorts are the ports of API servers in this management cluster. No other management cluster has them, so a port that was
	// chosen remains free. simulatedLimit is above the last.
	simulatedPorts = "28001-30000"
	simulatedLimit = 30001
	// simulationFinalizer keeps an infrastructure machine until its simulated machine is removed.
	simulationFinalizer = "machine.simulation.example.com"
)

// simulation does what the managers of infrastructure providers would do, in a simulated cloud: each of their clusters and machines has an
// in-memory one with the same name. The in-memory machine belongs to the same Machine, starts with its bootstrap data, and has a Node. The
// in-memory cluster is managed externally, by the simulation. Core and kubeadm providers only see objects of the infrastructure provider,
// with the fields that the contract of their definition has.
//
// Like every provider, it does nothing to paused Clusters, such as those that are being moved.
//
// Pools of machines, and clusters whose control plane is not a KubeadmControlPlane, have no simulation: nothing happens to them.
type simulation struct {
	client.Client
	// host is that of all API servers, and addresses of machines.
	host string
	// ports has the port of the API server of each cluster, by namespace, and whole the namespaces in which machines start. They are only
	// read.
	ports map[string]int
	whole map[string]bool
}

// startSimulation runs a simulation of the kinds of these definitions until the test ends.
func startSimulation(t testing.TB, m *Management, definitions []apiextensionsv1.CustomResourceDefinition, s *simulation) {
	t.Helper()
	mgr, err := ctrl.NewManager(m.Config, ctrl.Options{
		Scheme: m.Client.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Client:     client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	testenv.Must(t, err)
	s.Client = mgr.GetClient()
	versions := contract.APIVersions{Reader: m.Client}
	for _, crd := range definitions {
		kind := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
		cluster, machine := strings.HasSuffix(kind.Kind, "Cluster"), strings.HasSuffix(kind.Kind, "Machine")
		if kind.Kind == "InMemoryCluster" || kind.Kind == "InMemoryMachine" || !cluster && !machine {
			continue
		}
		version, err := versions.Newest(t.Context(), kind)
		testenv.Must(t, err)
		if cluster {
			testenv.Must(t, s.add(mgr, version, s.cluster, &clusterv1.Cluster{}))
		} else {
			testenv.Must(t, s.add(mgr, version, s.machine, &clusterv1.Machine{}, inMemoryMachine(types.NamespacedName{})))
		}
	}
	(&World{Management: m, t: t}).runUntilEnd(mgr)
}

// add runs do for the objects of a kind that have a controller, when they change, or what refers to them or has the same name.
func (s *simulation) add(
	mgr ctrl.Manager, kind schema.GroupVersionKind, do func(context.Context, *unstructured.Unstructured) error, watched ...client.Object,
) error {
	mapped := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		ref := &corev1.ObjectReference{Kind: kind.Kind, Name: o.GetName()}
		switch o := o.(type) {
		case *clusterv1.Machine:
			ref = &o.Spec.InfrastructureRef
		case *clusterv1.Cluster:
			ref = o.Spec.InfrastructureRef
		}
		if ref == nil || ref.Kind != kind.Kind {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: ref.Name}}}
	})
	apiVersion := kind.GroupVersion().String()
	b := builder.ControllerManagedBy(mgr).Named(strings.ToLower(kind.Kind)).For(object(apiVersion, kind.Kind, "", ""))
	for _, o := range watched {
		b = b.Watches(o, mapped)
	}
	return b.Complete(reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
		o := object(apiVersion, kind.Kind, r.Namespace, r.Name)
		if err := s.Get(ctx, r.NamespacedName, o); err != nil || metav1.GetControllerOf(o) == nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		if paused, err := s.paused(ctx, o); err != nil || paused {
			return reconcile.Result{}, err
		}
		return reconcile.Result{}, do(ctx, o)
	}))
}

// paused reports whether the Cluster of an object is paused. A change of the Cluster leads to its infrastructure, and the end of a move to
// new objects.
func (s *simulation) paused(ctx context.Context, o *unstructured.Unstructured) (bool, error) {
	cluster := &clusterv1.Cluster{}
	err := s.Get(ctx, types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetLabels()[clusterv1.ClusterNameLabel]}, cluster)
	return cluster.Spec.Paused, client.IgnoreNotFound(err)
}

// cluster creates the in-memory cluster, which is garbage when its original is deleted, and reports the endpoint.
func (s *simulation) cluster(ctx context.Context, o *unstructured.Unstructured) error {
	cluster := &clusterv1.Cluster{}
	key := types.NamespacedName{Namespace: o.GetNamespace(), Name: metav1.GetControllerOf(o).Name}
	if err := s.Get(ctx, key, cluster); err != nil || !o.GetDeletionTimestamp().IsZero() {
		return client.IgnoreNotFound(err)
	}
	if ref := cluster.Spec.ControlPlaneRef; ref == nil || ref.Kind != "KubeadmControlPlane" {
		return nil
	}
	endpoint := map[string]any{"host": s.host, "port": int64(s.ports[o.GetNamespace()])}
	simulated := inMemoryCluster(client.ObjectKeyFromObject(o))
	simulated.SetLabels(map[string]string{clusterv1.ClusterNameLabel: cluster.Name})
	simulated.SetAnnotations(map[string]string{clusterv1.ManagedByAnnotation: "simulation"})
	simulated.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(o, o.GroupVersionKind())})
	simulated.Object["spec"] = map[string]any{"controlPlaneEndpoint": endpoint}
	if err := s.Create(ctx, simulated); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return s.report(ctx, o, map[string]any{"controlPlaneEndpoint": endpoint}, map[string]any{})
}

func inMemoryMachine(key types.NamespacedName) *unstructured.Unstructured {
	return object(inmemoryv1.GroupVersion.String(), "InMemoryMachine", key.Namespace, key.Name)
}

// machine creates the in-memory machine when there is bootstrap data, and reports its provider ID when it has one.
func (s *simulation) machine(ctx context.Context, o *unstructured.Unstructured) error {
	simulated := inMemoryMachine(client.ObjectKeyFromObject(o))
	err := s.Get(ctx, client.ObjectKeyFromObject(o), simulated)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return err
	case !o.GetDeletionTimestamp().IsZero() && err == nil:
		return client.IgnoreNotFound(s.Delete(ctx, simulated)) // Its last event continues.
	case !o.GetDeletionTimestamp().IsZero():
		before := o.DeepCopy()
		controllerutil.RemoveFinalizer(o, simulationFinalizer)
		return client.IgnoreNotFound(s.Patch(ctx, o, client.MergeFrom(before)))
	case err != nil && !s.whole[o.GetNamespace()]:
		return nil
	case err != nil:
		return s.start(ctx, o, simulated)
	}
	id, _, err := unstructured.NestedString(simulated.Object, "spec", "providerID")
	if ready, _, _ := unstructured.NestedBool(simulated.Object, "status", "ready"); err != nil || !ready {
		return err
	}
	addresses := []any{map[string]any{"type": string(clusterv1.MachineInternalIP), "address": s.host}}
	return s.report(ctx, o, map[string]any{"providerID": id}, map[string]any{"addresses": addresses})
}

// start creates the in-memory machine of an infrastructure machine.
func (s *simulation) start(ctx context.Context, o, simulated *unstructured.Unstructured) error {
	machine, owner := &clusterv1.Machine{}, metav1.GetControllerOf(o)
	err := s.Get(ctx, types.NamespacedName{Namespace: o.GetNamespace(), Name: owner.Name}, machine)
	if err != nil || machine.UID != owner.UID || machine.Spec.Bootstrap.DataSecretName == nil {
		return client.IgnoreNotFound(err)
	}
	before := o.DeepCopy()
	if controllerutil.AddFinalizer(o, simulationFinalizer) {
		if err := s.Patch(ctx, o, client.MergeFrom(before)); err != nil {
			return err
		}
	}
	simulated.SetLabels(map[string]string{clusterv1.ClusterNameLabel: machine.Spec.ClusterName})
	simulated.SetOwnerReferences([]metav1.OwnerReference{*owner})
	simulated.Object["spec"] = map[string]any{}
	if err := s.Create(ctx, simulated); !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

// report writes spec and status of an object that is ready. A definition has the field of its contract, or of both; the API server drops
// others.
func (s *simulation) report(ctx context.Context, o *unstructured.Unstructured, spec, status map[string]any) error {
	status["ready"], status["initialization"] = true, map[string]any{"provisioned": true}
	change := object(o.GetAPIVersion(), o.GetKind(), o.GetNamespace(), o.GetName())
	change.Object["spec"] = spec
	if err := s.Patch(ctx, change.DeepCopy(), client.Merge); err != nil {
		return client.IgnoreNotFound(err)
	}
	delete(change.Object, "spec")
	change.Object["status"] = status
	return client.IgnoreNotFound(s.Status().Patch(ctx, change, client.Merge))
}

// moveInMemory gives the in-memory provider of a management cluster of capi simulatedPorts on a host, and waits until it runs with them.
func (m *Management) moveInMemory(t testing.TB, host string) {
	t.Helper()
	list := &appsv1.DeploymentList{}
	testenv.Must(t, m.Client.List(t.Context(), list, client.MatchingLabels{clusterv1.ProviderNameLabel: "infrastructure-" + inMemory}))
	if len(list.Items) != 1 {
		t.Fatalf("the in-memory provider has %d Deployments", len(list.Items))
	}
	d := &list.Items[0]
	before := d.DeepCopy()
	container := &d.Spec.Template.Spec.Containers[0]
	container.Args = append(container.Args, "--api-server-ports="+simulatedPorts)
	others := slices.DeleteFunc(container.Env, func(v corev1.EnvVar) bool { return v.Name == "POD_IP" })
	container.Env = append(others, corev1.EnvVar{Name: "POD_IP", Value: host})
	testenv.Must(t, m.Client.Patch(t.Context(), d, client.StrategicMergeFrom(before)))
	testenv.Eventually(t, "the in-memory provider has other ports", func() error {
		if err := m.Client.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
			return err
		}
		if s := d.Status; s.ObservedGeneration != d.Generation || s.UpdatedReplicas != 1 || s.AvailableReplicas != 1 || s.Replicas != 1 {
			return fmt.Errorf("status %+v", s)
		}
		return nil
	})
}
