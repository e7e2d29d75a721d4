package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"sigs.k8s.io/cluster-api/standalone/internal/certs"
	"sigs.k8s.io/cluster-api/standalone/internal/datadir"
	"sigs.k8s.io/cluster-api/standalone/internal/encryption"
)

const (
	// readyPoll is how often a starting API server is polled for readiness, within the process.
	readyPoll = 20 * time.Millisecond
	// readyTimeout bounds the startup, which takes about three seconds, but much longer on a machine under load.
	readyTimeout = 2 * time.Minute
	// certCheck is how often certificates are checked for renewal.
	certCheck = 12 * time.Hour
)

// Options configure the control plane.
type Options struct {
	// Dir is the open data directory. The caller closes it, after Stop.
	Dir *datadir.Dir
	// Listener is where the API server serves HTTPS. Start takes ownership of it.
	Listener net.Listener
	// Kubeconfig is the path of the admin kubeconfig.
	Kubeconfig string
	// EgressSocket is the unix socket of an HTTP CONNECT proxy for calls to Services (webhooks), or empty for
	// dialing Services' addresses directly.
	EgressSocket string
	// EncryptionKeys is the file with the keys that encrypt Secrets in etcd. It is created if it does not exist. Empty:
	// encryption-keys.yaml in the data directory.
	EncryptionKeys string
	// RotateEncryptionKey generates a new key at this start.
	RotateEncryptionKey bool
	// Audit configures the audit log.
	Audit Audit
	// Handlers are served by the API server at these paths, authorized by RBAC as non-resource URLs.
	Handlers map[string]http.Handler
	// Fill, if not nil, writes to etcd before the API server starts.
	Fill func(context.Context, *clientv3.Client) error
	// PlainSecrets stores Secrets without encryption, for data that does not outlive the process. EncryptionKeys has no effect then.
	PlainSecrets bool
	// NoControllers runs no built-in controllers: what is stored only changes by requests.
	NoControllers bool
	// UnsafeNoFsync makes writes faster, but a power failure destroys the data. For tests.
	UnsafeNoFsync bool
	// Log receives etcd's log. The API server logs with klog.
	Log io.Writer
	// Fatal receives why etcd ends the process, which it does when it cannot save data. Nil: only Log.
	Fatal io.Writer
	// Clock is the time for certificates.
	Clock clock.WithTicker
}

// ControlPlane is a running control plane.
type ControlPlane struct {
	// Server is the URL for clients on this machine.
	Server string
	// Files are the cluster's certificates.
	Files certs.Files

	options  Options
	first    bool // nothing was stored before
	etcd     *etcdServer
	storage  *clientv3.Client
	keys     *encryption.Keyring // nil with PlainSecrets
	api      *apiServer
	cancel   context.CancelFunc // stops the built-in controllers and the certificate renewal
	running  chan struct{}      // closed when they have stopped
	stopAPI  context.CancelFunc
	apiEnded chan error
}

