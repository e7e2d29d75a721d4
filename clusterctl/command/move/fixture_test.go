package move

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/move/discovery"
	"sigs.k8s.io/cluster-api/clusterctl/move/graph"
	"sigs.k8s.io/cluster-api/clusterctl/move/side"
	"sigs.k8s.io/cluster-api/clusterctl/move/transfer"
	"sigs.k8s.io/cluster-api/packages/retry"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

var first, second testenv.Server

func TestMain(m *testing.M) { testenv.Main(m, &first, &second) }

// start returns a management cluster without controllers: what a move needs of it is the CRDs with their labels.
func start(t *testing.T, s *testenv.Server) *testenv.Env {
	e := s.Start(t)
	for _, dir := range []string{"core", "bootstrap-kubeadm", "control-plane-kubeadm", "infrastructure-in-memory"} {
		crds, err := e.ReadCRDs("providers/" + dir + "/config/crd")
		if err != nil {
			t.Fatal(err)
		}
		for _, crd := range crds {
			crd.SetLabels(map[string]string{clusterctlv1.ClusterctlLabel: ""})
		}
		e.Install(t, crds...)
	}
	return e
}

// newSide connects without a rate limit.
func newSide(t *testing.T, e *testenv.Env, name string) *side.Side {
	c, err := management.New(e.Config, "default")
	if err != nil {
		t.Fatal(err)
	}
	return &side.Side{Client: c.Client, Name: name, Host: c.Host, Backoff: retry.Backoff()}
}

// shared is the ClusterClass of the Clusters of the fixture, with an unrelated ConfigMap that is not moved, and a Secret that is
// moved because of its label.
const shared = `
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: InMemoryClusterTemplate
metadata: {name: it, owner: ClusterClass class}
spec: {template: {spec: {}}}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: ClusterClass
metadata: {name: class}
spec:
  infrastructure: {ref: {apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: InMemoryClusterTemplate, name: it}}
  controlPlane: {ref: {apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: InMemoryClusterTemplate, name: it}}
---
apiVersion: addons.cluster.x-k8s.io/v1beta1
kind: ClusterResourceSet
metadata: {name: cni, finalizers: [addons.cluster.x-k8s.io]}
spec: {clusterSelector: {matchLabels: {cni: a}}, resources: [{kind: Secret, name: cni}]}
---
apiVersion: v1
kind: Secret
metadata: {name: cni, owner: ClusterResourceSet cni}
type: addons.cluster.x-k8s.io/resource-set
data: {a: c2VjcmV0}
---
apiVersion: v1
kind: Secret
metadata: {name: cpi, labels: {clusterctl.cluster.x-k8s.io/move: ""}}
data: {a: c2VjcmV0}
`

// clusterText is the objects of a Cluster; NAME is replaced by its name.
const clusterText = `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: NAME, labels: {cni: a}, finalizers: [cluster.cluster.x-k8s.io], annotations: {user: kept}}
spec:
  infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: InMemoryCluster, name: NAME}
  topology: {class: class, version: v1.30.0}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: InMemoryCluster
metadata: {name: NAME, owner: Cluster NAME, finalizers: [inmemorycluster.infrastructure.cluster.x-k8s.io]}
spec: {controlPlaneEndpoint: {host: 127.0.0.1, port: 20000}}
---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfigTemplate
metadata: {name: NAME-boot, owner: Cluster NAME}
spec: {template: {spec: {}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: InMemoryMachineTemplate
metadata: {name: NAME-machine, owner: Cluster NAME}
spec: {template: {spec: {}}}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachineDeployment
metadata: {name: NAME-md, owner: Cluster NAME, finalizers: [md], labels: {applied: ""}}
spec:
  clusterName: NAME
  replicas: 2
  selector: {matchLabels: {d: NAME}}
  template:
    metadata: {labels: {d: NAME}}
    spec:
      clusterName: NAME
      bootstrap: {configRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfigTemplate, name: NAME-boot}}
      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: InMemoryMachineTemplate, name: NAME-machine}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: Machine
metadata: {name: NAME-m, owner: MachineDeployment NAME-md, finalizers: [machine.cluster.x-k8s.io]}
spec:
  clusterName: NAME
  providerID: in-memory://NAME-m
  bootstrap: {dataSecretName: NAME-m}
  infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: InMemoryMachine, name: NAME-m}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: InMemoryMachine
metadata: {name: NAME-m, owner: Machine NAME-m, finalizers: [inmemorymachine.infrastructure.cluster.x-k8s.io]}
spec: {}
---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfig
metadata: {name: NAME-m, owner: Machine NAME-m}
spec: {}
---
apiVersion: v1
kind: Secret
metadata: {name: NAME-m, owner: KubeadmConfig NAME-m}
type: cluster.x-k8s.io/secret
data: {value: c2VjcmV0}
---
apiVersion: v1
kind: Secret
metadata: {name: NAME-ca}
data: {tls.crt: c2VjcmV0}
---
apiVersion: addons.cluster.x-k8s.io/v1beta1
kind: ClusterResourceSetBinding
metadata: {name: NAME, owner: ClusterResourceSet cni}
spec: {clusterName: NAME}
`

// fixture is the objects of a namespace.
type fixture struct {
	t         *testing.T
	namespace string
	side      *side.Side
	uids      map[string]types.UID
}

