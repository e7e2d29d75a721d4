package world

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"sigs.k8s.io/cluster-api/test/fault/extension"
	"sigs.k8s.io/cluster-api/test/fault/history"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
	"sigs.k8s.io/cluster-api/test/fault/script"
	"sigs.k8s.io/cluster-api/test/managers"
)

// startTimeout is how long managers may take to start their webhook servers.
const startTimeout = 2 * time.Minute

// Options say what to start.
type Options struct {
	// Root is the root of the repository, Dir a folder for data and logs.
	Root, Dir string
	// Ports is the range of ports for the API servers of workload clusters, as "first-last". Worlds must not share ports.
	Ports string
	// Standby starts two replicas, with leader election, of every manager that supports it.
	Standby bool
	// Backups starts the manager of the fleet provider, too.
	Backups bool
	// IPAM starts the manager of the IPAM provider, too.
	IPAM bool
	// Hooks sets the feature gates RuntimeSDK and InPlaceUpdates, and starts and registers the extensions of package extension.
	Hooks bool
	// Operator starts the operator instead of all managers: it installs them, as components that run in the API server's process.
	Operator bool
	// Braked limits how many Clusters may have unhealthy Machines while Machines are remediated.
	Braked bool
}

// World is an API server and its managers.
type World struct {
	*managers.Server
	// Recorder records all events.
	Recorder *history.Recorder
	// Scripts has the faults to inject.
	Scripts *script.Set
	// LastPort is the last port on which API servers of workload clusters may listen.
	LastPort int
	// Releases is the folder of the repository from which the operator installs providers.
	Releases string

	options  Options
	managers []*manager
	restored string // the URL of the data of restores
	runs     int

	mu      sync.Mutex
	crashes []Crash
}

// Start starts everything, and returns when the API server serves all kinds.
func Start(ctx context.Context, o Options) (*World, error) {
	server, err := managers.StartServer(ctx, managers.Options{Root: o.Root, Dir: o.Dir, Accounts: true, Components: o.Operator})
	if err != nil {
		return nil, err
	}
	w := &World{Server: server, Scripts: &script.Set{}, options: o}
	if err := w.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%w (logs are in %s)", err, o.Dir), w.Stop())
	}
	return w, nil
}

func (w *World) start(ctx context.Context) error {
	if w.options.Operator {
		return w.operator(ctx)
	}
	programs := managers.Programs()
	if w.options.Hooks {
		programs = managers.WithExtensions()
	}
	if w.options.Backups {
		programs = append(programs, managers.Fleet())
	}
	if w.options.IPAM {
		programs = append(programs, managers.IPAM())
	}
	for _, p := range programs {
		if err := w.program(ctx, p); err != nil {
			return err
		}
	}
	_, last, _ := strings.Cut(w.options.Ports, "-")
	var err error
	if w.LastPort, err = strconv.Atoi(last); err != nil {
		return fmt.Errorf("ports %q: %w", w.options.Ports, err)
	}
	definitions, err := scenario.Definitions()
	if err != nil {
		return err
	}
	for _, o := range definitions {
		if err := w.Client.Create(ctx, o); err != nil {
			return fmt.Errorf("creating %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	if err := w.AwaitDefinitions(ctx); err != nil {
		return fmt.Errorf("waiting for the API server to serve all kinds: %w", err)
	}
	if w.options.Hooks {
		if err := w.extension(ctx); err != nil {
			return err
		}
	}
	w.Recorder, err = history.Record(ctx, w.Config)
	return err
}

// extension starts the extension, and returns when it is discovered.
func (w *World) extension(ctx context.Context) error {
	server, err := extension.Start(ctx, w.Client, filepath.Join(w.Dir, "extension"))
	if err != nil {
		return err
	}
	if err := server.Register(ctx); err != nil {
		return err
	}
	return extension.StartInPlace(ctx, w.Client, filepath.Join(w.Dir, "in-place-extension"))
}

// program installs and starts a program. The in-memory provider has one replica, because machines are simulated in its
// process.
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
	webhooks := &service{calls: script.Kind{Manager: p.Name, Verb: Admission}, scripts: w.Scripts, replicas: replicas}
	port, err := webhooks.open(ctx)
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

func (w *World) crashed(c Crash) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.crashes = append(w.crashes, c)
}

// Crashes returns the exits that no fault has caused since the last call.
func (w *World) Crashes() []Crash {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := w.crashes
	w.crashes = nil
	return found
}

// leaseTimeout is how long a manager may take after Resume to notice that it has lost its lease.
const leaseTimeout = 10 * time.Second

// WaitUntilResumed returns when no manager is suspended, and those that were have kept their lease or exited.
func (w *World) WaitUntilResumed(ctx context.Context) error {
	for _, m := range w.managers {
		err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, leaseTimeout, true, func(context.Context) (bool, error) {
			return !m.mayExit(), nil
		})
		if ctx.Err() != nil {
			return err
		}
		m.keepLease()
	}
	return nil
}

// Err returns why the world itself is broken, so that results of runs are invalid, or nil.
func (w *World) Err() error {
	errs := []error{w.Recorder.Err()}
	for _, m := range w.managers {
		errs = append(errs, m.proxy.Err())
	}
	return errors.Join(errs...)
}

// Namespace creates a namespace with the ClusterClass of all runs.
func (w *World) Namespace(ctx context.Context) (string, error) {
	w.runs++
	name := fmt.Sprintf("f%04d", w.runs)
	if err := w.Client.Create(ctx, namespace(name)); err != nil {
		return "", err
	}
	if w.options.Operator {
		w.Recorder.Adopt(name)
		return name, nil
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

// Backups is the directory below which the directories of BackupStores are.
func (w *World) Backups() string { return filepath.Join(w.Dir, "backups") }

// Discard deletes a namespace without waiting.
func (w *World) Discard(ctx context.Context, name string) error {
	if w.options.Operator {
		if err := w.undefine(ctx, name); err != nil {
			return err
		}
	}
	return w.Client.Delete(ctx, namespace(name))
}

// Logs returns the paths of the managers' logs.
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

// data creates the folder in which simulated clusters survive restarts of their provider.
func (w *World) data() (string, error) {
	dir := filepath.Join(w.Dir, "clusters")
	return dir, os.MkdirAll(dir, 0o700)
}
