package manager

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/component-base/logs"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"sigs.k8s.io/cluster-api/sdk/manager/internal/access"
	"sigs.k8s.io/cluster-api/sdk/manager/internal/serving"
	"sigs.k8s.io/cluster-api/sdk/manager/internal/webhookcert"
)

// listen opens the listener for a purpose. It is nil if the host does not provide one.
func (r *run) listen(purpose, address string) (net.Listener, error) {
	var listener net.Listener
	var err error
	if r.host.Listen != nil {
		listener, err = r.host.Listen(purpose)
	} else {
		listener, err = net.Listen("tcp", address)
	}
	if err != nil {
		return nil, fmt.Errorf("listening for %s requests: %w", purpose, err)
	}
	if listener != nil {
		r.listeners = append(r.listeners, listener)
	}
	return listener, nil
}

// serve adds an endpoint to the manager, unless it is disabled or the host does not provide a listener.
func (r *run) serve(mgr ctrl.Manager, purpose, address string, handler http.Handler, config *tls.Config) error {
	if off(address) {
		return nil
	}
	listener, err := r.listen(purpose, address)
	if err != nil || listener == nil {
		return err
	}
	if config != nil {
		listener = tls.NewListener(listener, config)
	}
	return mgr.Add(serving.New(purpose, listener, handler))
}

// addEndpoints adds health, diagnostics and profiles.
func (r *run) addEndpoints(mgr *checkedManager) error {
	o := r.options
	if err := r.serve(mgr, ListenHealth, o.healthAddress, mgr.handler(r.log), nil); err != nil {
		return err
	}
	if err := r.serve(mgr, ListenProfiler, o.profilerAddress, profilesHandler(), nil); err != nil {
		return err
	}
	if o.metricsAddress != "" {
		return r.serve(mgr, ListenDiagnostics, o.metricsAddress, metricsHandler(metrics.Registry), nil)
	}
	if o.insecureDiagnostics {
		return r.serve(mgr, ListenDiagnostics, o.diagnosticsAddress, metricsHandler(metrics.Registry), nil)
	}
	handler, err := r.secureDiagnostics(mgr)
	if err != nil {
		return fmt.Errorf("preparing diagnostics: %w", err)
	}
	certificates := webhookcert.NewMemory(clock.RealClock{}, "localhost")
	return r.serve(mgr, ListenDiagnostics, o.diagnosticsAddress, handler,
		&tls.Config{GetCertificate: certificates.GetCertificate, NextProtos: []string{"h2", "http/1.1"}})
}

// secureDiagnostics returns the diagnostics handler, with authentication and authorization by the API server.
func (r *run) secureDiagnostics(mgr ctrl.Manager) (http.Handler, error) {
	var set setVerbosity
	if !r.host.shared() {
		set = logs.GlogSetter
	}
	guard, err := access.New(mgr.GetConfig(), mgr.GetHTTPClient(), clock.RealClock{}, r.log.WithName("diagnostics"))
	if err != nil {
		return nil, err
	}
	return guard.Protect(diagnosticsHandler(metrics.Registry, set)), nil
}

// checkedManager is a manager that records its health checks, so that they can be served on any listener.
type checkedManager struct {
	ctrl.Manager
	live, ready map[string]healthz.Checker
	started     atomic.Bool
}

func newCheckedManager(mgr ctrl.Manager) *checkedManager {
	return &checkedManager{Manager: mgr, live: map[string]healthz.Checker{}, ready: map[string]healthz.Checker{}}
}

// AddHealthzCheck adds a check to /healthz. It returns an error after the manager has started.
func (m *checkedManager) AddHealthzCheck(name string, check healthz.Checker) error {
	return m.addCheck(m.live, name, check)
}

// AddReadyzCheck adds a check to /readyz. It returns an error after the manager has started.
func (m *checkedManager) AddReadyzCheck(name string, check healthz.Checker) error {
	return m.addCheck(m.ready, name, check)
}

func (m *checkedManager) addCheck(to map[string]healthz.Checker, name string, check healthz.Checker) error {
	if m.started.Load() {
		return errors.New("health checks must be added before the manager starts")
	}
	to[name] = check
	return nil
}

func (m *checkedManager) handler(log logr.Logger) http.Handler {
	mux := http.NewServeMux()
	serving.NewHealth("/healthz", m.live, log).Register(mux)
	serving.NewHealth("/readyz", m.ready, log).Register(mux)
	return mux
}
