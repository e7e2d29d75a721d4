package world

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"sigs.k8s.io/cluster-api/test/fault/history"
	"sigs.k8s.io/cluster-api/test/fault/proxy"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
	"sigs.k8s.io/cluster-api/test/fault/script"
	"sigs.k8s.io/cluster-api/test/managers"
)

// startTimeout is how long managers may take until their webhooks answer.
const startTimeout = 2 * time.Minute

// World is an API server and its managers.
type World struct {
	*managers.Server
	// Recorder has everything that happens.
	Recorder *history.Recorder
	// Stage has what is to happen to requests.
	Stage *script.Stage

	managers []*manager
	runs     int
}

// manager is a manager and what stands between it and everything else.
type manager struct {
	*managers.Manager
	proxy *proxy.Proxy
}

// Start starts everything, below dir, and returns when classes can be made.
func Start(ctx context.Context, root, dir string) (*World, error) {
	server, err := managers.StartServer(ctx, root, dir)
	if err != nil {
		return nil, err
	}
	w := &World{Server: server, Stage: &script.Stage{}}
	if err := w.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%w (logs are in %s)", err, dir), w.Stop())
	}
	return w, nil
}

func (w *World) start(ctx context.Context) error {
	for _, p := range managers.Programs() {
		m, err := w.manager(p)
		if err != nil {
			return err
		}
		w.managers = append(w.managers, m)
		if err := w.Install(ctx, m.Manager); err != nil {
			return err
		}
		if err := m.Start(); err != nil {
			return err
		}
	}
	var err error
	w.Recorder, err = history.Record(ctx, w.Config)
	return err
}

func (w *World) manager(p managers.Program) (*manager, error) {
	kubeconfig := filepath.Join(w.Dir, p.Name+".kubeconfig")
	m := &manager{}
	var err error
	if m.Manager, err = managers.NewManager(w.Root, w.Dir, p, kubeconfig); err != nil {
		return nil, err
	}
	if p.Component == "infrastructure-in-memory" {
		data := filepath.Join(w.Dir, "clusters")
		if err := os.MkdirAll(data, 0o700); err != nil {
			return nil, err
		}
		m.Args = []string{"--data-dir", data, "--debug-address="}
	}
	m.proxy, err = proxy.New(proxy.Options{
		Manager: p.Name, Upstream: w.Config, Stage: w.Stage, Kill: func() error { return m.Running.Kill() }, Restart: m.Start,
		Suspend: func() error { return m.Running.Suspend() }, Resume: func() error { return m.Running.Resume() },
	})
	if err != nil {
		return nil, err
	}
	return m, m.proxy.WriteKubeconfig(kubeconfig)
}

// Err tells what is wrong with the world itself: then runs say nothing.
func (w *World) Err() error {
	errs := []error{w.Recorder.Err()}
	for _, m := range w.managers {
		errs = append(errs, m.proxy.Err())
	}
	return errors.Join(errs...)
}

// Namespace makes a namespace with the class of all runs.
func (w *World) Namespace(ctx context.Context) (string, error) {
	w.runs++
	name := fmt.Sprintf("f%04d", w.runs)
	ns := &unstructured.Unstructured{}
	ns.SetAPIVersion("v1")
	ns.SetKind("Namespace")
	ns.SetName(name)
	if err := w.Client.Create(ctx, ns); err != nil {
		return "", err
	}
	objects, err := scenario.Class()
	if err != nil {
		return "", err
	}
	for _, o := range objects {
		o.SetNamespace(name)
		var last error
		err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, startTimeout, true, func(ctx context.Context) (bool, error) {
			last = w.Client.Create(ctx, o.DeepCopy())
			return last == nil || apierrors.IsAlreadyExists(last), nil
		})
		if err != nil {
			return "", fmt.Errorf("creating %s %s: %w", o.GetKind(), o.GetName(), errors.Join(err, last))
		}
	}
	return name, nil
}

// Logs are the paths of the managers' logs.
func (w *World) Logs() []string {
	var paths []string
	for _, m := range w.managers {
		paths = append(paths, m.Log)
	}
	return paths
}

// Discard deletes a namespace, in the background.
func (w *World) Discard(ctx context.Context, namespace string) error {
	ns := &unstructured.Unstructured{}
	ns.SetAPIVersion("v1")
	ns.SetKind("Namespace")
	ns.SetName(namespace)
	return w.Client.Delete(ctx, ns)
}

// Stop ends every process.
func (w *World) Stop() error {
	var errs []error
	for _, m := range w.managers {
		if m.Manager != nil {
			errs = append(errs, m.Stop())
		}
		errs = append(errs, m.proxy.Close())
	}
	return errors.Join(append(errs, w.Server.Stop())...)
}