// create creates the shared objects and Clusters, with everything that preflight checks require. The last Cluster is paused by
// its user.
func (f *fixture) create(clusters ...string) {
	f.t.Helper()
	f.uids = map[string]types.UID{}
	testenv.Must(f.t, transfer.EnsureNamespace(f.t.Context(), f.side, f.namespace))
	f.apply(shared)
	for _, name := range clusters {
		f.apply(strings.ReplaceAll(clusterText, "NAME", name))
	}
	last := clusters[len(clusters)-1]
	cluster := f.object("Cluster", last)
	testenv.Must(f.t, f.side.Patch(f.t.Context(), cluster, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"paused":true}}`))))
}

func (f *fixture) apply(text string) {
	f.t.Helper()
	var pending []*unstructured.Unstructured
	for document := range strings.SplitSeq(text, "---\n") {
		o := &unstructured.Unstructured{}
		testenv.Must(f.t, yaml.Unmarshal([]byte(document), &o.Object))
		o.SetNamespace(f.namespace)
		pending = append(pending, o)
	}
	for len(pending) > 0 {
		o := pending[0]
		pending = pending[1:]
		if !f.own(o) {
			pending = append(pending, o)
			continue
		}
		f.write(o)
	}
}

// own replaces the owner of the text by a reference, if the owner exists.
func (f *fixture) own(o *unstructured.Unstructured) bool {
	owner, found, _ := unstructured.NestedString(o.Object, "metadata", "owner")
	if !found {
		return true
	}
	uid, ok := f.uids[owner]
	if !ok {
		return false
	}
	unstructured.RemoveNestedField(o.Object, "metadata", "owner")
	kind, name, _ := strings.Cut(owner, " ")
	o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: apiVersion(kind), Kind: kind, Name: name, UID: uid}})
	return true
}

func apiVersion(kind string) string {
	switch kind {
	case "ClusterResourceSet":
		return "addons.cluster.x-k8s.io/v1beta1"
	case "KubeadmConfig":
		return "bootstrap.cluster.x-k8s.io/v1beta1"
	default:
		return "cluster.x-k8s.io/v1beta1"
	}
}

func (f *fixture) write(o *unstructured.Unstructured) {
	f.t.Helper()
	ctx := f.t.Context()
	status := statusOf(o.GetKind())
	if _, applied := o.GetLabels()["applied"]; applied {
		testenv.Must(f.t, f.side.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("topology")))
	} else {
		testenv.Must(f.t, f.side.Create(ctx, o))
	}
	f.uids[o.GetKind()+" "+o.GetName()] = o.GetUID()
	if status == "" {
		return
	}
	testenv.Must(f.t, f.side.Status().Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(status))))
}

func statusOf(kind string) string {
	switch kind {
	case "Cluster":
		return `{"status":{"infrastructureReady":true,"conditions":[{"type":"ControlPlaneInitialized","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
	case "Machine":
		return `{"status":{"nodeRef":{"kind":"Node","name":"n"}}}`
	default:
		return ""
	}
}

func (f *fixture) object(kind, name string) *unstructured.Unstructured {
	f.t.Helper()
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion(kind))
	o.SetKind(kind)
	testenv.Must(f.t, f.side.Get(f.t.Context(), client.ObjectKey{Namespace: f.namespace, Name: name}, o))
	return o
}

// state is what a cluster has in a namespace, by key; see contents.
type state struct {
	contents map[string]string
	paused   map[string]bool // Clusters and ClusterClasses
	moved    map[string]bool
}

// read reads all objects of a namespace that may be moved, whether or not they belong to a Cluster.
func read(t *testing.T, s *side.Side, namespace string) state {
	t.Helper()
	kinds, err := discovery.Kinds(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := (&discovery.Reader{Side: s, Namespace: namespace, Kinds: kinds}).Objects(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := state{contents: map[string]string{}, paused: map[string]bool{}, moved: map[string]bool{}}
	for _, o := range objects {
		if o.GetName() == "kube-root-ca.crt" || o.GetName() == "clusterctl-move" {
			continue
		}
		key := o.Kind.Kind + " " + o.GetName()
		_, out.moved[key] = o.GetLabels()[transfer.MovedLabel]
		if transfer.Pausable(o) {
			out.paused[key] = o.Paused()
		}
		out.contents[key] = contents(t, o)
	}
	maps.DeleteFunc(out.moved, func(_ string, moved bool) bool { return !moved })
	return out
}

// contents returns what must survive a move: everything that users and controllers wrote, except status and the pause, with the
// names of owners and the field ownership of server-side apply.
func contents(t *testing.T, o graph.Object) string {
	t.Helper()
	d := transfer.Desired(o, func(types.UID) (types.UID, bool) { return "", true })
	annotations := d.GetAnnotations()
	for _, name := range []string{transfer.MoveAnnotation, transfer.KeepAnnotation, "cluster.x-k8s.io/paused"} {
		delete(annotations, name)
	}
	d.SetAnnotations(annotations)
	if len(annotations) == 0 {
		unstructured.RemoveNestedField(d.Object, "metadata", "annotations")
	}
	if o.IsCluster() {
		unstructured.RemoveNestedField(d.Object, "spec", "paused")
	}
	unstructured.RemoveNestedField(d.Object, "status")
	applied := ""
	for _, e := range o.GetManagedFields() {
		if e.Operation == metav1.ManagedFieldsOperationApply {
			applied += fmt.Sprintf(" %s:%s", e.Manager, e.FieldsV1.GetRawBytes())
		}
	}
	text, err := json.Marshal(d.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + applied
}

func configMap() client.Object   { return &corev1.ConfigMap{} }
func leaseObject() client.Object { return &coordinationv1.Lease{} }

func namespaceObject(name string) client.Object {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func ignoreExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
