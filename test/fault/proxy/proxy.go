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

	"sigs.k8s.io/cluster-api/provider/pki"
	"sigs.k8s.io/cluster-api/test/fault/request"
	"sigs.k8s.io/cluster-api/test/fault/script"
)

// Options say whom a Proxy serves.
type Options struct {
	// Manager is the name of the program.
	Manager string
	// Upstream connects to the management cluster as the manager, Admin as an administrator.
	Upstream, Admin *rest.Config
	// Stage has what is to happen to requests.
	Stage *script.Stage
	// Replace kills the manager and starts it again, and calls between when the old process has ended and there is no new one.
	Replace func(between func()) error
	// Suspend stops the manager until Resume.
	Suspend, Resume func() error
}

// Proxy is everything that one manager talks to.
type Proxy struct {
	options   Options
	authority *pki.CA
	main      *endpoint

	mu     sync.Mutex
	dead   bool
	failed error
	shims  map[string]*endpoint
}

// New is a Proxy that listens.
func New(o Options) (*Proxy, error) {
	authority, err := pki.NewCA(pki.ECDSA, time.Now())
	if err != nil {
		return nil, err
	}
	p := &Proxy{options: o, authority: authority, shims: map[string]*endpoint{}}
	p.main, err = p.open(o.Upstream, authority, "", "")
	o.Stage.OnTravel(p.snapshot)
	return p, err
}

// WriteKubeconfig writes a kubeconfig that leads to the Proxy.
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

// Err is what went wrong with killing or starting the manager.
func (p *Proxy) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// kill ends the manager and starts it again. Nothing that the old process sends is forwarded from now on.
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
		p.Fail(fmt.Errorf("killing and starting %s: %w", p.options.Manager, err))
	}
}

// Fail notes that a fault could not be made.
func (p *Proxy) Fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = errors.Join(p.failed, err)
}

// snapshot keeps lists as they are now.
func (p *Proxy) snapshot(on request.Kind) {
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

// Close ends everything.
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

// pause returns after a while, or when the context ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
