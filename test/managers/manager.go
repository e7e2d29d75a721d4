package managers

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/testenv/process"
)

// Program is one of the product's managers.
type Program struct {
	// Name is the name of the program in bin/.
	Name string
	// Component is the folder of config/ with its manifests.
	Component string
	// Gates are the feature gates to set, as --feature-gates takes them.
	Gates string
	// Keys is the algorithm of the keys that it generates for clusters; empty for its default.
	Keys pki.KeyAlgorithm
	// WithoutLeader is set if all replicas do the same.
	WithoutLeader bool
}

// Programs returns the managers that are required for Clusters with in-memory infrastructure. Their keys are ECDSA: the CPU time that RSA
// keys take is random, and would hide what is measured.
func Programs() []Program {
	return []Program{
		{Name: "cluster-api-controller", Component: "core", Gates: "ClusterTopology=true"},
		{Name: "kubeadm-bootstrap-controller", Component: "bootstrap-kubeadm", Keys: pki.ECDSA},
		{Name: "kubeadm-control-plane-controller", Component: "control-plane-kubeadm", Keys: pki.ECDSA, Gates: "ClusterTopology=true"},
		{Name: "capim-manager", Component: "infrastructure-in-memory"},
	}
}

// WithExtensions returns Programs that call runtime extensions.
func WithExtensions() []Program {
	programs := Programs()
	for i := range programs {
		if programs[i].Gates != "" {
			programs[i].Gates += ",RuntimeSDK=true,InPlaceUpdates=true"
		}
	}
	return programs
}

// Docker returns the manager of Docker infrastructure. Its gates are those of Programs.
func Docker() Program {
	return Program{Name: "capd-manager", Component: "infrastructure-docker", Gates: "ClusterTopology=true"}
}

// IPAM returns the manager of the in-cluster IPAM provider.
func IPAM() Program {
	return Program{Name: "capi-ipam-in-cluster-controller", Component: "ipam-in-cluster"}
}

// Fleet returns the manager of the fleet provider.
func Fleet() Program {
	return Program{Name: "capi-fleet-controller", Component: "fleet"}
}

// Operator returns the operator, which installs providers.
func Operator() Program {
	return Program{Name: "cluster-api-operator", Component: operator}
}

// operator is the component whose manifests are among those of the core provider.
const operator = "operator"

// TestExtension returns the test extension.
func TestExtension() Program {
	return Program{Name: "test-extension", Component: "runtime-extension-test", WithoutLeader: true}
}

// Manager is a program with its configuration. It can be started again after it has exited, with the same ports.
type Manager struct {
	Program
	// Kubeconfig is the path of the kubeconfig file to connect with.
	Kubeconfig string
	// Namespace is the value of POD_NAMESPACE, unless it is empty: see Connection.
	Namespace string
	// Args are additional arguments.
	Args []string
	// Env are additional variables, as NAME=VALUE, besides those of this process.
	Env []string
	// Log is the path of the log file. Every start appends to it.
	Log string
	// ProfilerPort is the port for profiles, without authentication.
	ProfilerPort int
	// WebhookPort is the port of the webhook server, on loopback.
	WebhookPort int
	// Replica is the name of this replica of the program.
	Replica string
	// Running is the latest process.
	Running *process.Process

	binary, certificates string
	trusted              []byte
}

// NewManager prepares a replica of a manager. Its files are in dir, prefixed by its name.
func NewManager(root, dir, replica string, p Program, kubeconfig string) (*Manager, error) {
	m := &Manager{
		Program: p, Replica: replica, Kubeconfig: kubeconfig, Log: filepath.Join(dir, replica+".log"),
		binary: filepath.Join(root, "bin", p.Name), certificates: filepath.Join(dir, replica),
	}
	var err error
	if m.WebhookPort, err = FreePort(); err != nil {
		return nil, err
	}
	if m.ProfilerPort, err = FreePort(); err != nil {
		return nil, err
	}
	return m, m.issue()
}

// issue issues the certificate of the webhook server.
func (m *Manager) issue() (err error) {
	m.trusted, err = issue(m.certificates, m.Name)
	return err
}

// issue writes a serving certificate for this host, of a new CA, to a folder, as tls.crt and tls.key. It returns the CA.
func issue(dir, name string) (authority []byte, err error) {
	ca, err := pki.NewCA(pki.ECDSA, time.Now())
	if err != nil {
		return nil, err
	}
	trusted, err := ca.PEM()
	if err != nil {
		return nil, err
	}
	pair, err := ca.Issue(pki.Request{
		CommonName: name, DNSNames: []string{"localhost"}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, Validity: 7 * 24 * time.Hour,
	}, time.Now())
	if err != nil {
		return nil, err
	}
	return trusted.Certificate, errors.Join(
		os.MkdirAll(dir, 0o700),
		os.WriteFile(filepath.Join(dir, "tls.crt"), pair.Certificate, 0o600),
		os.WriteFile(filepath.Join(dir, "tls.key"), pair.Key, 0o600),
	)
}

// ShareCertificate makes the webhook server use the certificate of another replica.
func (m *Manager) ShareCertificate(of *Manager) {
	m.certificates, m.trusted = of.certificates, of.trusted
}

// Start starts the manager, which must not be running.
func (m *Manager) Start() error {
	args := []string{
		fmt.Sprintf("--profiler-address=127.0.0.1:%d", m.ProfilerPort),
		"--kubeconfig", m.Kubeconfig, "--webhook-cert-dir", m.certificates, fmt.Sprintf("--webhook-port=%d", m.WebhookPort),
		"--health-addr=127.0.0.1:0", "--diagnostics-address=127.0.0.1:0", "--insecure-diagnostics",
		"--kube-api-qps=500", "--kube-api-burst=500",
	}
	if m.Gates != "" {
		args = append(args, "--feature-gates="+m.Gates)
	}
	if m.Keys != "" {
		args = append(args, "--key-algorithm="+string(m.Keys))
	}
	env := m.Env
	if m.Namespace != "" {
		env = append([]string{"POD_NAMESPACE=" + m.Namespace}, env...)
	}
	var err error
	m.Running, err = process.Start(m.binary, m.Log, env, append(args, m.Args...)...)
	return err
}

// Stop stops the manager if it is running.
func (m *Manager) Stop() error {
	if m.Running == nil {
		return nil
	}
	if err := m.Running.Stop(); !errors.Is(err, process.ErrKilled) {
		return err
	}
	return nil // A manager may be killed at any time.
}

// given has the ports that FreePort has returned. Managers that start at the same time would otherwise get the same one now and then: it is
// free until the first of them listens.
var given sync.Map

// FreePort returns a port that is not in use, and that it has not returned before. It is outside the range of outgoing connections (from
// 32768): one of them could hold the port when a killed manager starts again.
func FreePort() (int, error) {
	const first, count, tries = 10000, 10000, 100
	var err error
	for range tries {
		port := first + rand.IntN(count) //nolint:gosec // Not a secret.
		if _, before := given.LoadOrStore(port, true); before {
			continue
		}
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("no port between %d and %d is free: %w", first, first+count-1, err)
}
