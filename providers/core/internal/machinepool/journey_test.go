package machinepool

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/machine"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

var server testenv.Server

func TestMain(m *testing.M) { server.Main(m) }

// journey is a namespace with a Cluster that runs the controllers of MachinePools and Machines. The management cluster is also the
// workload cluster, and the test is the infrastructure and the bootstrap provider.
type journey struct {
	*testing.T
	client.Client
	namespace string
	build     object.Builder
	writes    *testenv.Requests
	pool      *clusterv1.MachinePool
}

// newJourney returns a journey with a MachinePool p of two replicas; without run, no controllers run.
func newJourney(t *testing.T, run bool) *journey {
	t.Helper()
	e := server.Start(t, "providers/core/config/crd")
	e.Install(t, object.CRD(poolKind), object.CRD(machineKind), object.CRD(configKind))
	s := testenv.Scheme(t)
	j := &journey{T: t, Client: e.NewClient(t, s), namespace: e.Namespace(t)}
	j.build.Namespace = j.namespace
	if run {
		j.writes = e.Run(t, s, j.namespace, func(mgr ctrl.Manager) error { return setup(t, mgr) })
	}
	kubeconfig, err := os.ReadFile(e.Kubeconfig)
	testenv.Must(t, err)
	cluster := j.build.Cluster()
	j.create(cluster)
	object.Initialized(cluster)
	testenv.Must(t, j.Status().Update(t.Context(), cluster))
	j.create(pki.NewSecret(client.ObjectKeyFromObject(cluster), pki.Kubeconfig, map[string][]byte{pki.KubeconfigKey: kubeconfig}, nil))
	j.create(j.build.Machine("plane", object.ControlPlane, func(m *clusterv1.Machine) {
		m.Spec.InfrastructureRef, m.Spec.Bootstrap.DataSecretName = *object.Reference(machineKind, "plane"), ptr.To("data")
	}))
	j.pool = j.build.MachinePool("p", withReferences, func(p *clusterv1.MachinePool) { p.Spec.Replicas = ptr.To(int32(2)) })
	j.create(j.pool)
	j.create(j.build.Provided(poolKind, "p", object.Fields{"spec": object.Fields{}}))
	j.create(j.build.Provided(configKind, "p", object.Fields{}))
	return j
}

func setup(t *testing.T, mgr ctrl.Manager) error {
	clusters := remote.New(remote.Options{
		Secrets: mgr.GetCache(), Scheme: clientgoscheme.Scheme, Cached: []remote.Cached{remote.Nodes()}, Policy: remote.Policy{Loopback: true},
	})
	if err := mgr.Add(clusters); err != nil {
		return err
	}
	if err := machine.Setup(t.Context(), mgr, machine.Options{Concurrency: 2, Clusters: clusters, DrainTimeout: time.Minute}); err != nil {
		return err
	}
	return Setup(t.Context(), mgr, Options{Concurrency: 2, Clusters: clusters})
}

func (j *journey) create(obj client.Object) {
	j.Helper()
	testenv.Must(j, j.Create(j.Context(), obj))
}

// reports merges fields into the spec, and into the status, of an object of a provider, as its provider does.
func (j *journey) reports(kind schema.GroupVersionKind, name string, spec, status object.Fields) {
	j.Helper()
	u := &unstructured.Unstructured{Object: object.Fields{"spec": spec}}
	u.SetGroupVersionKind(kind)
	u.SetNamespace(j.namespace)
	u.SetName(name)
	if spec != nil {
		testenv.Must(j, j.Patch(j.Context(), u, client.Merge))
	}
	u.Object["status"] = status
	if status != nil {
		testenv.Must(j, j.Status().Patch(j.Context(), u, client.Merge))
	}
}

// nodeName returns the name of the Node of a machine: the workload cluster is shared by all tests.
func (j *journey) nodeName(machine string) string { return j.namespace + "-" + machine }

// boot creates the Node of a machine, and returns its provider ID.
func (j *journey) boot(machine string) string {
	j.Helper()
	node := object.Node(j.nodeName(machine), func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{clusterv1.NodeUninitializedTaint} })
	j.create(node)
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	testenv.Must(j, j.Status().Update(j.Context(), node))
	return node.Spec.ProviderID
}

func (j *journey) eventually(what string, check func() error) {
	j.Helper()
	testenv.Eventually(j, what, check)
}

// read reads the pool.
func (j *journey) read() error { return j.Get(j.Context(), client.ObjectKeyFromObject(j.pool), j.pool) }

