package world

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"

	"sigs.k8s.io/cluster-api/test/fault/proxy"
	"sigs.k8s.io/cluster-api/test/managers"
)

// inMemory is the component that simulates machines.
const inMemory = "infrastructure-in-memory"

// manager is one replica of a manager and what stands between it and everything else.
type manager struct {
	*managers.Manager
	proxy *proxy.Proxy

	// mu is held while the process is replaced.
	mu        sync.Mutex
	stopping  bool
	suspended bool
	lapsed    bool // it was suspended, and may have to end because it has lost its lease
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
		// Long enough for a busy machine, short enough to wait for.
		m.Args = []string{"--leader-elect", "--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=3s", "--leader-elect-retry-period=500ms"}
	}
	m.proxy, err = proxy.New(proxy.Options{
		Manager: p.Name, Upstream: as.Config, Admin: w.Config, Stage: w.Stage, Replace: m.replace, Suspend: m.suspend, Resume: m.resume,
	})
	if err != nil {
		return nil, err
	}
	return m, m.proxy.WriteKubeconfig(kubeconfig)
}

// replace kills the process and starts another one.
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
	m.suspended, m.lapsed = false, true
	return m.Running.Resume()
}

// unsteady reports whether the process is suspended, or was and may yet end because of it.
func (m *manager) unsteady() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.suspended || m.lapsed
}

// keptLease notes that the process did not have to end.
func (m *manager) keptLease() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lapsed = false
}

// serves reports whether the process can answer.
func (m *manager) serves() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.suspended && m.Running != nil
}

// lastWords is how much of a log says why a process has ended.
const lastWords = 4 << 10

// lostLease reports whether the process has ended because it was the leader no longer. On a busy machine that may happen
// without a fault.
func (m *manager) lostLease() bool {
	file, err := os.Open(m.Log)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err == nil && info.Size() > lastWords {
		_, _ = file.Seek(-lastWords, io.SeekEnd) // Reading all of it does no harm.
	}
	text, err := io.ReadAll(file)
	return err == nil && bytes.Contains(text, []byte("leader election lost"))
}

// supervise starts the process again when it ends by itself, and tells of it, unless it has lost its lease: then ending is
// what it has to do.
func (m *manager) supervise(ctx context.Context, crashed func(name string)) {
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
			if !m.lapsed && !m.lostLease() {
				crashed(m.Replica)
			}
			m.lapsed = false
			if err := m.Start(); err != nil {
				m.proxy.Fail(err)
				m.mu.Unlock()
				return
			}
		}
		m.mu.Unlock()
	}
}

// end stops the process for good.
func (m *manager) end() error {
	m.mu.Lock()
	m.stopping = true
	if m.suspended {
		_ = m.Running.Resume() // Otherwise it cannot stop; it is killed then.
	}
	m.mu.Unlock()
	return errors.Join(m.Stop(), m.proxy.Close())
}
