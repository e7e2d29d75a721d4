package scenario

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/test/fault/history"
)

const (
	hostedAPI  = "controlplane.cluster.x-k8s.io/v1alpha1"
	hostedKind = "HostedControlPlane"
	// hostedClass is the name of the class, a copy of the other one.
	hostedClass = "hosted"
)

//go:embed hosted.yaml
var hostedDefinitions []byte

// hosted returns the scenarios of Clusters whose control plane has no Machines: HostControlPlane is its provider.
func hosted() []Scenario {
	one, two := hostedSize(1), hostedSize(2)
	all := []Scenario{
		creation("hosted-create", two),
		scaling("hosted-up", one, two),
		rollout("hosted-upgrade", two, Upgrade, 0, 2, Upgraded, hostedUpgraded),
		deletion("hosted-delete", two),
	}
	for i := range all {
		all[i].Prepare, all[i].Provider, all[i].ExternalEtcd = UseHostedControlPlanes, HostControlPlane, true
	}
	return all
}

func hostedSize(workers int) Size { return Size{Workers: workers, Hosted: true} }

// UseHostedControlPlanes creates a class whose control planes have no Machines: the kind of a class cannot be changed.
func UseHostedControlPlanes(ctx context.Context, t Target) error {
	template := object(hostedAPI, hostedKind+clusterv1.TemplateSuffix, t.Namespace, "hosted")
	template.Object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{}}}
	if err := t.Client.Create(ctx, template); err != nil {
		return err
	}
	class := object(clusterAPI, "ClusterClass", t.Namespace, className)
	if err := t.Client.Get(ctx, client.ObjectKeyFromObject(class), class); err != nil {
		return err
	}
	ref := map[string]any{"apiVersion": hostedAPI, "kind": template.GetKind(), "name": template.GetName()}
	if err := unstructured.SetNestedMap(class.Object, map[string]any{"ref": ref}, "spec", "controlPlane"); err != nil {
		return err
	}
	next := object(clusterAPI, "ClusterClass", t.Namespace, hostedClass)
	next.Object["spec"] = class.Object["spec"]
	return t.Client.Create(ctx, next)
}

// HostControlPlane does what the contract asks of a provider of control planes without Machines: it creates CA and kubeconfig, lets the
// infrastructure serve the version, and reports the version that is served. Each call makes at most one step.
func HostControlPlane(ctx context.Context, t Target, now history.State) error {
	cluster := now[history.Key{Kind: "Cluster", Name: ClusterName}]
	infrastructure, planes := now.Of("InMemoryCluster"), now.Of(hostedKind)
	if cluster == nil || len(infrastructure) != 1 || len(planes) != 1 || metav1.GetControllerOf(planes[0]) == nil ||
		planes[0].GetDeletionTimestamp() != nil {
		return nil
	}
	host, _, _ := unstructured.NestedString(cluster.Object, "spec", "controlPlaneEndpoint", "host")
	if host == "" {
		return nil
	}
	p := &hosting{
		Target: t,
		plane:  planes[0],
		server: "https://" + net.JoinHostPort(host, strconv.Itoa(Number(cluster, "spec", "controlPlaneEndpoint", "port"))),
	}
	if ca := now[history.Key{Kind: "Secret", Name: pki.SecretName(ClusterName, pki.ClusterCA)}]; ca == nil {
		return p.createCA(ctx)
	} else if now[history.Key{Kind: "Secret", Name: pki.SecretName(ClusterName, pki.Kubeconfig)}] == nil {
		return p.createKubeconfig(ctx, ca)
	}
	return p.serve(ctx, infrastructure[0])
}

// hosting is what the provider needs for one control plane.
type hosting struct {
	Target
	plane  *unstructured.Unstructured
	server string
}

func (p *hosting) create(ctx context.Context, purpose pki.Purpose, data map[string][]byte) error {
	cluster := types.NamespacedName{Namespace: p.Namespace, Name: ClusterName}
	return ignoreExists(
		p.Client.Create(ctx, pki.NewSecret(cluster, purpose, data, metav1.NewControllerRef(p.plane, p.plane.GroupVersionKind()))))
}

func (p *hosting) createCA(ctx context.Context) error {
	_, pair, err := newCA()
	if err != nil {
		return err
	}
	return p.create(ctx, pki.ClusterCA, pair.Data())
}

func (p *hosting) createKubeconfig(ctx context.Context, secret *unstructured.Unstructured) error {
	typed := &corev1.Secret{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(secret.Object, typed); err != nil {
		return err
	}
	ca, err := pki.CAFrom(typed)
	if err != nil {
		return err
	}
	config, err := pki.NewKubeconfig(ClusterName, p.server, ca, time.Now())
	if err != nil {
		return err
	}
	return p.create(ctx, pki.Kubeconfig, map[string][]byte{pki.KubeconfigKey: config})
}

// serve makes the infrastructure serve the version of the spec, and reports the one that it serves.
func (p *hosting) serve(ctx context.Context, infrastructure *unstructured.Unstructured) error {
	version, _, _ := unstructured.NestedString(p.plane.Object, "spec", "version")
	requested, _, _ := unstructured.NestedString(infrastructure.Object, "spec", "hostedControlPlane", "version")
	if requested != version {
		change := object(infrastructureAPI, infrastructure.GetKind(), p.Namespace, infrastructure.GetName())
		change.Object["spec"] = map[string]any{"hostedControlPlane": map[string]any{"version": version}}
		return p.Client.Patch(ctx, change, client.Merge)
	}
	served, _, _ := unstructured.NestedString(infrastructure.Object, "status", "hostedControlPlaneVersion")
	reported, _, _ := unstructured.NestedString(p.plane.Object, "status", "version")
	if served == "" || served == reported {
		return nil
	}
	change := object(hostedAPI, hostedKind, p.Namespace, p.plane.GetName())
	change.Object["status"] = map[string]any{"initialized": true, "ready": true, "version": served, "externalManagedControlPlane": true}
	return p.Client.Status().Patch(ctx, change, client.Merge)
}

// hostedUpgraded is true when the control plane reports the second version.
func hostedUpgraded(now history.State) error {
	for _, plane := range now.Of(hostedKind) {
		if v, _, _ := unstructured.NestedString(plane.Object, "status", "version"); v != secondVersion {
			return fmt.Errorf("the control plane reports version %s", v)
		}
	}
	return nil
}
