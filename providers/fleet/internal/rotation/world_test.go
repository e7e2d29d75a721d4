package rotation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

const (
	controlPlanes, workers = 3, 2
	// certificatesAnnotation is on the Machines of the tests: the file of the cluster CA that they have got.
	certificatesAnnotation = "test/certificates"
)

// world has a Cluster with a control plane and workers, whose controllers the tests simulate.
type world struct {
	*fakeapi.Server
	workload *fakeapi.Server
	runner   *step.Runner[*fleetv1.CertificateAuthorityRotation]
	// mute: the controller of the control plane does not answer. outdated: the bootstrap provider uses old Secrets that often.
	mute     bool
	outdated int
	machines int
}

func newRotation() *fleetv1.CertificateAuthorityRotation {
	r := &fleetv1.CertificateAuthorityRotation{ObjectMeta: object.Builder{}.Meta("CertificateAuthorityRotation", "r")}
	r.Spec = fleetv1.CertificateAuthorityRotationSpec{ClusterName: "c", Confirm: "c"}
	return r
}

var clusterKey = types.NamespacedName{Namespace: object.Builder{}.Meta("Cluster", "c").Namespace, Name: "c"}

// newWorld returns a world with a rotation; change may change its objects.
func newWorld(t *testing.T, change ...func(obj client.Object)) *world {
	t.Helper()
	b := object.Builder{}
	cluster := b.Cluster(object.Initialized, func(c *clusterv1.Cluster) {
		c.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{
			APIGroup: controlplanev1.GroupVersion.Group, Kind: controlPlaneKind, Name: "cp",
		}
	})
	n := ptr.To[int32](controlPlanes)
	kcp := &controlplanev1.KubeadmControlPlane{ObjectMeta: b.Meta(controlPlaneKind, "cp")}
	kcp.Spec.Replicas, kcp.Spec.Version = n, "v1.36.3"
	kcp.Status = controlplanev1.KubeadmControlPlaneStatus{Replicas: n, ReadyReplicas: n, AvailableReplicas: n, UpToDateReplicas: n}
	kcp.Status.Initialization.ControlPlaneInitialized, kcp.Status.ObservedGeneration = ptr.To(true), kcp.Generation
	md := b.MachineDeployment("md", func(d *clusterv1.MachineDeployment) { d.Spec.Replicas = ptr.To[int32](workers) })
	objects := []client.Object{cluster, kcp, md, newRotation()}
	for _, purpose := range pki.OfControlPlane(false) {
		pair, err := (*pki.Keys)(nil).Generate(purpose, object.Now())
		testenv.Must(t, err)
		objects = append(objects, pki.NewSecret(clusterKey, purpose, pair.Data(), nil))
	}
	objects = append(objects, pki.NewSecret(clusterKey, pki.Kubeconfig, nil, nil))
	for _, obj := range objects {
		for _, f := range change {
			f(obj)
		}
	}
	w := &world{
		Server: fakeapi.New(t, fakeapi.Options{
			Kinds: []func(*runtime.Scheme) error{fleetv1.AddToScheme, controlplanev1.AddToScheme}, Objects: objects,
		}),
		workload: fakeapi.New(t, fakeapi.Options{Objects: []client.Object{clusterInfo(t)}, Indexes: []step.Index{{
			Object: &corev1.Secret{}, Field: "type", Values: func(o client.Object) []string {
				secret, ok := o.(*corev1.Secret)
				if !ok {
					return nil
				}
				return []string{string(secret.Type)}
			},
		}}}),
	}
	w.simulate(t)
	for range controlPlanes {
		w.machine(t, true)
	}
	for range workers {
		w.machine(t, false)
	}
	w.restart()
	w.Clock.Step(time.Hour)
	return w
}

func clusterInfo(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	config, err := clientcmd.Write(clientcmdapi.Config{Clusters: map[string]*clientcmdapi.Cluster{"": {Server: "https://c"}}})
	testenv.Must(t, err)
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: "cluster-info"}, Data: map[string]string{"kubeconfig": string(config)},
	}
}

// in is the workload cluster of a rotation.
type in struct{ client.Client }

func (in) Close() {}

// restart replaces the process of the controller.
func (w *world) restart() {
	clients := w.ForController()
	c := New(clients, Options{Connect: func(context.Context, types.NamespacedName) (Workload, error) {
		return in{w.workload.ForController().Client}, nil
	}})
	w.runner = c.declared().Runner(clients)
}

var errKilled = errors.New("killed")

func (w *world) reconcile(t *testing.T) time.Duration {
	t.Helper()
	result, err := w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(newRotation())})
	if err != nil && !step.IsStale(err) && !errors.Is(err, errKilled) && !strings.Contains(err.Error(), errKilled.Error()) {
		t.Fatal(err)
	}
	return result.RequeueAfter
}

func (w *world) rotation(t *testing.T) *fleetv1.CertificateAuthorityRotation {
	t.Helper()
	r := newRotation()
	testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(r), r))
	return r
}

