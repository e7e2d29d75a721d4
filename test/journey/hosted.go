package journey

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/pki"
)

// holdAnnotation on a FooControlPlane is for tests: its API servers keep their version.
const holdAnnotation = thirdPartyGroup + "/hold"

// hosting is a provider of control planes without Machines that depends only on the contract: it creates CA and kubeconfig, and runs
// API servers, which are those of in-memory clusters. Their workers are in-memory machines.
type hosting struct{ *thirdParty }

// HostedControlPlaneProvider installs the CRDs of the third-party provider, and runs a controller for FooControlPlanes that hosts the
// control planes of InMemoryClusters.
func (w *World) HostedControlPlaneProvider() {
	w.t.Helper()
	w.installThirdParty()
	f, mgr := w.newThirdParty()
	if err := (&hosting{f}).start(mgr); err != nil {
		w.t.Fatalf("starting the provider of hosted control planes: %v", err)
	}
	w.runUntilEnd(mgr)
}

func (h *hosting) start(mgr ctrl.Manager) error {
	mapped := handler.EnqueueRequestsFromMapFunc(h.ofCluster)
	return builder.ControllerManagedBy(mgr).Named("hosting").For(thirdPartyObject("FooControlPlane", types.NamespacedName{})).
		Watches(&clusterv1.Cluster{}, mapped).Watches(inMemoryCluster(types.NamespacedName{}), mapped).
		Complete(reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			o := thirdPartyObject("FooControlPlane", r.NamespacedName)
			if err := h.Get(ctx, r.NamespacedName, o); err != nil || metav1.GetControllerOf(o) == nil || !o.GetDeletionTimestamp().IsZero() {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			return reconcile.Result{}, h.reconcile(ctx, o)
		}))
}

func inMemoryCluster(key types.NamespacedName) *unstructured.Unstructured {
	return object(inmemoryv1.GroupVersion.String(), "InMemoryCluster", key.Namespace, key.Name)
}

// ofCluster maps a Cluster, or an object with its label, to its control plane.
func (h *hosting) ofCluster(ctx context.Context, o client.Object) []reconcile.Request {
	name := o.GetLabels()[clusterv1.ClusterNameLabel]
	if _, ok := o.(*clusterv1.Cluster); ok {
		name = o.GetName()
	}
	cluster := &clusterv1.Cluster{}
	if err := h.Get(ctx, types.NamespacedName{Namespace: o.GetNamespace(), Name: name}, cluster); err != nil ||
		cluster.Spec.ControlPlaneRef == nil {
		return nil // It is deleted, or not ready: the next event follows.
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: cluster.Spec.ControlPlaneRef.Name}}}
}

// reconcile creates the CA, starts or upgrades the API server, creates the kubeconfig, and reports the version that is served.
func (h *hosting) reconcile(ctx context.Context, o *unstructured.Unstructured) error {
	cluster := &clusterv1.Cluster{}
	key := types.NamespacedName{Namespace: h.namespace, Name: o.GetLabels()[clusterv1.ClusterNameLabel]}
	if err := h.Get(ctx, key, cluster); err != nil || !cluster.Spec.ControlPlaneEndpoint.IsValid() {
		return client.IgnoreNotFound(err)
	}
	ca, err := h.ca(ctx, o, key)
	if err != nil {
		return err
	}
	config, err := pki.NewKubeconfig(key.Name, "https://"+cluster.Spec.ControlPlaneEndpoint.String(), ca, time.Now())
	if err != nil {
		return err
	}
	kubeconfig := pki.NewSecret(key, pki.Kubeconfig, map[string][]byte{pki.KubeconfigKey: config},
		metav1.NewControllerRef(o, o.GroupVersionKind()))
	if err := h.Create(ctx, kubeconfig); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	infrastructure := types.NamespacedName{Namespace: h.namespace, Name: cluster.Spec.InfrastructureRef.Name}
	version, _, _ := unstructured.NestedString(o.Object, "spec", "version")
	if _, held := o.GetAnnotations()[holdAnnotation]; !held {
		change := inMemoryCluster(infrastructure)
		change.Object["spec"] = map[string]any{"hostedControlPlane": map[string]any{"version": version}}
		if err := h.Patch(ctx, change, client.Merge); err != nil {
			return err
		}
	}
	serving := inMemoryCluster(infrastructure)
	if err := h.Get(ctx, infrastructure, serving); err != nil {
		return err
	}
	served, _, _ := unstructured.NestedString(serving.Object, "status", "hostedControlPlaneVersion")
	if served == "" {
		return nil
	}
	return h.setStatus(ctx, o, map[string]any{"initialized": true, "ready": true, "version": served, "externalManagedControlPlane": true})
}

// ca returns the CA of a cluster, and creates it if it does not exist.
func (h *hosting) ca(ctx context.Context, o *unstructured.Unstructured, cluster types.NamespacedName) (*pki.CA, error) {
	secret := &corev1.Secret{}
	err := h.Get(ctx, pki.SecretKey(cluster, pki.ClusterCA), secret)
	if apierrors.IsNotFound(err) {
		ca, err := pki.NewCA(pki.ECDSA, time.Now())
		if err != nil {
			return nil, err
		}
		pair, err := ca.PEM()
		if err != nil {
			return nil, err
		}
		return ca, h.Create(ctx, pki.NewSecret(cluster, pki.ClusterCA, pair.Data(), metav1.NewControllerRef(o, o.GroupVersionKind())))
	}
	if err != nil {
		return nil, fmt.Errorf("reading the CA of %s: %w", cluster, err)
	}
	return pki.CAFrom(secret)
}
