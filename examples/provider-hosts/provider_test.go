package hosts_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hosts "sigs.k8s.io/cluster-api/examples/provider-hosts"
	hostsv1 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha1"
	hostsv1alpha2 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha2"
	"sigs.k8s.io/cluster-api/examples/provider-hosts/internal/sshtest"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/manager"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

var server testenv.Server

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	server.Main(m)
}

const (
	// secret is in the bootstrap data, and must not be anywhere else.
	secret = "abcdef.0123456789abcdef"
	// running notes that it ran, and waits for the gate of the Host.
	running = `echo "$PROVIDER_ID" >>"$DIRECTORY/../ran"; cat >>"$DIRECTORY/../ran"; cat "$DIRECTORY/../gate"`
)

// world is a namespace with a Cluster, and the manager, which has the permissions that its components file grants.
type world struct {
	client.Client
	t         *testing.T
	env       *testenv.Env
	namespace string
	build     object.Builder
	cluster   *clusterv1.Cluster
	logs      logs
}

// logs is what the managers logged.
type logs struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logs) add(prefix, args string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintln(&l.text, prefix, args)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	env := server.Start(t, "providers/core/config/crd", "examples/provider-hosts/config/crd")
	w := &world{Client: env.NewClient(t, testenv.Scheme(t, hostsv1.AddToScheme, hostsv1alpha2.AddToScheme)), t: t, env: env, namespace: env.Namespace(t)}
	w.build.Namespace = w.namespace
	w.permissions()
	w.cluster = w.build.Cluster(func(c *clusterv1.Cluster) {
		c.Spec.InfrastructureRef = *object.Reference(hostsv1.GroupVersion.WithKind("HostCluster"), "c")
	})
	w.create(w.cluster)
	infrastructure := object.ControlledBy(&hostsv1alpha2.HostCluster{ObjectMeta: w.meta("c")}, w.cluster)
	infrastructure.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "10.0.0.9", Port: 6443}
	w.create(infrastructure)
	return w
}

func (w *world) meta(name string) metav1.ObjectMeta { return w.build.Meta("", name) }

func (w *world) create(obj client.Object) {
	w.t.Helper()
	testenv.Must(w.t, w.Create(w.t.Context(), obj))
}

// permissions grants what the components file grants.
func (w *world) permissions() {
	w.t.Helper()
	for _, file := range []string{"config/role.yaml", "config/manager.yaml"} {
		content, err := os.ReadFile(file)
		if err != nil {
			w.t.Fatal(err)
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
		for {
			obj := &unstructured.Unstructured{}
			if err := decoder.Decode(obj); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				w.t.Fatal(err)
			}
			if obj.GetKind() == "Deployment" {
				continue // the manager runs in the test
			}
			if err := w.env.Client.Create(w.t.Context(), obj); err != nil && !apierrors.IsAlreadyExists(err) {
				w.t.Fatal(err)
			}
		}
	}
}

// manage runs the manager until stop is called or the test ends.
func (w *world) manage() (stop func()) {
	w.t.Helper()
	config := rest.CopyConfig(w.env.Config)
	config.Impersonate.UserName = "system:serviceaccount:hosts-system:hosts-manager"
	config.Impersonate.Groups = []string{"system:serviceaccounts", "system:serviceaccounts:hosts-system", "system:authenticated"}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- manager.Run(ctx, hosts.NewComponent(), []string{"--namespace", w.namespace}, manager.Host{
			Config: config, Namespace: "hosts-system", Logger: funcr.New(w.logs.add, funcr.Options{Verbosity: 9}),
			Listen: func(string) (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") },
		})
	}()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			if err := <-ended; err != nil {
				w.t.Errorf("the manager ended with %v", err)
			}
		}
	}
	w.t.Cleanup(stop)
	return stop
}

// infrastructureReady does what core does once the HostCluster is ready.
func (w *world) infrastructureReady() {
	w.t.Helper()
	infrastructure := &hostsv1alpha2.HostCluster{}
	w.eventually("the HostCluster to be ready", infrastructure, "c", func() bool { return infrastructure.Status.Initialization.Provisioned })
	w.cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	testenv.Must(w.t, w.Status().Update(w.t.Context(), w.cluster))
}

