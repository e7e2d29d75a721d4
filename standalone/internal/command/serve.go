package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"filippo.io/age"
	"github.com/adrg/xdg"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"sigs.k8s.io/cluster-api/sdk/failsafe"
	"sigs.k8s.io/cluster-api/standalone/internal/controlplane"
	"sigs.k8s.io/cluster-api/standalone/internal/datadir"
	"sigs.k8s.io/cluster-api/standalone/internal/host"
)

// componentMetrics is the API server's path for the metrics of all hosted components. Its own are at /metrics, and
// profiles of the whole process at /debug/pprof/.
const componentMetrics = "/metrics/components"

// serveOptions are the flags of `capi serve`.
type serveOptions struct {
	dataDir       string
	kubeconfig    string
	bindAddress   net.IP
	securePort    int
	verbosity     int
	logToStderr   bool
	components    bool
	unsafeNoFsync bool

	encryptionKeys      string
	rotateEncryptionKey bool
	audit               controlplane.Audit
	backups             scheduleOptions

	programs map[string]host.Program
}

// newServe returns `capi serve`.
func newServe(programs map[string]host.Program) *cobra.Command {
	o := serveOptions{bindAddress: net.IPv4(127, 0, 0, 1), programs: programs}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a management cluster in the foreground",
		Long: `Run etcd, the Kubernetes API server, the garbage collection and namespace controllers, and the provider
components in this process, with all data in one directory.

When everything is ready, it prints one line to standard output, and nothing else. It shuts down on SIGTERM or
Ctrl-C, and exits immediately on a second one. When started again on the same directory, it continues with the same
data and address, even after it was killed.

Several can run on one machine, each with its own directory and port.`,
		Example: `  # Run a management cluster with its data in ./mgmt, on a free port that later runs reuse
  capi serve --data-dir ./mgmt

  # Write the admin kubeconfig elsewhere, and use a fixed port
  capi serve --data-dir ./mgmt --kubeconfig ./mgmt.kubeconfig --secure-port 6443

  # Run in the background, until the next reboot
  nohup capi serve --data-dir ./mgmt >./mgmt.ready 2>&1 &

  # Write an audit log, and encrypt Secrets with a new key
  capi serve --data-dir ./mgmt --audit-log-path ./mgmt-audit.log --rotate-encryption-key

  # Save a backup every six hours, and keep those of a week
  capi serve --data-dir ./mgmt --backup-dir /backup --backup-interval 6h --backup-keep 28 --backup-recipient age1...

  # Log to the terminal
  capi serve --data-dir ./mgmt -v 2

  # Run only the API server; managers run as separate programs
  capi serve --data-dir ./mgmt --components=false`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			failsafe.Contain() // The components share a process with the API server: a panic in one must not end the others.
			o.logToStderr = cmd.Flags().Changed("v")
			// The first signal starts a graceful shutdown; a second one ends the process immediately. Other commands keep
			// the default behavior.
			ctx, stop := context.WithCancel(cmd.Context())
			defer stop()
			signals := make(chan os.Signal, 1)
			signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
			defer signal.Stop(signals)
			go func() {
				select {
				case <-signals:
					signal.Stop(signals) // Before the shutdown begins: a second signal is not lost.
					stop()
				case <-ctx.Done():
				}
			}()
			return o.run(ctx, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.dataDir, "data-dir", filepath.Join(xdg.DataHome, "capi"), "Directory for all data, keys and logs of the cluster")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "File to write the admin kubeconfig to (default: kubeconfig in the data directory)")
	f.IPVar(&o.bindAddress, "bind-address", o.bindAddress, "IP address that the API server listens on")
	f.IntVar(&o.securePort, "secure-port", 0, "Port that the API server listens on; 0 means the previous one, or a free one")
	f.IntVarP(&o.verbosity, "v", "v", 0, "Log to standard error at this verbosity, instead of to capi.log in the data directory")
	f.BoolVar(&o.components, "components", true, "Run the provider components of Deployments")
	f.StringVar(&o.encryptionKeys, "encryption-keys", "",
		"File with the keys for encrypting Secrets at rest; "+
			"store it elsewhere to keep it out of backups of the data directory (default: encryption-keys.yaml in the data directory)")
	f.BoolVar(&o.rotateEncryptionKey, "rotate-encryption-key", false,
		"Encrypt all Secrets with a new key. By default, this happens at a start if the key is older than 90 days")
	f.StringVar(&o.audit.Log, "audit-log-path", "", "File to write the audit log to (default: no audit log)")
	f.StringVar(&o.audit.Policy, "audit-policy-file", "", "File with the audit policy (default: log the metadata of all requests)")
	o.backups.addTo(f)
	f.BoolVar(&o.unsafeNoFsync, "unsafe-no-fsync", false,
		"Do not sync writes to disk: faster, but a power failure destroys the data. For tests only")
	return cmd
}

