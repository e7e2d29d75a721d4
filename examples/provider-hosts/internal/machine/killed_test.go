package machine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hostsv1 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha1"
	"sigs.k8s.io/cluster-api/examples/provider-hosts/internal/sshtest"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// The manager is killed after each of its requests in turn, before it sees the answer: while it sets a HostMachine up, and again while
// it takes it down. Another one continues.
func TestKilledAfterAnyRequest(t *testing.T) {
	for n, more := 1, true; more; n++ {
		t.Run(fmt.Sprintf("request %d", n), func(t *testing.T) {
			w := newKilled(t)
			more = w.killed(t, n)
			w.until(t, "the HostMachine to be ready", func(m *hostsv1.HostMachine, err error) bool { return err == nil && m.Status.Ready })
			m := &hostsv1.HostMachine{}
			testenv.Must(t, w.there.Get(t.Context(), w.request.NamespacedName, m))
			claims, ran := w.hosts(t)
			if diff := cmp.Diff(map[string]hostsv1.HostSpec{m.Spec.Host.Name: {Claim: &hostsv1.Claim{Machine: "m", ID: "1"}}}, claims); diff != "" {
				t.Errorf("claimed Hosts (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{m.Spec.Host.Name}, ran); diff != "" {
				t.Errorf("the bootstrap data ran on (-want +got):\n%s", diff)
			}
			testenv.Must(t, w.there.Delete(t.Context(), m))
			more = w.killed(t, n) || more
			w.until(t, "the HostMachine to go", func(_ *hostsv1.HostMachine, err error) bool { return apierrors.IsNotFound(err) })
			if claims, _ := w.hosts(t); len(claims) > 0 {
				t.Errorf("Hosts that are claimed or unschedulable: %v", claims)
			}
			for name, server := range w.servers {
				if claim := server.Read(t, sshtest.State+"/claim"); claim != "" {
					t.Errorf("Host %s was not reset: it has %s", name, claim)
				}
			}
		})
	}
}

// killed is a HostMachine that may have one of two Hosts.
type killed struct {
	there   *fakeapi.Server
	servers map[string]*sshtest.Server
	request ctrl.Request
	// left is how many requests the manager still makes before it is killed; negative: it is not.
	left int
}

func newKilled(t *testing.T) *killed {
	t.Helper()
	w := &killed{servers: map[string]*sshtest.Server{}, request: ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "m"}}, left: -1}
	machine := build.Machine("m", func(m *clusterv1.Machine) { m.Spec.Bootstrap.DataSecretName = ptr.To("m") })
	m := object.ControlledBy(newMachine(), machine)
	m.Finalizers = nil
	m.Spec = hostsv1.HostMachineSpec{BootstrapCommand: `echo ran >>"$DIRECTORY/../ran"`, ResetCommand: "exit 0"}
	objects := []client.Object{build.Cluster(object.InfrastructureReady), machine, m, build.BootstrapData("m", "data")}
	for _, name := range []string{"a", "b"} {
		server := sshtest.Start(t)
		w.servers[name] = server
		host := newHost(name)
		host.Spec = server.Spec()
		host.Spec.SSHKeySecret = name
		key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: map[string][]byte{corev1.SSHAuthPrivateKey: server.PrivateKey}}
		objects = append(objects, host, key)
	}
	w.there = newAPI(t, objects...)
	killed := errors.New("killed")
	w.there.Before = func(fakeapi.Request) error {
		if w.left == 0 {
			return killed
		}
		return nil
	}
	w.there.After = func(_ fakeapi.Request, err error) error {
		if w.left > 0 {
			w.left--
		}
		if w.left == 0 {
			return killed
		}
		return err
	}
	return w
}

// reconcile is a manager's.
func (w *killed) reconcile(ctx context.Context) error {
	c := newController(w.there)
	_, err := c.Declared().Runner(c.Clients).Reconcile(ctx, w.request)
	return err
}

// killed reconciles until the manager has made n requests, and reports whether it made so many before there was no more to do.
func (w *killed) killed(t *testing.T, n int) bool {
	t.Helper()
	w.left = n
	for range 3 { // no more requests are needed than three reconciles make
		_ = w.reconcile(t.Context()) // it was killed
	}
	reached := w.left == 0
	w.left = -1
	return reached
}

// until reconciles until the HostMachine is as it should be.
func (w *killed) until(t *testing.T, what string, is func(*hostsv1.HostMachine, error) bool) {
	t.Helper()
	testenv.Eventually(t, what, func() error {
		failed := w.reconcile(t.Context())
		m := &hostsv1.HostMachine{}
		if err := w.there.Get(t.Context(), w.request.NamespacedName, m); !is(m, err) {
			return fmt.Errorf("it is %+v: %w", m, errors.Join(err, failed))
		}
		return nil
	})
}

// hosts returns what was done to Hosts' specs, and where the bootstrap data ran, once for each time.
func (w *killed) hosts(t *testing.T) (changed map[string]hostsv1.HostSpec, ran []string) {
	t.Helper()
	changed = map[string]hostsv1.HostSpec{}
	for name, server := range w.servers {
		host := &hostsv1.Host{}
		testenv.Must(t, w.there.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, host))
		if host.Spec.Claim != nil || host.Spec.Unschedulable || len(host.Finalizers) > 0 && host.Spec.Claim == nil {
			changed[name] = hostsv1.HostSpec{Claim: host.Spec.Claim, Unschedulable: host.Spec.Unschedulable}
		}
		for range strings.Count(server.Read(t, "var/lib/ran"), "ran") {
			ran = append(ran, name)
		}
	}
	return changed, ran
}
