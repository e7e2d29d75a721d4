package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"sigs.k8s.io/cluster-api/standalone/internal/controlplane"
	"sigs.k8s.io/cluster-api/standalone/internal/datadir"
	"sigs.k8s.io/cluster-api/standalone/internal/host"
	"sigs.k8s.io/cluster-api/standalone/internal/readonly"
)

// Options are what to check.
type Options struct {
	// Config connects to the management cluster. Only requests that read are sent.
	Config *rest.Config
	// Namespace is that of the Clusters. Empty: all.
	Namespace string
	// NoWorkloads does not connect to workload clusters.
	NoWorkloads bool
	// Timeout bounds everything.
	Timeout time.Duration
	// Programs are our managers by the names of their images. Those of infrastructure providers do not run, whether they are in it or not.
	Programs map[string]host.Program
	// Progress receives what happens, as lines.
	Progress func(format string, args ...any)
	// Logger is the logger of the managers, and Log receives the log of etcd.
	Logger logr.Logger
	Log    io.Writer
	Clock  clock.WithTicker
}

// programs are the managers that run: those of the core and of kubeadm, which every infrastructure provider works with.
var programs = []string{"cluster-api-controller", "kubeadm-bootstrap-controller", "kubeadm-control-plane-controller"} // a constant list

// run is the state of a check.
type run struct {
	Options
	source    *source
	observer  *observer
	workloads *workloads
	dir       *datadir.Dir
}

// Run checks what our managers would write.
func Run(ctx context.Context, o Options) (result *Result, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	r := &run{Options: o, observer: newObserver(), workloads: newWorkloads(o.NoWorkloads)}
	if err := r.read(ctx); err != nil {
		return nil, err
	}
	folder, err := temporary()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if r.dir, err = datadir.Open(filepath.Join(folder, copyName), controlplane.Version()); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.dir.Close()) }()
	return r.tryOut(ctx)
}

// temporary creates a private folder for the copy, which has Secrets: in memory, if the system has a file system for that. It removes those
// that killed checks have left.
func temporary() (string, error) {
	const memory, pattern = "/dev/shm", "capi-takeover-check-"
	for _, parent := range []string{memory, os.TempDir()} {
		left, _ := filepath.Glob(filepath.Join(parent, pattern+"*")) // The pattern is valid.
		for _, folder := range left {
			if _, err := datadir.RemoveAbandoned(folder, copyName); err != nil {
				return "", err
			}
		}
	}
	if folder, err := os.MkdirTemp(memory, pattern); err == nil {
		return folder, nil
	}
	folder, err := os.MkdirTemp("", pattern)
	if err != nil {
		return "", fmt.Errorf("creating a folder for the copy: %w", err)
	}
	return folder, nil
}

// copyName is the name of the data directory in the folder for the copy.
const copyName = "copy"

// read reads the management cluster.
func (r *run) read(ctx context.Context) error {
	config := readonly.Config(r.Config)
	config.QPS = -1 // One request after the other.
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connecting to the management cluster: %w", err)
	}
	ours := map[string]host.Program{}
	for _, name := range programs {
		if program := r.Programs[name]; program != nil {
			ours[name] = program
		}
	}
	r.Programs = ours
	r.source = &source{
		client: client, namespace: r.Namespace, programs: ours, progress: r.Progress, facts: newFacts(), objects: map[string][]byte{},
		services: map[types.NamespacedName]bool{}, named: map[schema.GroupVersionResource]map[types.NamespacedName]bool{},
	}
	if r.source.authority, err = newAuthority(r.Clock.Now()); err != nil {
		return err
	}
	r.Progress("Reading the management cluster at %s", config.Host)
	if err := r.source.read(ctx); err != nil {
		return err
	}
	r.source.addServers(r.workloads)
	return nil
}

// tryOut runs our managers over the copy, and compares.
func (r *run) tryOut(ctx context.Context) (_ *Result, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the API server of the copy: %w", err)
	}
	egress, err := net.Listen("unix", r.dir.Socket("egress"))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen for calls of webhooks: %w", err), listener.Close())
	}
	r.Progress("Copying %d objects", len(r.source.objects))
	control, err := controlplane.Start(ctx, controlplane.Options{
		Dir: r.dir, Listener: listener, Kubeconfig: r.dir.Path("kubeconfig"), EgressSocket: r.dir.Socket("egress"),
		Fill:         func(ctx context.Context, etcd *clientv3.Client) error { return put(ctx, etcd, r.source.objects) },
		PlainSecrets: true, NoControllers: true, UnsafeNoFsync: true, Log: r.Log, Clock: r.Clock,
	})
	if err != nil {
		return nil, errors.Join(err, egress.Close())
	}
	defer func() { err = errors.Join(err, control.Stop()) }()
	revision, err := r.start(ctx, control, egress)
	if err != nil {
		return nil, err
	}
	before, after, err := written(ctx, control.Storage(), r.source.objects, revision)
	if err != nil {
		return nil, err
	}
	return r.result(before, after)
}

// errEnded is why the check ends when the host of the managers does.
var errEnded = errors.New("the managers have ended")

// start runs our managers until they have nothing more to do, and stops them. It returns the revision of the storage before.
func (r *run) start(ctx context.Context, control *controlplane.ControlPlane, egress net.Listener) (revision int64, err error) {
	ca, err := os.ReadFile(control.Files.CACert)
	if err != nil {
		return 0, fmt.Errorf("read the CA of the copy: %w", err)
	}
	certificates := r.dir.Path("webhooks")
	if err := r.source.authority.issue(certificates, r.source.services, r.Clock.Now()); err != nil {
		return 0, fmt.Errorf("issue the certificate of webhooks: %w", err)
	}
	api, err := kubernetes.NewForConfig(control.Config())
	if err != nil {
		return 0, err
	}
	first, err := control.Storage().Get(ctx, registry, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	hosting, stop := context.WithCancel(context.WithoutCancel(ctx))
	waiting, end := context.WithCancelCause(ctx)
	defer end(nil)
	go func() { end(<-control.Ended()) }()
	hosted := make(chan error, 1)
	go func() {
		defer end(errEnded)
		hosted <- host.Run(hosting, host.Options{
			Config: control.Config(), Server: control.Server, CAData: ca, Egress: egress, DataDir: r.dir.Path("components"),
			Programs: managers(r.Programs, r.observer, r.workloads, certificates), Logger: r.observer.logger(r.Logger), Clock: r.Clock,
		})
	}()
	r.Progress("Running our managers over the copy")
	q := &quiet{
		etcd: control.Storage(), api: api, metrics: metrics.Registry, workloads: r.workloads, observer: r.observer, copied: r.source.deployments,
		progress: r.Progress,
	}
	err = q.wait(waiting)
	r.observer.stop()
	stop()
	return first.Header.Revision, errors.Join(err, <-hosted)
}
