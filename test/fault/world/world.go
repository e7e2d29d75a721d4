package world

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"sigs.k8s.io/cluster-api/test/fault/history"
	"sigs.k8s.io/cluster-api/test/fault/request"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
	"sigs.k8s.io/cluster-api/test/fault/script"
	"sigs.k8s.io/cluster-api/test/managers"
)

// startTimeout is how long managers may take until their webhooks answer.
const startTimeout = 2 * time.Minute

// Options say what to start.
type Options struct {
	// Root is the root of the repository, Dir a folder for data and logs.
	Root, Dir string
	// Ports are where the API servers of workload clusters listen: "first-last". No other World may have any of them.
	Ports string
	// Standby starts two replicas of every manager that can have them, which elect a leader.
	Standby bool
}

// World is an API server and its managers.
type World struct {
	*managers.Server
	// Recorder has everything that happens.
	Recorder *history.Recorder
	// Stage has what is to happen to requests.
	Stage *script.Stage

	options  Options
	managers []*manager
	runs     int

	mu      sync.Mutex
	crashes []string
}

// Start starts everything, and returns when classes can be made.
func Start(ctx context.Context, o Options) (*World, error) {
	server, err := managers.StartServer(ctx, managers.Options{Root: o.Root, Dir: o.Dir, Accounts: true})
	if err != nil {
		return nil, err
	}
	w := &World{Server: server, Stage: &script.Stage{}, options: o}
	if err := w.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%w (logs are in %s)", err, o.Dir), w.Stop())
	}
	return w, nil
}

func (w *World) start(ctx context.Context) error {
	for _, p := range managers.Programs() {
		if err := w.program(ctx, p); err != nil {
			return err
		}
	}
	if err := w.AwaitDefinitions(ctx); err != nil {
		return fmt.Errorf("waiting for the API server to serve all kinds: %w", err)
	}
	var err error
	w.Recorder, err = history.Record(ctx, w.Config)
	return err
}

// program installs and starts a program, in as many replicas as it can have. The in-memory provider is its machines, so
// there is one of it.
func (w *World) program(ctx context.Context, p managers.Program) error {
	single := p.Component == inMemory
	names := []string{p.Name}
	if w.options.Standby && !single {
		names = append(names, p.Name+"-2")
	}
	connection, err := w.Connection(ctx, p)
	if err != nil {
		return err
	}
	var replicas []*manager
	for _, name := range names {
		m, err := w.manager(p, name, connection)
		if err != nil {
			return err
		}
		replicas = append(replicas, m)
	}
	for _, m := range replicas[1:] {
		m.ShareCertificate(replicas[0].Manager)
	}
	entrance := &front{calls: request.Kind{Manager: p.Name, Verb: Admission}, stage: w.Stage, replicas: replicas}
	port, err := entrance.open(ctx)
	if err != nil {
		return err
	}
	if err := w.Install(ctx, replicas[0].Manager, port); err != nil {
		return err
	}
	for _, m := range replicas {
		if err := m.Start(); err != nil {
			return err
		}
		w.managers = append(w.managers, m)
		go m.supervise(ctx, w.crashed)
	}
	return nil
}

func (w *World) crashed(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.crashes = append(w.crashes, name)
}

// Crashes returns the managers that have ended by themselves since it was called last.
func (w *World) Crashes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := w.crashes
	w.crashes = nil
	return found
}

// lapse is how long a manager that was suspended may take to notice that it has lost its lease.
const lapse = 10 * time.Second

// Steady returns when no manager is suspended, and those that were have ended because they lost their leases, or did not
// lose them.
func (w *World) Steady(ctx context.Context) error {
	for _, m := range w.managers {
		err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, lapse, true, func(context.Context) (bool, error) {
			return !m.unsteady(), nil
		})
		if ctx.Err() != nil {
			return err
		}
		m.keptLease()
	}
	return nil
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
	if err := w.Client.Create(ctx, namespace(name)); err != nil {
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

func namespace(name string) *unstructured.Unstructured {
	ns := &unstructured.Unstructured{}
	ns.SetAPIVersion("v1")
	ns.SetKind("Namespace")
	ns.SetName(name)
	return ns
}

// Discard deletes a namespace, in the background.
func (w *World) Discard(ctx context.Context, name string) error {
	return w.Client.Delete(ctx, namespace(name))
}

// Logs are the paths of the managers' logs.
func (w *World) Logs() []string {
	var paths []string
	for _, m := range w.managers {
		paths = append(paths, m.Log)
	}
	return paths
}

// Stop ends every process.
func (w *World) Stop() error {
	var errs []error
	for _, m := range slices.Backward(w.managers) {
		errs = append(errs, m.end())
	}
	return errors.Join(append(errs, w.Server.Stop())...)
}

// data makes the folder in which simulated clusters outlive their provider.
func (w *World) data() (string, error) {
	dir := filepath.Join(w.Dir, "clusters")
	return dir, os.MkdirAll(dir, 0o700)
}
