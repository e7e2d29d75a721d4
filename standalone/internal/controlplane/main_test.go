package controlplane_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/standalone/internal/controlplane"
	"sigs.k8s.io/cluster-api/standalone/internal/datadir"
	"sigs.k8s.io/cluster-api/standalone/internal/testcluster"
)

// cluster is the control plane that the tests of this package share. Its clients are those of a user: they use the
// kubeconfig that was written.
type cluster struct {
	dir        *datadir.Dir
	control    *controlplane.ControlPlane
	config     *rest.Config
	client     client.WithWatch
	kubernetes kubernetes.Interface
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
	root, err := os.MkdirTemp("", "capi-controlplane-test-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	started, err := testcluster.Start(root, nil)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, started.Stop()) }()
	shared.dir, shared.control, shared.config = started.Dir, started.Control, started.Config
	if shared.kubernetes, err = kubernetes.NewForConfig(shared.config); err != nil {
		return 1, err
	}
	if shared.client, err = client.NewWithWatch(shared.config, client.Options{}); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// timeout is generous, so that tests do not fail on a loaded machine.
const timeout = 2 * time.Minute

// gone waits until the object does not exist. The list is of its kind.
func gone(t *testing.T, object client.Object, list client.ObjectList) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	err := shared.client.List(ctx, list, client.InNamespace(object.GetNamespace()))
	if err != nil {
		t.Fatalf("listing %T: %v", list, err)
	}
	present := false
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		present = present || item.(client.Object).GetName() == object.GetName()
		return nil
	})
	if !present {
		return
	}
	watcher, err := shared.client.Watch(ctx, list, &client.ListOptions{
		Namespace: object.GetNamespace(), Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()},
	})
	if err != nil {
		t.Fatalf("watching %T: %v", list, err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		if found, ok := event.Object.(client.Object); ok && event.Type == watch.Deleted && found.GetName() == object.GetName() {
			return
		}
	}
	t.Fatalf("%s is still there after %s", object.GetName(), timeout)
}
