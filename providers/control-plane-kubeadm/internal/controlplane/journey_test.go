package controlplane

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/health"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/membership"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

var server testenv.Server

func TestMain(m *testing.M) { server.Main(m) }

// journey is a control plane on a real API server, with the real controller and a workload cluster in memory. Tests act as the
// Machine controller and the other providers.
type journey struct {
	*testing.T
	client.WithWatch
	ns       string
	build    object.Builder
	workload *kcptest.Workload
}

func newJourney(t *testing.T) *journey {
	t.Helper()
	e := server.Start(t, "providers/core/config/crd", "providers/bootstrap-kubeadm/config/crd", "providers/control-plane-kubeadm/config/crd", "providers/infrastructure-in-memory/config/crd")
	scheme := testenv.Scheme(t, bootstrapv1.AddToScheme, controlplanev1.AddToScheme)
	j := &journey{T: t, WithWatch: e.NewClient(t, scheme), ns: e.Namespace(t)}
	j.build.Namespace = j.ns
	j.workload = kcptest.NewWorkload(client.ObjectKey{Namespace: j.ns, Name: "c"})
	e.Run(t, scheme, j.ns, func(mgr ctrl.Manager) error {
		return Setup(t.Context(), mgr, Options{
			Secrets: mgr.GetCache(), Workloads: workloads{j.workload}, Connections: j.workload, MachinePools: true, WatchesMachinePools: true, Concurrency: 2,
		})
	})
	return j
}

// apply creates a Cluster with ready infrastructure and its control plane.
func (j *journey) apply(replicas int32) *controlplanev1.KubeadmControlPlane {
	j.Helper()
	j.template("machines")
	cluster := j.build.Cluster(func(c *clusterv1.Cluster) {
		c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 6443}
		c.Spec.ControlPlaneRef = *object.Reference(controlplanev1.GroupVersion.WithKind("KubeadmControlPlane"), "cp")
	})
	j.must(j.Create(j.Context(), cluster))
	kcp := &controlplanev1.KubeadmControlPlane{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: j.ns, Name: "cp",
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cluster, clusterv1.GroupVersion.WithKind("Cluster"))},
		},
		Spec: controlplanev1.KubeadmControlPlaneSpec{
			Replicas: &replicas, Version: "v1.30.0",
			MachineTemplate: controlplanev1.KubeadmControlPlaneMachineTemplate{
				ObjectMeta: clusterv1.ObjectMeta{Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"note": "x"}},
				Spec:       controlplanev1.KubeadmControlPlaneMachineTemplateSpec{InfrastructureRef: *object.Reference(machineTemplateKind(), "machines")},
			},
			KubeadmConfigSpec: bootstrapv1.KubeadmConfigSpec{
				InitConfiguration: bootstrapv1.InitConfiguration{NodeRegistration: bootstrapv1.NodeRegistrationOptions{ImagePullPolicy: corev1.PullIfNotPresent}},
				JoinConfiguration: bootstrapv1.JoinConfiguration{NodeRegistration: bootstrapv1.NodeRegistrationOptions{ImagePullPolicy: corev1.PullIfNotPresent}},
			},
		},
	}
	j.must(j.Create(j.Context(), kcp))
	cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	j.must(j.Status().Update(j.Context(), cluster))
	return kcp
}

// machineTemplateKind returns the kind of infrastructure machine templates.
func machineTemplateKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1alpha1", Kind: "InMemoryMachineTemplate"}
}

func (j *journey) template(name string) {
	j.Helper()
	j.must(j.Create(j.Context(), j.build.Template(machineTemplateKind(), name)))
}

func (j *journey) must(err error) {
	j.Helper()
	if err != nil {
		j.Fatal(err)
	}
}

// eventually waits until a condition is true.
func (j *journey) eventually(what string, is func() (bool, string)) {
	j.Helper()
	defer func() {
		if j.Failed() {
			j.Logf("status: %+v", j.kcp().Status)
		}
	}()
	testenv.Eventually(j, what, func() error {
		if ok, why := is(); !ok {
			return errors.New(why)
		}
		return nil
	})
}

func (j *journey) kcp() *controlplanev1.KubeadmControlPlane {
	kcp := &controlplanev1.KubeadmControlPlane{}
	j.must(client.IgnoreNotFound(j.Get(j.Context(), client.ObjectKey{Namespace: j.ns, Name: "cp"}, kcp)))
	return kcp
}