// waitFor waits until the pool has a phase, and Nodes of machines.
func (j *journey) waitFor(phase clusterv1.MachinePoolPhase, machines ...string) {
	j.Helper()
	var want []string
	for _, m := range machines {
		want = append(want, j.nodeName(m))
	}
	j.eventually("the pool is "+string(phase), func() error {
		if err := j.read(); err != nil {
			return err
		}
		var got []string
		for _, ref := range j.pool.Status.NodeRefs {
			got = append(got, ref.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" || j.pool.Status.GetTypedPhase() != phase {
			return fmt.Errorf("the phase is %s, nodeRefs -want +got:\n%s", j.pool.Status.Phase, diff)
		}
		return nil
	})
}

// gone waits until an object is deleted.
func (j *journey) gone(obj client.Object) {
	j.Helper()
	j.eventually(fmt.Sprintf("%T %s is deleted", obj, obj.GetName()), func() error {
		err := j.Get(j.Context(), client.ObjectKeyFromObject(obj), obj)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it exists, err = %w", err)
	})
}

// machine waits until a Machine exists.
func (j *journey) machine(name string) *clusterv1.Machine {
	j.Helper()
	m := j.build.Machine(name)
	j.eventually("Machine "+name+" exists", func() error { return j.Get(j.Context(), client.ObjectKeyFromObject(m), m) })
	return m
}

// infraMachine creates an infrastructure machine of the pool.
func (j *journey) infraMachine(name string) {
	j.Helper()
	infra := j.build.Provided(machineKind, name, object.Fields{"spec": object.Fields{}})
	infra.SetLabels(map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachinePoolNameLabel: "p"})
	j.create(infra)
}

// TestMachines is the life of a pool whose provider has infrastructure machines.
func TestMachines(t *testing.T) {
	j := newJourney(t, true)
	j.reports(configKind, "p", nil, object.Fields{"ready": true, "dataSecretName": "data"})
	j.eventually("the name of the bootstrap data is copied", func() error {
		if err := j.read(); err != nil || ptr.Deref(j.pool.Spec.Template.Spec.Bootstrap.DataSecretName, "") != "data" {
			return fmt.Errorf("bootstrap = %+v, err = %w", j.pool.Spec.Template.Spec.Bootstrap, err)
		}
		return nil
	})
	j.infraMachine("w-1")
	j.infraMachine("w-2")
	j.reports(poolKind, "p", nil, object.Fields{"infrastructureMachineKind": machineKind.Kind, "replicas": int64(2)})
	one, two := j.machine("w-1"), j.machine("w-2")
	want := clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: j.namespace, Name: "w-1", Finalizers: []string{clusterv1.MachineFinalizer},
			Labels:          map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachinePoolNameLabel: "p", "tier": "one"},
			Annotations:     map[string]string{"note": "old"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(j.pool, clusterv1.GroupVersion.WithKind("MachinePool"))},
		},
		Spec: clusterv1.MachineSpec{
			ClusterName: "c", Version: "v1.35.4", Deletion: clusterv1.MachineDeletionSpec{NodeDrainTimeoutSeconds: ptr.To[int32](60)},
			Bootstrap:         clusterv1.Bootstrap{DataSecretName: ptr.To("")},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: machineKind.GroupVersion().Group, Kind: machineKind.Kind, Name: "w-1"},
		},
	}
	server := cmpopts.IgnoreFields(metav1.ObjectMeta{}, "UID", "ResourceVersion", "Generation", "CreationTimestamp", "ManagedFields")
	if diff := cmp.Diff(want, *one, server, cmpopts.IgnoreFields(clusterv1.Machine{}, "TypeMeta", "Status")); diff != "" {
		t.Errorf("Machine (-want +got):\n%s", diff)
	}

	var ids []any
	for _, name := range []string{"w-1", "w-2"} {
		id := j.boot(name)
		ids = append(ids, id)
		j.reports(machineKind, name, object.Fields{"providerID": id}, object.Fields{"ready": true})
	}
	j.reports(poolKind, "p", object.Fields{"providerIDList": ids}, object.Fields{"ready": true})
	j.waitFor(clusterv1.MachinePoolPhaseRunning, "w-1", "w-2")
	j.eventually("the pool is ready", func() error {
		if err := j.read(); err != nil || !condition.IsTrue(j.pool, clusterv1.ReadyV1Beta1Condition) {
			return fmt.Errorf("conditions = %+v, err = %w", j.pool.GetV1Beta1Conditions(), err)
		}
		return nil
	})
	j.eventually("the Node is annotated by its Machine", func() error {
		node := object.Node(j.nodeName("w-1"))
		if err := j.Get(t.Context(), client.ObjectKeyFromObject(node), node); err != nil {
			return err
		}
		if node.Annotations[clusterv1.MachineAnnotation] != "w-1" || node.Annotations[clusterv1.OwnerKindAnnotation] != "MachinePool" || len(node.Spec.Taints) > 0 {
			return fmt.Errorf("annotations = %v, taints = %v", node.Annotations, node.Spec.Taints)
		}
		return nil
	})
	got := j.writes.Take()
	for what, limit := range map[string]int{
		"apply machines by " + fieldManager: 2, "patch machinepools": 4, "patch machinepools/status": 6,
		"patch genericmachinepools": 1, "patch genericconfigs": 1, "patch genericmachines": 2,
	} {
		if got[what] > limit {
			t.Errorf("%d times %s, want at most %d: %v", got[what], what, limit, got)
		}
	}

	// The provider scales down by deleting a Machine.
	testenv.Must(t, j.read())
	before := j.pool.DeepCopy()
	j.pool.Spec.Replicas = ptr.To(int32(1))
	testenv.Must(t, j.Patch(t.Context(), j.pool, client.MergeFrom(before)), j.Delete(t.Context(), two))
	j.gone(two)
	j.gone(object.Node(j.nodeName("w-2")))
	j.reports(poolKind, "p", object.Fields{"providerIDList": ids[:1]}, object.Fields{"replicas": int64(1)})
	j.waitFor(clusterv1.MachinePoolPhaseRunning, "w-1")

	testenv.Must(t, j.Delete(t.Context(), j.pool))
	j.gone(j.pool)
	for _, obj := range []client.Object{one, j.build.Provided(poolKind, "p", nil), j.build.Provided(configKind, "p", nil), object.Node(j.nodeName("w-1"))} {
		j.gone(obj)
	}
}