// Start starts everything and returns when the API server is ready and the kubeconfig is written. If it fails or the
// context ends, it stops what it started.
func Start(ctx context.Context, o Options) (_ *ControlPlane, err error) {
	c := &ControlPlane{options: o, Server: serverURL(o.Listener), running: make(chan struct{}), apiEnded: make(chan error, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	pki, err := o.Dir.Private("pki")
	if err != nil {
		return nil, err
	}
	if c.Files, err = certs.Ensure(pki, hosts(o.Listener), o.Clock.Now()); err != nil {
		return nil, err
	}
	data, err := o.Dir.Private("etcd")
	if err != nil {
		return nil, err
	}
	c.first = !exists(filepath.Join(data, "member"))
	if c.etcd, err = startEtcd(ctx, data, o.Dir.Socket("etcd"), o.UnsafeNoFsync, o.Log, o.Fatal); err != nil {
		return nil, err
	}
	c.storage = v3client.New(c.etcd.Server)
	if o.Fill != nil {
		if err := o.Fill(ctx, c.storage); err != nil {
			return nil, err
		}
	}
	if !o.PlainSecrets {
		if err := c.openKeys(ctx); err != nil {
			return nil, err
		}
	}
	// kube-apiserver exits the process if it is stopped during startup, so a stop waits until it has started.
	if err := c.startAPI(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err := writeKubeconfig(o.Kubeconfig, c.Server, c.Files); err != nil {
		return nil, err
	}
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.cancel = cancel
	if err := c.startBackground(background); err != nil {
		close(c.running)
		return nil, err
	}
	return c, nil
}

// startBackground starts what runs besides the API server, until the context ends.
func (c *ControlPlane) startBackground(ctx context.Context) error {
	var running sync.WaitGroup
	if !c.options.NoControllers {
		controllers, err := newControllers(ctx, c.api.loopback)
		if err != nil {
			return err
		}
		running.Go(func() { controllers.run(ctx) })
	}
	running.Go(func() { c.renew(ctx) })
	if !c.options.PlainSecrets {
		running.Go(func() { c.reencrypt(ctx) })
	}
	go func() {
		defer close(c.running)
		running.Wait()
	}()
	return nil
}

// startAPI runs the API server and waits until it is ready.
func (c *ControlPlane) startAPI(ctx context.Context) error {
	encryptionConfig := ""
	if c.keys != nil {
		encryptionConfig = c.keys.Path()
	}
	egress, err := c.writeEgressConfig()
	if err != nil {
		return err
	}
	policy, err := c.auditPolicy()
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	c.stopAPI = stop
	c.api, err = newAPIServer(serving, serverConfig{
		listener: c.options.Listener, files: c.Files, etcdSocket: c.options.Dir.Socket("etcd"), egressConfig: egress,
		encryptionConfig: encryptionConfig, audit: Audit{Log: c.options.Audit.Log, Policy: policy},
		handlers: c.options.Handlers,
	})
	if err != nil {
		close(c.apiEnded)
		return err
	}
	go func() {
		defer close(c.apiEnded)
		c.apiEnded <- c.api.run(serving)
	}()
	return c.waitReady(ctx)
}

// laterHooks lists checks of /readyz that wait for one second first, and then create objects that already exist after the
// first start.
func laterHooks() []string {
	return []string{"poststarthook/rbac/bootstrap-roles", "poststarthook/scheduling/bootstrap-system-priority-classes"}
}

// waitReady polls the API server until it is ready.
func (c *ControlPlane) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	client, err := kubernetes.NewForConfig(c.api.loopback)
	if err != nil {
		return fmt.Errorf("create a client for the API server: %w", err)
	}
	question := client.Discovery().RESTClient().Get().AbsPath("/readyz")
	if !c.first {
		for _, check := range laterHooks() {
			question.Param("exclude", check)
		}
	}
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		var status int
		last := question.Do(ctx).StatusCode(&status).Error()
		if status == http.StatusOK {
			return nil
		}
		select {
		case err := <-c.apiEnded:
			return fmt.Errorf("the API server exited during startup: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("the API server did not become ready: %w", errors.Join(ctx.Err(), last))
		case <-tick.C:
		}
	}
}

// Config returns a client configuration with all permissions and without a client-side rate limit, for use inside this
// process.
func (c *ControlPlane) Config() *rest.Config { return rest.CopyConfig(c.api.loopback) }

// Storage returns a client of etcd, which can be used until Stop.
func (c *ControlPlane) Storage() *clientv3.Client { return c.storage }

// Ended receives the error if the API server or etcd exits before Stop.
func (c *ControlPlane) Ended() <-chan error {
	out := make(chan error, 1)
	go func() {
		select {
		case err := <-c.apiEnded:
			out <- fmt.Errorf("the API server exited: %w", err)
		case err := <-c.etcd.Err():
			out <- fmt.Errorf("etcd exited: %w", err)
		}
	}()
	return out
}

// Stop stops the controllers, then the API server after the requests in flight, then etcd, and returns when everything
// has stopped. It can be called after a failed Start.
func (c *ControlPlane) Stop() error {
	if c.cancel != nil {
		c.cancel()
		<-c.running
	}
	if c.stopAPI != nil {
		c.stopAPI()
		for range c.apiEnded { // drains the error, until it is closed
		}
	}
	if c.storage != nil {
		_ = c.storage.Close() // It is in this process.
	}
	if c.etcd != nil {
		c.etcd.Close()
	}
	return errors.Join(ignoreClosed(c.options.Listener.Close()))
}

// renew keeps the serving certificate and the kubeconfig's client certificate valid while the process runs. The API
// server reloads the serving certificate by itself.
func (c *ControlPlane) renew(ctx context.Context) {
	ticker := c.options.Clock.NewTicker(certCheck)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		files, err := certs.Ensure(c.options.Dir.Path("pki"), hosts(c.options.Listener), c.options.Clock.Now())
		if err == nil {
			err = writeKubeconfig(c.options.Kubeconfig, c.Server, files)
		}
		if err != nil {
			fmt.Fprintf(c.options.Log, "failed to renew certificates, retrying in %s: %v\n", certCheck, err)
		}
	}
}

// egressTemplate sends the API server's calls to Services through a CONNECT proxy on a unix socket.
const egressTemplate = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport:
      uds:
        udsName: %q
`

func (c *ControlPlane) writeEgressConfig() (string, error) {
	if c.options.EgressSocket == "" {
		return "", nil
	}
	path := c.options.Dir.Path("egress.yaml")
	return path, datadir.WriteFile(path, fmt.Appendf(nil, egressTemplate, c.options.EgressSocket), 0o600)
}

func serverURL(l net.Listener) string {
	address := l.Addr().(*net.TCPAddr)
	return "https://" + net.JoinHostPort(host(address.IP), strconv.Itoa(address.Port))
}

// hosts are the names in the serving certificate.
func hosts(l net.Listener) []string {
	out := []string{
		"localhost", "127.0.0.1", "::1",
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
	}
	ip := l.Addr().(*net.TCPAddr).IP
	if !ip.IsUnspecified() {
		if !slices.Contains(out, ip.String()) {
			out = append(out, ip.String())
		}
		return out
	}
	// Bound to all addresses: clients on other machines use this one's name or any of its addresses.
	if name, err := os.Hostname(); err == nil {
		out = append(out, name)
	}
	addresses, _ := net.InterfaceAddrs()
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && !network.IP.IsLoopback() && !network.IP.IsLinkLocalUnicast() {
			out = append(out, network.IP.String())
		}
	}
	return out
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