// host adds a server to the inventory.
func (w *world) host(name string, change func(*hostsv1.Host)) *sshtest.Server {
	w.t.Helper()
	s := sshtest.Start(w.t)
	h := &hostsv1.Host{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: map[string]string{hostsv1.ZoneLabel: "rack-1"}}, Spec: s.Spec()}
	h.Spec.SSHKeySecret = name + "-ssh"
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name + "-ssh"}, Data: map[string][]byte{"ssh-privatekey": s.PrivateKey}}
	if change != nil {
		change(h)
	}
	w.create(key)
	w.create(h)
	return s
}

// machine makes a Machine with its HostMachine, as core and a template would.
func (w *world) machine(name, command string, reset ...string) *clusterv1.Machine {
	w.t.Helper()
	hm := &hostsv1.HostMachine{ObjectMeta: w.meta(name), Spec: hostsv1.HostMachineSpec{BootstrapCommand: command, ResetCommand: "exit 0"}}
	if len(reset) > 0 {
		hm.Spec.ResetCommand = reset[0]
	}
	return w.provisioned(w.build, hm)
}

// provisioned creates a HostMachine and its Machine.
func (w *world) provisioned(build object.Builder, hm *hostsv1.HostMachine) *clusterv1.Machine {
	w.t.Helper()
	m := build.Machine(hm.Name, func(m *clusterv1.Machine) {
		m.Spec.Bootstrap.ConfigRef = *object.Reference(bootstrapv1.GroupVersion.WithKind("KubeadmConfig"), hm.Name)
		m.Spec.InfrastructureRef = *object.Reference(hostsv1.GroupVersion.WithKind("HostMachine"), hm.Name)
	})
	w.create(m)
	w.create(object.ControlledBy(hm, m))
	return m
}

// data gives a Machine its bootstrap data.
func (w *world) data(m *clusterv1.Machine) {
	w.t.Helper()
	w.create(w.build.BootstrapData(m.Name+"-data", "join "+secret+"\n"))
	before := m.DeepCopy()
	m.Spec.Bootstrap.DataSecretName = ptr.To(m.Name + "-data")
	testenv.Must(w.t, w.Patch(w.t.Context(), m, client.MergeFrom(before)))
}

func (w *world) delete(name string) {
	w.t.Helper()
	testenv.Must(w.t, w.Delete(w.t.Context(), &hostsv1.HostMachine{ObjectMeta: w.meta(name)}))
}

// eventually waits until an object is as it should be.
func (w *world) eventually(what string, obj client.Object, name string, is func() bool) {
	w.t.Helper()
	testenv.Eventually(w.t, what, func() error {
		if err := w.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, obj); err != nil {
			return err
		}
		if !is() {
			return fmt.Errorf("it is %+v", obj)
		}
		return nil
	})
}

func (w *world) eventuallyGone(name string) {
	w.t.Helper()
	testenv.Eventually(w.t, "the HostMachine to go", func() error {
		hm := &hostsv1.HostMachine{}
		err := w.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, hm)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is %+v, %w", hm.Status, err)
	})
}

// eventuallyReason waits until a condition of a HostMachine has a reason, and returns its message.
func (w *world) eventuallyReason(name string, of clusterv1.ConditionType, reason string) string {
	w.t.Helper()
	hm := &hostsv1.HostMachine{}
	w.eventually(string(of)+" to be "+reason, hm, name, func() bool { c := condition.Get(hm, of); return c != nil && c.Reason == reason })
	return condition.Get(hm, of).Message
}

func (w *world) eventuallyReady(name string) *hostsv1.HostMachine {
	w.t.Helper()
	hm := &hostsv1.HostMachine{}
	w.eventually("the HostMachine to be ready", hm, name, func() bool {
		return hm.Status.Ready && condition.IsTrue(hm, clusterv1.ReadyV1Beta1Condition) && report.IsTrue(hm, clusterv1.ReadyCondition)
	})
	return hm
}

func (w *world) eventuallyPhase(name, phase string) *hostsv1.Host {
	w.t.Helper()
	h := &hostsv1.Host{}
	w.eventually("the Host to be "+phase, h, name, func() bool { return h.Status.Phase == phase })
	return h
}