// TestWithoutMachines is the life of a pool whose provider only lists provider IDs.
func TestWithoutMachines(t *testing.T) {
	j := newJourney(t, true)
	j.reports(configKind, "p", nil, object.Fields{"ready": true, "dataSecretName": "data"})
	ids := []any{j.boot("v-1"), j.boot("v-2")}
	j.reports(poolKind, "p", object.Fields{"providerIDList": ids}, object.Fields{"ready": true, "replicas": int64(2)})
	j.waitFor(clusterv1.MachinePoolPhaseRunning, "v-1", "v-2")
	j.eventually("the Node is annotated", func() error {
		node := object.Node(j.nodeName("v-1"))
		if err := j.Get(t.Context(), client.ObjectKeyFromObject(node), node); err != nil {
			return err
		}
		want := map[string]string{
			clusterv1.ClusterNameAnnotation: "c", clusterv1.ClusterNamespaceAnnotation: j.namespace,
			clusterv1.OwnerKindAnnotation: "MachinePool", clusterv1.OwnerNameAnnotation: "p",
		}
		if diff := cmp.Diff(want, node.Annotations); diff != "" || len(node.Spec.Taints) > 0 {
			return fmt.Errorf("taints = %v, annotations -want +got:\n%s", node.Spec.Taints, diff)
		}
		return nil
	})

	// The bootstrap config is replaced.
	j.create(j.build.Provided(configKind, "q", object.Fields{"status": object.Fields{}}))
	testenv.Must(t, j.read())
	before := j.pool.DeepCopy()
	j.pool.Spec.Template.Spec.Bootstrap.ConfigRef.Name = "q"
	testenv.Must(t, j.Patch(t.Context(), j.pool, client.MergeFrom(before)))
	j.reports(configKind, "q", nil, object.Fields{"ready": true, "dataSecretName": "more"})
	j.eventually("the name of the new bootstrap data is copied", func() error {
		if err := j.read(); err != nil || *j.pool.Spec.Template.Spec.Bootstrap.DataSecretName != "more" || !ptr.Deref(j.pool.Status.Initialization.BootstrapDataSecretCreated, false) {
			return fmt.Errorf("bootstrap = %+v, err = %w", j.pool.Spec.Template.Spec.Bootstrap, err)
		}
		return nil
	})

	// An instance is terminated.
	j.reports(poolKind, "p", object.Fields{"providerIDList": ids[1:]}, object.Fields{"replicas": int64(1)})
	j.waitFor(clusterv1.MachinePoolPhaseScalingUp, "v-2")
	j.gone(object.Node(j.nodeName("v-1")))

	testenv.Must(t, j.Delete(t.Context(), j.pool))
	j.gone(j.pool)
	j.gone(object.Node(j.nodeName("v-2")))
}
