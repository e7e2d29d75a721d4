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
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	hostsv1 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha1"
	"sigs.k8s.io/cluster-api/examples/provider-hosts/internal/sshtest"
	"sigs.k8s.io/cluster-api/provider/ownership"
	"sigs.k8s.io/cluster-api/provider/testenv"
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
			if err := w.there.Get(t.Context(), w.request.NamespacedName, m); err != nil {
				t.Fatal(err)
			}
			claims, ran := w.hosts(t)
			if diff := cmp.Diff(map[string]hostsv1.HostSpec{m.Spec.Host.Name: {Claim: &hostsv1.Claim{Machine: "m", ID: "1"}}}, claims); diff != "" {
				t.Errorf("claimed Hosts (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{m.Spec.Host.Name}, ran); diff != "" {
				t.Errorf("the bootstrap data ran on (-want +got):\n%s", diff)
			}
			if err := w.there.Delete(t.Context(), m); err != nil {
				t.Fatal(err)
			}
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
	there   client.WithWatch
	servers map[string]*sshtest.Server
	request ctrl.Request
	// left is how many requests the manager still makes before it is killed; negative: it is not.
	left int
}

func newKilled(t *testing.T) *killed {
	t.Helper()
	w := &killed{servers: map[string]*sshtest.Server{}, request: ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "m"}}, left: -1}
	meta := metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "1", Labels: map[string]string{clusterv1.ClusterNameLabel: "m"}}
	cluster := &clusterv1.Cluster{ObjectMeta: meta, Status: clusterv1.ClusterStatus{InfrastructureReady: true}}
	machine := &clusterv1.Machine{ObjectMeta: meta, Spec: clusterv1.MachineSpec{Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("m")}}}
	m := &hostsv1.HostMachine{ObjectMeta: meta, Spec: hostsv1.HostMachineSpec{BootstrapCommand: `echo ran >>"$DIRECTORY/../ran"`, ResetCommand: "exit 0"}}
	m.OwnerReferences = []metav1.OwnerReference{ownership.Reference(machine, clusterv1.GroupVersion.WithKind("Machine"), true)}
	objects := []client.Object{cluster, machine, m, &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"value": []byte("data")}}}
	for _, name := range []string{"a", "b"} {
		server := sshtest.Start(t)
		w.servers[name] = server
		host := newHost(name)
		host.Spec = server.Spec()
		host.Spec.SSHKeySecret = name
		key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: map[string][]byte{corev1.SSHAuthPrivateKey: server.PrivateKey}}
		objects = append(objects, host, key)
	}
	w.there = newClient(t, interceptor.Funcs{}, objects...)
	return w
}

// reconcile is a manager's.
func (w *killed) reconcile(ctx context.Context) error {
	mortal := interceptor.NewClient(w.there, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			return w.mortal(func() error { return c.Get(ctx, key, obj, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return w.mortal(func() error { return c.List(ctx, list, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return w.mortal(func() error { return c.Patch(ctx, obj, patch, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, _ string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return w.mortal(func() error { return c.Status().Patch(ctx, obj, patch, opts...) })
		},
	})
	c := newController(mortal, mortal)
	_, err := c.Declared().Runner(c.Outside).Reconcile(ctx, w.request)
	return err
}

func (w *killed) mortal(request func() error) error {
	if w.left == 0 {
		return errors.New("killed")
	}
	err := request()
	if w.left > 0 {
		w.left--
	}
	if w.left == 0 {
		return errors.New("killed")
	}
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
		if err := w.there.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, host); err != nil {
			t.Fatal(err)
		}
		if host.Spec.Claim != nil || host.Spec.Unschedulable || len(host.Finalizers) > 0 && host.Spec.Claim == nil {
			changed[name] = hostsv1.HostSpec{Claim: host.Spec.Claim, Unschedulable: host.Spec.Unschedulable}
		}
		for range strings.Count(server.Read(t, "var/lib/ran"), "ran") {
			ran = append(ran, name)
		}
	}
	return changed, ran
}
