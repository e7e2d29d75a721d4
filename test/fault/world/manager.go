package world

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"sigs.k8s.io/cluster-api/test/fault/proxy"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
	"sigs.k8s.io/cluster-api/test/managers"
)

// inMemory is the component that simulates machines, core the one with health checks.
const (
	inMemory = "infrastructure-in-memory"
	core     = "core"
)

// manager is one replica of a manager, and its proxy.
type manager struct {
	*managers.Manager
	proxy *proxy.Proxy

	// mu is held while the process is replaced.
	mu               sync.Mutex
	stopping         bool
	suspended        bool
	mayHaveLostLease bool // it was suspended, and must exit if it has lost its lease
	// logged is the size of the log when the process was started.
	logged int64
}

func (w *World) manager(p managers.Program, name string, as managers.Connection) (*manager, error) {
	kubeconfig := filepath.Join(w.Dir, name+".kubeconfig")
	m := &manager{}
	var err error
	if m.Manager, err = managers.NewManager(w.Root, w.Dir, name, p, kubeconfig); err != nil {
		return nil, err
	}
	m.Namespace = as.Namespace
	if p.Component == inMemory {
		data, err := w.data()
		if err != nil {
			return nil, err
		}
		m.Args = []string{"--data-dir", data, "--debug-address=", "--api-server-ports", w.options.Ports}
	} else if w.options.Standby {
		// Long enough for a busy machine, short enough for the tests.
		m.Args = []string{
			"--leader-elect", "--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=3s", "--leader-elect-retry-period=500ms",
		}
	}
	if p.Component == "control-plane-kubeadm" {
		m.Args = append(m.Args, "--etcd-join-timeout-duration=2s") // Simulated machines join in less.
	}
	if p.Component == "fleet" {
		port, err := managers.FreePort()
		if err != nil {
			return nil, err
		}
		address := fmt.Sprintf("127.0.0.1:%d", port)
		// Machines have one address of all replicas, and try again while it is not served.
		w.restored = cmp.Or(w.restored, "http://"+address)
		m.Args = append(m.Args, "--data-dir="+w.Backups(), "--serve-address="+address, "--serve-url="+w.restored)
	}
	if p.Component == core && w.options.Braked {
		m.Args = append(m.Args, fmt.Sprintf("--remediation-max-unhealthy-clusters=%d", scenario.MaxUnhealthyClusters))
	}
	m.proxy, err = proxy.New(proxy.Options{
		Manager:  p.Name,
		Upstream: as.Config,
		Admin:    w.Config,
		Scripts:  w.Scripts,
		Whole:    w.options.Operator,
		Replace:  m.replace,
		Suspend:  m.suspend,
		Resume:   m.resume,
	})
	if err != nil {
		return nil, err
	}
	return m, m.proxy.WriteKubeconfig(kubeconfig)
}

// replace kills the process, calls between, and starts another one.
func (m *manager) replace(between func()) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.Running.Kill(); err != nil {
		return err
	}
	between()
	return m.Start()
}

func (m *manager) suspend() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.suspended = true
	return m.Running.Suspend()
}

func (m *manager) resume() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.suspended, m.mayHaveLostLease = false, true
	return m.Running.Resume()
}

// mayExit reports whether the process is suspended, or was and may still exit because of that.
func (m *manager) mayExit() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.suspended || m.mayHaveLostLease
}

// keepLease records that the process still has its lease.
func (m *manager) keepLease() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mayHaveLostLease = false
}

// serves reports whether the process can respond.
func (m *manager) serves() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.suspended && m.Running != nil
}

// Start starts the process.
func (m *manager) Start() error {
	m.logged = size(m.Log)
	return m.Manager.Start()
}

// crash returns why the process exited, or nil if it had to: a leader that has lost its lease exits. On a busy machine that
// may happen without a fault.
func (m *manager) crash() *Crash {
	e, err := readExit(m.Log, m.logged)
	if err != nil {
		return &Crash{Manager: m.Replica, Reason: "cannot read its log: " + err.Error()}
	}
	if !e.panicked && (m.mayHaveLostLease || e.lostLease) {
		return nil
	}
	return &Crash{Manager: m.Replica, Reason: e.reason}
}

// supervise restarts the process when it exits by itself, and reports that unless it had to exit.
func (m *manager) supervise(ctx context.Context, crashed func(Crash)) {
	for ctx.Err() == nil {
		m.mu.Lock()
		running := m.Running
		m.mu.Unlock()
		<-running.Exited()
		m.mu.Lock()
		if m.stopping || ctx.Err() != nil {
			m.mu.Unlock()
			return
		}
		if running == m.Running {
			if c := m.crash(); c != nil {
				crashed(*c)
			}
			m.mayHaveLostLease = false
			if err := m.Start(); err != nil {
				m.proxy.Fail(err)
				m.mu.Unlock()
				return
			}
		}
		m.mu.Unlock()
	}
}

// end stops the process permanently.
func (m *manager) end() error {
	m.mu.Lock()
	m.stopping = true
	if m.suspended {
		_ = m.Running.Resume() // If this fails, Stop kills it.
	}
	m.mu.Unlock()
	return errors.Join(m.Stop(), m.proxy.Close())
}