// said returns the reason and the message of the condition.
func (w *world) said(t *testing.T) string {
	t.Helper()
	c := report.Get(w.rotation(t), fleetv1.OperationCompletedCondition)
	if c == nil {
		return ""
	}
	return c.Reason + ": " + c.Message
}

func (w *world) secretOf(t *testing.T, purpose pki.Purpose) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	testenv.Must(t, w.Get(t.Context(), pki.SecretKey(clusterKey, purpose), secret))
	return secret
}

// machine creates a Machine that is ready, as the bootstrap provider would do it now.
func (w *world) machine(t *testing.T, controlPlane bool) {
	t.Helper()
	w.machines++
	name := fmt.Sprintf("m%d", w.machines)
	var files [][]byte
	for _, purpose := range pki.OfControlPlane(false) {
		files = append(files, w.secretOf(t, purpose).Data[pki.CertificateKey])
	}
	data := object.Builder{}.BootstrapData(name, "data")
	if value := fleetv1.AuthoritiesOf(files...); value != "" && w.outdated == 0 {
		data.Annotations = map[string]string{fleetv1.AuthoritiesAnnotation: value}
	}
	w.outdated = max(0, w.outdated-1)
	m := object.Builder{}.Machine(name, object.WithNode(name), func(m *clusterv1.Machine) {
		m.CreationTimestamp = metav1.NewTime(w.Clock.Now())
		m.Annotations = map[string]string{certificatesAnnotation: string(files[0])}
		m.Spec.Bootstrap.DataSecretName = ptr.To(name)
		if controlPlane {
			object.ControlPlane(m)
		} else {
			m.Labels[clusterv1.MachineDeploymentNameLabel] = "md"
		}
	})
	status := m.Status
	testenv.Must(t, w.Create(t.Context(), data), w.Create(t.Context(), m))
	m.Status = status
	testenv.Must(t, w.Status().Update(t.Context(), m))
	w.compatible(t)
}

// compatible checks that all Machines trust what each of them has been issued.
func (w *world) compatible(t *testing.T) {
	t.Helper()
	for _, a := range w.all(t) {
		for _, b := range w.all(t) {
			first := []byte(a.Annotations[certificatesAnnotation])
			if !contains([]byte(b.Annotations[certificatesAnnotation]), first) {
				t.Fatalf("Machine %s does not trust the certificates of Machine %s", b.Name, a.Name)
			}
		}
	}
}

func (w *world) all(t *testing.T) []clusterv1.Machine {
	t.Helper()
	list := &clusterv1.MachineList{}
	testenv.Must(t, w.List(t.Context(), list))
	return list.Items
}

// simulate does what the controllers of the control plane and of MachineDeployments do: one Machine at a time.
func (w *world) simulate(t *testing.T) {
	t.Helper()
	kcp, md := &controlplanev1.KubeadmControlPlane{}, &clusterv1.MachineDeployment{}
	testenv.Must(t, w.Get(t.Context(), client.ObjectKey{Namespace: clusterKey.Namespace, Name: "cp"}, kcp),
		w.Get(t.Context(), client.ObjectKey{Namespace: clusterKey.Namespace, Name: "md"}, md))
	if op, err := fleetv1.OperationOf(kcp); err != nil {
		t.Fatal(err)
	} else if op != nil && !w.mute {
		kcp.Annotations[fleetv1.OperationObservedAnnotation] = op.Token()
		testenv.Must(t, w.Update(t.Context(), kcp))
	}
	ca, config := w.secretOf(t, pki.ClusterCA), w.secretOf(t, pki.Kubeconfig)
	authority, err := pki.CAFrom(ca)
	testenv.Must(t, err)
	text, err := pki.NewKubeconfig("c", "https://c", authority, object.Now())
	testenv.Must(t, err)
	loaded, err := clientcmd.Load(text)
	testenv.Must(t, err)
	loaded.Clusters["c"].CertificateAuthorityData = ca.Data[pki.CertificateKey]
	text, err = clientcmd.Write(*loaded)
	testenv.Must(t, err)
	config.Data = map[string][]byte{pki.KubeconfigKey: text}
	testenv.Must(t, w.Update(t.Context(), config))
	for _, m := range w.all(t) {
		after, controlPlane := md.Spec.Rollout.After, isControlPlane(&m)
		if controlPlane {
			after = kcp.Spec.Rollout.After
		}
		if m.CreationTimestamp.Time.Before(after.Time) && !w.Clock.Now().Before(after.Time) {
			w.machine(t, controlPlane)
			testenv.Must(t, w.Delete(t.Context(), &m))
			return
		}
	}
}

// run reconciles until the rotation ends, or a number of times.
func (w *world) run(t *testing.T, atMost int) {
	t.Helper()
	for range atMost {
		after := w.reconcile(t)
		if w.rotation(t).Ended() {
			return
		}
		w.Clock.Step(max(after, time.Second))
		w.simulate(t)
	}
}

// certificate returns the certificates of the cluster CA.
func (w *world) certificate(t *testing.T) []byte {
	t.Helper()
	return bytes.TrimSpace(w.secretOf(t, pki.ClusterCA).Data[pki.CertificateKey])
}