func TestLife(t *testing.T) {
	w := newWorld(t)
	s := w.host("h", nil)
	w.manage()
	w.eventuallyPhase("h", "Available")
	w.infrastructureReady()
	m := w.machine("m", running)
	w.eventuallyReason("m", hostsv1.BootstrappedCondition, hostsv1.WaitingForDataReason)
	w.eventuallyPhase("h", "Claimed")
	open := s.Gate(t)
	w.data(m)
	w.eventuallyReason("m", hostsv1.BootstrappedCondition, hostsv1.BootstrappingReason)
	open()
	hm := w.eventuallyReady("m")
	id := "hosts://" + w.namespace + "/h"
	want := hostsv1.HostMachineSpec{ProviderID: &id, FailureDomain: ptr.To("rack-1"), Host: &hostsv1.HostReference{Name: "h", Claim: hm.UID}, BootstrapCommand: running, ResetCommand: "exit 0"}
	if diff := cmp.Diff(want, hm.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if !hm.Status.Initialization.Provisioned || hm.Status.FailureDomain != "rack-1" || !report.IsFalse(hm, clusterv1.PausedCondition) {
		t.Errorf("contract v1beta2 reads in the status %+v", hm.Status)
	}
	if diff := cmp.Diff([]clusterv1.MachineAddress{{Type: clusterv1.MachineInternalIP, Address: "127.0.0.1"}}, hm.Status.Addresses); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(id+"\njoin "+secret+"\n", s.Read(t, "var/lib/ran")); diff != "" {
		t.Errorf("what ran (-want +got):\n%s", diff)
	}
	infrastructure := &hostsv1alpha2.HostCluster{}
	w.eventually("the HostCluster to know its zones", infrastructure, "c", func() bool {
		return cmp.Equal([]clusterv1.FailureDomain{{Name: "rack-1", ControlPlane: ptr.To(true)}}, infrastructure.Status.FailureDomains)
	})
	w.delete("m")
	w.eventuallyGone("m")
	h := w.eventuallyPhase("h", "Available")
	if h.Spec.Claim != nil || len(h.Finalizers) > 0 || s.Read(t, sshtest.State+"/claim") != "" || s.Read(t, sshtest.State+"/bootstrap.log") != "" {
		t.Errorf("the Host is not as before: %+v", h)
	}
	w.nothingSecret()
}

// nothingSecret checks that nothing that people read repeats bootstrap data.
func (w *world) nothingSecret() {
	w.t.Helper()
	for _, list := range []client.ObjectList{&corev1.EventList{}, &hostsv1.HostMachineList{}, &hostsv1.HostList{}} {
		testenv.Must(w.t, w.List(w.t.Context(), list, client.InNamespace(w.namespace)))
		if text := fmt.Sprintf("%+v", list); strings.Contains(text, secret) {
			w.t.Errorf("bootstrap data is in %s", text)
		}
	}
	w.logs.mu.Lock()
	defer w.logs.mu.Unlock()
	if text := w.logs.text.String(); text == "" || strings.Contains(text, secret) {
		w.t.Errorf("bootstrap data is in the log, or nothing is:\n%s", text)
	}
}

func TestTwoMachinesAndOneHost(t *testing.T) {
	w := newWorld(t)
	w.host("h", nil)
	w.manage()
	w.infrastructureReady()
	a, b := w.machine("a", "exit 0"), w.machine("b", "exit 0")
	h := w.eventuallyPhase("h", "Claimed")
	has, waits := a, b
	if h.Spec.Claim.Machine == "b" {
		has, waits = b, a
	}
	w.eventuallyReason(waits.Name, hostsv1.HostClaimedCondition, hostsv1.NoHostReason)
	w.data(has)
	w.eventuallyReady(has.Name)
	w.delete(has.Name)
	w.data(waits)
	hm := w.eventuallyReady(waits.Name)
	if diff := cmp.Diff(&hostsv1.HostReference{Name: "h", Claim: hm.UID}, hm.Spec.Host); diff != "" {
		t.Errorf("the Host of the one that waited (-want +got):\n%s", diff)
	}
}

func TestRestarts(t *testing.T) {
	w := newWorld(t)
	s := w.host("h", nil)
	stop := w.manage()
	w.infrastructureReady()
	m := w.machine("m", running)
	w.eventuallyReason("m", hostsv1.BootstrappedCondition, hostsv1.WaitingForDataReason)
	stop() // between claim and bootstrap
	open := s.Gate(t)
	w.data(m)
	stop = w.manage()
	w.eventuallyReason("m", hostsv1.BootstrappedCondition, hostsv1.BootstrappingReason)
	stop() // while the bootstrap data runs
	open()
	w.manage()
	w.eventuallyReady("m")
	if n := strings.Count(s.Read(t, "var/lib/ran"), secret); n != 1 {
		t.Errorf("the bootstrap data ran %d times", n)
	}
}

func TestWrongHostKey(t *testing.T) {
	w := newWorld(t)
	s := w.host("h", func(h *hostsv1.Host) { h.Spec.HostKeys = []string{sshtest.Start(t).Key} })
	w.manage()
	w.infrastructureReady()
	w.data(w.machine("m", "exit 0"))
	if message := w.eventuallyReason("m", hostsv1.BootstrappedCondition, hostsv1.HostFailedReason); !strings.Contains(message, "is not in spec.hostKeys") {
		t.Errorf("the condition says %q", message)
	}
	if n := s.Commands("claim"); n != 0 {
		t.Errorf("%d commands were sent to a server that is not the Host", n)
	}
	h := w.eventuallyPhase("h", "Claimed")
	before := h.DeepCopy()
	h.Spec.HostKeys = append(h.Spec.HostKeys, s.Key)
	testenv.Must(t, w.Patch(t.Context(), h, client.MergeFrom(before)))
	w.eventuallyReady("m")
}

func TestHostKeysAreRequired(t *testing.T) {
	w := newWorld(t)
	h := &hostsv1.Host{ObjectMeta: w.meta("h"), Spec: hostsv1.HostSpec{Address: "10.0.0.1", SSHKeySecret: "key"}}
	if err := w.Create(t.Context(), h); !apierrors.IsInvalid(err) {
		t.Errorf("a Host without host keys: %v", err)
	}
}

func TestUnreachable(t *testing.T) {
	w := newWorld(t)
	s := w.host("h", nil)
	w.manage()
	w.infrastructureReady()
	w.data(w.machine("m", "exit 0"))
	w.eventuallyReady("m")
	s.Unplug()
	w.delete("m")
	if message := w.eventuallyReason("m", hostsv1.HostReleasedCondition, hostsv1.HostFailedReason); !strings.Contains(message, "Host h: connecting") {
		t.Errorf("the condition says %q", message)
	}
	if h := w.eventuallyPhase("h", "Claimed"); h.Spec.Claim == nil {
		t.Error("a Host that could not be reset is free")
	}
	hm := &hostsv1.HostMachine{ObjectMeta: w.meta("m")}
	testenv.Must(t, w.Patch(t.Context(), hm, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+hostsv1.AbandonAnnotation+`":""}}}`))))
	w.eventuallyGone("m")
	if h := w.eventuallyPhase("h", "Unschedulable"); h.Spec.Claim != nil {
		t.Errorf("the Host is still claimed: %+v", h.Spec)
	}
}