// run serves until the context ends.
func (o *serveOptions) run(ctx context.Context, out, errOut io.Writer) (err error) {
	if o.securePort < 0 || o.securePort > 65535 {
		return fmt.Errorf("--secure-port is %d: use a port up to 65535, or 0 for the previous or a free one", o.securePort)
	}
	if o.audit.Policy != "" && o.audit.Log == "" {
		return errors.New("--audit-policy-file requires --audit-log-path")
	}
	recipients, err := o.backups.parse()
	if err != nil {
		return err
	}
	o.backups.warn(errOut)
	dir, err := datadir.Open(o.dataDir, controlplane.Version())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	if o.kubeconfig == "" {
		o.kubeconfig = dir.Path("kubeconfig")
	}
	if err := controlplane.CheckKubeconfig(o.kubeconfig); err != nil {
		return err
	}
	listener, err := o.listen(dir)
	if err != nil {
		return err
	}
	log := o.openLog(dir, errOut)
	defer func() { err = errors.Join(err, log.close()) }()

	if err := o.serve(ctx, out, dir, listener, recipients, log); err != nil {
		return log.explain(err)
	}
	return nil
}

// serve runs the control plane and the components until the context ends. It takes over the listener.
func (o *serveOptions) serve(
	ctx context.Context, out io.Writer, dir *datadir.Dir, listener net.Listener, recipients []age.Recipient, log logTarget,
) (err error) {
	options := controlplane.Options{
		Dir: dir, Listener: listener, Kubeconfig: o.kubeconfig, UnsafeNoFsync: o.unsafeNoFsync,
		EncryptionKeys: o.encryptionKeys, RotateEncryptionKey: o.rotateEncryptionKey, Audit: o.audit,
		// Components share one metrics registry, and do not open ports.
		Handlers: map[string]http.Handler{componentMetrics: promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{})},
		Log:      log.writer, Fatal: log.fatal, Clock: clock.RealClock{},
	}
	var egress net.Listener
	if o.components {
		options.EgressSocket = dir.Socket("egress")
		if egress, err = net.Listen("unix", options.EgressSocket); err != nil {
			return errors.Join(fmt.Errorf("listen for the API server's calls to Services: %w", err), listener.Close())
		}
		defer func() { _ = egress.Close() }()
	}
	control, err := controlplane.Start(ctx, options)
	if errors.Is(err, context.Canceled) {
		return nil // Stopped before it was ready.
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, control.Stop()) }()
	fmt.Fprintf(out, "capi is ready: %s, kubeconfig %s; stop it with Ctrl-C or: kill %d\n", control.Server, o.kubeconfig, os.Getpid())

	serving, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { cancel(<-control.Ended()) }()
	if len(recipients) > 0 {
		var scheduled sync.WaitGroup
		defer scheduled.Wait()
		defer cancel(nil)
		scheduled.Go(func() { o.schedule(serving, recipients, dir, log) })
	}
	if !o.components {
		<-serving.Done()
	} else if err := o.host(serving, control, dir, egress, log); err != nil || serving.Err() == nil {
		return fmt.Errorf("hosting components: %w", err)
	}
	if ctx.Err() == nil {
		return context.Cause(serving)
	}
	return nil
}

// host runs components until the context ends, and waits until all have stopped.
func (o *serveOptions) host(
	ctx context.Context, control *controlplane.ControlPlane, dir *datadir.Dir, egress net.Listener, log logTarget,
) error {
	ca, err := os.ReadFile(control.Files.CACert)
	if err != nil {
		return fmt.Errorf("read the cluster's CA: %w", err)
	}
	return host.Run(ctx, host.Options{
		Config: control.Config(), Server: control.Server, CAData: ca, Programs: o.programs,
		Egress: egress, DataDir: dir.Path("components"), Logger: log.logger, Clock: clock.RealClock{},
	})
}

// listen opens the API server's port: the specified one, else the previous one, else a free one. It stores the port for
// later runs.
func (o *serveOptions) listen(dir *datadir.Dir) (net.Listener, error) {
	port, remembered := o.securePort, false
	if port == 0 {
		saved, err := dir.Port()
		if err != nil {
			return nil, err
		}
		port, remembered = saved, saved != 0
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(o.bindAddress.String(), strconv.Itoa(port)))
	switch {
	case errors.Is(err, syscall.EADDRINUSE) && remembered:
		return nil, fmt.Errorf("port %d on %s, which this cluster used before, is in use by another program: "+
			"stop it, or use another port with --secure-port",
			port, o.bindAddress)
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("port %d on %s is in use by another program: use another one with --secure-port, or 0 for a free one",
			port, o.bindAddress)
	case err != nil:
		return nil, fmt.Errorf("listen for the API server (--bind-address, --secure-port): %w", err)
	}
	if err := dir.SavePort(listener.Addr().(*net.TCPAddr).Port); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}