// machines returns the Machines, oldest first.
func (j *journey) machines() []clusterv1.Machine {
	list := &clusterv1.MachineList{}
	j.must(j.List(j.Context(), list, client.InNamespace(j.ns)))
	slices.SortFunc(list.Items, func(a, b clusterv1.Machine) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return list.Items
}

// waitMachines waits for a number of Machines that are not being deleted.
func (j *journey) waitMachines(n int) []clusterv1.Machine {
	j.Helper()
	var staying []clusterv1.Machine
	j.eventually("the number of Machines", func() (bool, string) {
		staying = slices.DeleteFunc(j.machines(), func(m clusterv1.Machine) bool { return m.DeletionTimestamp != nil })
		return len(staying) == n, "it is another one"
	})
	return staying
}

// bootAll adds Nodes for all Machines that have none, as the Machine controller does.
func (j *journey) bootAll() {
	j.Helper()
	for _, m := range j.machines() {
		if m.Status.NodeRef.IsDefined() || m.DeletionTimestamp != nil {
			continue
		}
		j.workload.Boot(m.Name)
		before := m.DeepCopy()
		object.Running(time.Now())(&m)
		m.Status.Initialization.BootstrapDataSecretCreated = ptr.To(true)
		j.must(j.Status().Patch(j.Context(), &m, client.MergeFrom(before)))
	}
}

// finishDeletions continues the deletion of Machines, as the Machine controller does.
func (j *journey) finishDeletions() {
	j.Helper()
	for _, m := range j.machines() {
		if m.DeletionTimestamp == nil {
			continue
		}
		before := m.DeepCopy()
		if membership.HasHook(&m) {
			condition.Set(&m, condition.False(clusterv1.PreTerminateDeleteHookSucceededV1Beta1Condition, clusterv1.ConditionSeverityInfo, clusterv1.WaitingExternalHookV1Beta1Reason, ""))
			condition.Stamp(&m, before.GetV1Beta1Conditions(), time.Now())
			// The controller may have changed conditions. The next round tries again.
			_ = j.Status().Patch(j.Context(), &m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
			continue
		}
		j.workload.Gone(m.Name)
		m.Finalizers = nil
		j.must(client.IgnoreNotFound(j.Patch(j.Context(), &m, client.MergeFrom(before))))
	}
}

func (j *journey) waitReady(replicas int32) *controlplanev1.KubeadmControlPlane {
	j.Helper()
	j.eventually("the control plane being ready", func() (bool, string) {
		k := j.kcp()
		return k.GetV1Beta1Status().ReadyReplicas == replicas && ptr.Deref(k.Status.Replicas, 0) == replicas && k.GetV1Beta1Status().UpdatedReplicas == replicas &&
			condition.IsTrue(k, clusterv1.ReadyV1Beta1Condition) && condition.IsTrue(k, controlplanev1.EtcdClusterHealthyV1Beta1Condition), "it is not"
	})
	return j.kcp()
}

func TestOneMachineFromNothingToReady(t *testing.T) {
	j := newJourney(t)
	j.apply(1)
	m := j.waitMachines(1)[0]
	config := &bootstrapv1.KubeadmConfig{}
	j.eventually("a KubeadmConfig", func() (bool, string) {
		return j.Get(t.Context(), client.ObjectKeyFromObject(&m), config) == nil, "there is none"
	})
	if !kubeadm.Defined(config.Spec.InitConfiguration) || kubeadm.Defined(config.Spec.JoinConfiguration) || !metav1.IsControlledBy(config, &m) {
		t.Errorf("the first Machine initializes the cluster and controls its KubeadmConfig: %+v", config)
	}
	j.eventually("the condition Available being False", func() (bool, string) {
		return condition.IsFalse(j.kcp(), controlplanev1.AvailableV1Beta1Condition), "it is not"
	})
	j.bootAll()
	kcp := j.waitReady(1)
	want := controlplanev1.KubeadmControlPlaneStatus{
		Selector: "cluster.x-k8s.io/cluster-name=c,cluster.x-k8s.io/control-plane", Replicas: ptr.To[int32](1), Version: "v1.30.0",
		ObservedGeneration: 1, Versions: []clusterv1.StatusVersion{{Version: "v1.30.0", Replicas: ptr.To[int32](1)}},
		Initialization: controlplanev1.KubeadmControlPlaneInitializationStatus{ControlPlaneInitialized: ptr.To(true)},
		Conditions:     kcp.Status.Conditions, ReadyReplicas: kcp.Status.ReadyReplicas,
		AvailableReplicas: kcp.Status.AvailableReplicas, UpToDateReplicas: kcp.Status.UpToDateReplicas,
		Deprecated: &controlplanev1.KubeadmControlPlaneDeprecatedStatus{V1Beta1: &controlplanev1.KubeadmControlPlaneV1Beta1DeprecatedStatus{
			Conditions: kcp.GetV1Beta1Conditions(), UpdatedReplicas: 1, ReadyReplicas: 1,
		}},
	}
	if diff := cmp.Diff(want, kcp.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	for _, c := range kcp.GetV1Beta1Conditions() {
		if c.Status != corev1.ConditionTrue {
			t.Errorf("condition %+v is not true", c)
		}
	}
	for _, name := range []string{"c-ca", "c-etcd", "c-proxy", "c-sa", "c-kubeconfig"} {
		secret := &corev1.Secret{}
		j.must(j.Get(t.Context(), client.ObjectKey{Namespace: j.ns, Name: name}, secret))
		if !metav1.IsControlledBy(secret, kcp) || secret.Type != clusterv1.ClusterSecretType {
			t.Errorf("secret %s: owners %v, type %s", name, secret.OwnerReferences, secret.Type)
		}
	}
	m = j.machines()[0]
	for _, c := range health.Types(true) {
		if !condition.IsTrue(&m, c) {
			t.Errorf("condition %s of the Machine is not true", c)
		}
	}
}