// A Host that is claimed stays until it is released, even if it is deleted.
func TestDeleteHost(t *testing.T) {
	w := newWorld(t)
	w.host("h", nil)
	w.host("free", func(h *hostsv1.Host) { h.Spec.Unschedulable = true })
	w.manage()
	w.infrastructureReady()
	w.data(w.machine("m", "exit 0"))
	w.eventuallyReady("m")
	for _, name := range []string{"h", "free"} {
		testenv.Must(t, w.Delete(t.Context(), &hostsv1.Host{ObjectMeta: w.meta(name)}))
	}
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "free"}, &hostsv1.Host{}); !apierrors.IsNotFound(err) {
		t.Errorf("a Host that is not claimed: %v", err)
	}
	if h := w.eventuallyPhase("h", "Claimed"); h.DeletionTimestamp == nil {
		t.Error("the Host is not being deleted")
	}
	w.delete("m")
	w.eventuallyGone("m")
	testenv.Eventually(t, "the Host to go", func() error {
		err := w.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "h"}, &hostsv1.Host{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it stays, %w", err)
	})
}

// clusterctl move creates the Host before the HostMachine.
func TestMoved(t *testing.T) {
	w := newWorld(t)
	w.host("h", func(h *hostsv1.Host) { h.Spec.Claim = &hostsv1.Claim{Machine: "m", ID: "before"} })
	w.manage()
	w.eventuallyPhase("h", "Orphaned")
	hm := &hostsv1.HostMachine{ObjectMeta: w.meta("m"), Spec: hostsv1.HostMachineSpec{Host: &hostsv1.HostReference{Name: "h", Claim: "before"}}}
	hm.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
	w.create(hm)
	w.eventuallyPhase("h", "Claimed")
}

