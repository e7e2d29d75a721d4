package management

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// service returns Service n/s with port 443.
func service(target intstr.IntOrString, selector map[string]string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s"},
		Spec:       corev1.ServiceSpec{Selector: selector, Ports: []corev1.ServicePort{{Port: 80}, {Port: 443, TargetPort: target}}},
	}
}

// pod returns a Pod with port 9443, which is called webhook.
func pod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, Labels: map[string]string{"app": "s"}}}
	p.Spec.Containers = []corev1.Container{{Name: "side"}, {Name: "main", Ports: []corev1.ContainerPort{{Name: "webhook", ContainerPort: 9443}}}}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	for _, f := range change {
		f(p)
	}
	return p
}

var errForwarded = errors.New("forwarded")

// dialed dials Service n/s and returns what is forwarded, or the error.
func dialed(t *testing.T, address string, objects ...client.Object) string {
	t.Helper()
	to := ""
	d := newDialer(fakeapi.New(t, fakeapi.Options{Objects: objects}), func(_ context.Context, pod types.NamespacedName, port int) (net.Conn, error) {
		to = pod.String() + ":" + strconv.Itoa(port)
		return nil, errForwarded
	})
	if _, err := d.DialContext(t.Context(), "tcp", address); !errors.Is(err, errForwarded) {
		return err.Error()
	}
	return to
}

func TestDial(t *testing.T) {
	app := map[string]string{"app": "s"}
	unready := func(p *corev1.Pod) { p.Status.Conditions = nil }
	other := func(p *corev1.Pod) { p.Labels = map[string]string{"app": "other"} }
	for _, tc := range []struct {
		reason, address string
		objects         []client.Object
		want            string
	}{
		{reason: "a named port", objects: []client.Object{service(intstr.FromString("webhook"), app), pod("a")}, want: "n/a:9443"},
		{reason: "a number", objects: []client.Object{service(intstr.FromInt32(8443), app), pod("a")}, want: "n/a:8443"},
		{reason: "the port of the Service itself", objects: []client.Object{service(intstr.IntOrString{}, app), pod("a")}, want: "n/a:443"},
		{
			reason:  "Pods that are not ready, of others, or being deleted are left out",
			objects: []client.Object{service(intstr.FromInt32(1), app), pod("a", unready), pod("b", other), pod("c", object.Deleting[*corev1.Pod]), pod("d"), pod("e")},
			want:    "n/d:1",
		},
		{reason: "no Pod is ready", objects: []client.Object{service(intstr.FromInt32(1), app), pod("a", unready)}, want: "none of the 1 Pods of Service n/s is ready and has its port 443"},
		{reason: "no Pod has the named port", objects: []client.Object{service(intstr.FromString("x"), app), pod("a")}, want: "none of the 1 Pods of Service n/s is ready and has its port 443"},
		{reason: "the Service does not exist", want: `reading Service n/s: services "s" not found`},
		{reason: "the Service has no selector", objects: []client.Object{service(intstr.FromInt32(1), nil), pod("a")}, want: "Service n/s has no selector: only Services with Pods can be reached through the API server"},
		{reason: "the Service has no such port", address: "s.n.svc:8443", objects: []client.Object{service(intstr.FromInt32(1), app)}, want: "Service n/s has no port 8443"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if tc.address == "" {
				tc.address = "s.n.svc:443"
			}
			if got := dialed(t, tc.address, tc.objects...); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestDialNetwork connects to an address that is not a Service's.
func TestDialNetwork(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := newDialer(nil, nil).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if _, err := newDialer(nil, nil).DialContext(t.Context(), "tcp", "s.n.svc:https"); err == nil || !strings.Contains(err.Error(), "must be a number") {
		t.Errorf("a port that is not a number: %v", err)
	}
}
