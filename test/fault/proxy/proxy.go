package proxy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/test/fault/script"
)

// Options configure a Proxy.
type Options struct {
	// Manager is the name of the program.
	Manager string
	// Upstream connects to the management cluster as the manager, Admin as an administrator.
	Upstream, Admin *rest.Config
	// Scripts has the faults to inject.
	Scripts *script.Set
	// Whole is set if requests for objects without a namespace count for the active run: only one run at a time has such objects.
	Whole bool
	// Replace kills the manager, calls between when the process has exited, and starts it again.
	Replace func(between func()) error
	// Suspend suspends the manager until Resume.
	Suspend, Resume func() error
}

// Proxy is the proxy of one manager.
type Proxy struct {
	options   Options
	authority *pki.CA
	main      *endpoint

	mu     sync.Mutex
	dead   bool
	failed error
	shims  map[string]*endpoint
}

// New returns a Proxy that listens.
func New(o Options) (*Proxy, error) {
	authority, err := pki.NewCA(pki.ECDSA, time.Now())
	if err != nil {
		return nil, err
	}
	p := &Proxy{options: o, authority: authority, shims: map[string]*endpoint{}}
	p.main, err = p.open(o.Upstream, authority, "", "")
	o.Scripts.OnTravel(p.snapshot)
	return p, err
}

// WriteKubeconfig writes a kubeconfig with the address of the Proxy.
func (p *Proxy) WriteKubeconfig(path string) error {
	trusted, err := p.authority.PEM()
	if err != nil {
		return err
	}
	const name = "fault"
	raw, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: p.main.url(), CertificateAuthorityData: trusted.Certificate}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
	if err != nil {
		return err
	}
	return os.WriteFile(path, raw, 0o600)
}

// Err returns why a fault could not be injected, or nil.
func (p *Proxy) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// kill kills the manager and starts it again. Pending requests of the killed process are not forwarded.
func (p *Proxy) kill() {
	p.mu.Lock()
	if p.dead {
		p.mu.Unlock()
		return
	}
	p.dead = true
	p.mu.Unlock()
	err := p.options.Replace(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.dead = false
	})
	if err != nil {
		p.Fail(fmt.Errorf("restarting %s: %w", p.options.Manager, err))
	}
}

// Fail records that a fault could not be injected.
func (p *Proxy) Fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = errors.Join(p.failed, err)
}

// snapshot saves the current lists of the kinds that on selects.
func (p *Proxy) snapshot(on script.Kind) {
	p.mu.Lock()
	all := slices.Collect(maps.Values(p.shims))
	p.mu.Unlock()
	for _, e := range append(all, p.main) {
		if on.Manager == p.options.Manager && on.Workload == (e.workload != "") {
			e.snapshot(on)
		}
	}
}

func (p *Proxy) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// Close closes all endpoints.
func (p *Proxy) Close() error {
	p.mu.Lock()
	all := []*endpoint{p.main}
	for _, e := range p.shims {
		all = append(all, e)
	}
	p.mu.Unlock()
	var errs []error
	for _, e := range all {
		if err := e.close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// pause returns after d, or when the context ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