// A reset that fails is tried again. Its output is not in the condition.
func TestResetFails(t *testing.T) {
	w := newWorld(t)
	w.host("h", nil)
	w.manage()
	w.infrastructureReady()
	w.data(w.machine("m", "exit 0", "echo "+secret+"; exit 1"))
	w.eventuallyReady("m")
	w.delete("m")
	const want = "Host h: the reset command failed, see reset.log in /var/lib/cluster-api-hosts there"
	if diff := cmp.Diff(want, w.eventuallyReason("m", hostsv1.HostReleasedCondition, hostsv1.ResetFailedReason)); diff != "" {
		t.Errorf("the condition's message (-want +got):\n%s", diff)
	}
	if h := w.eventuallyPhase("h", "Claimed"); h.Spec.Claim == nil {
		t.Error("a Host that could not be reset is free")
	}
}

func TestBootstrapFails(t *testing.T) {
	w := newWorld(t)
	w.host("h", nil)
	w.manage()
	w.infrastructureReady()
	w.data(w.machine("m", "cat; cat >&2; exit 3"))
	const want = "the bootstrap data on Host h failed: ended 3, see bootstrap.log in /var/lib/cluster-api-hosts there"
	if diff := cmp.Diff(want, w.eventuallyReason("m", hostsv1.BootstrappedCondition, hostsv1.BootstrapFailedReason)); diff != "" {
		t.Errorf("the condition's message (-want +got):\n%s", diff)
	}
	hm := &hostsv1.HostMachine{}
	w.eventually("the failure to be reported in contract v1beta1", hm, "m", func() bool { return hm.Status.FailureReason != nil })
	if ready := report.Get(hm, clusterv1.ReadyCondition); ready == nil || ready.Reason != hostsv1.BootstrapFailedReason || ready.Message != want {
		t.Errorf("contract v1beta2 has the condition %v", ready)
	}
	w.nothingSecret()
}

func TestPaused(t *testing.T) {
	w := newWorld(t)
	w.host("h", nil)
	w.manage()
	w.infrastructureReady()
	before := w.cluster.DeepCopy()
	w.cluster.Spec.Paused = ptr.To(true)
	testenv.Must(t, w.Patch(t.Context(), w.cluster, client.MergeFrom(before)))
	w.data(w.machine("m", "exit 0"))
	// Another Cluster's machine shows that the manager has seen the first one by then.
	elsewhere := object.Builder{Namespace: w.namespace, ClusterName: "other"}
	other := elsewhere.Cluster()
	w.create(other)
	object.InfrastructureReady(other)
	testenv.Must(t, w.Status().Update(t.Context(), other))
	spec := hostsv1.HostMachineSpec{BootstrapCommand: "exit 0", ResetCommand: "exit 0"}
	m := w.provisioned(elsewhere, &hostsv1.HostMachine{ObjectMeta: elsewhere.Meta("HostMachine", "n"), Spec: spec})
	unready := m.DeepCopy()
	m.Spec.Bootstrap.DataSecretName = ptr.To("m-data")
	testenv.Must(t, w.Patch(t.Context(), m, client.MergeFrom(unready)))
	w.eventuallyReady("n")
	paused := &hostsv1.HostMachine{}
	testenv.Must(t, w.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "m"}, paused))
	w.eventually("the pause to be reported", paused, "m", func() bool { return report.IsTrue(paused, clusterv1.PausedCondition) })
	if len(paused.Finalizers) > 0 || len(paused.Status.Conditions) > 1 {
		t.Errorf("a paused HostMachine was touched: %+v", paused)
	}
}
