package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/standalone/internal/host"
	"sigs.k8s.io/cluster-api/standalone/internal/testcluster"
)

// cluster is the real control plane that the tests of this package share, with a host on it.
type cluster struct {
	client  client.WithWatch
	dataDir string   // what the host keeps components' files in
	ended   sync.Map // namespace -> chan string, which gets the namespace when a component there has ended
}

// endedOf returns the channel that is closed when a component of the namespace has stopped.
func (c *cluster) endedOf(namespace string) chan string {
	ended, _ := c.ended.LoadOrStore(namespace, make(chan string, 10))
	return ended.(chan string)
}

var shared cluster // TestMain has no other way to give it to the tests

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	root, err := os.MkdirTemp("", "capi-host-test-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	started, err := testcluster.Start(root, map[string]host.Program{"test-component": testComponent})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, started.Stop()) }()
	shared.dataDir = started.Dir.Path("components")
	if shared.client, err = client.NewWithWatch(started.Config, client.Options{Scheme: scheme()}); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		appsv1.AddToScheme, corev1.AddToScheme, rbacv1.AddToScheme, eventsv1.AddToScheme, admissionregistrationv1.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err) // the types are compiled in
		}
	}
	return s
}

// namespace creates a namespace for a test, with a ServiceAccount "component" that has few permissions.
func namespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	create(t, ns)
	create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "component"}})
	create(t, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "component"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "get", "update"}}},
	})
	create(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "component"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "component"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns.Name, Name: "component"}},
	})
	return ns.Name
}

func create(t *testing.T, object client.Object) {
	t.Helper()
	if err := shared.client.Create(t.Context(), object); err != nil {
		t.Fatalf("creating %T %s: %v", object, object.GetName(), err)
	}
}

// until follows an object of the list's kind until the condition holds, and returns it.
func until[T client.Object](t *testing.T, list client.ObjectList, namespace string, what string, holds func(T) bool) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // Many times what anything takes, for a loaded machine.
	defer cancel()
	watch, err := shared.client.Watch(ctx, list, client.InNamespace(namespace))
	if err != nil {
		t.Fatalf("watching %T: %v", list, err)
	}
	defer watch.Stop()
	var last any
	for event := range watch.ResultChan() {
		last = event.Object
		if object, ok := event.Object.(T); ok && holds(object) {
			return object
		}
	}
	t.Fatalf("waited for %s; the last event was of %+v", what, last) //nolint:revive // The compiler requires the next line.
	panic("unreachable")
}
