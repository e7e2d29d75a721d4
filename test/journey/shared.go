package journey

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// shared is the management cluster of this package's tests, extensible that of tests with extensions and other features that are off by
// default. TestMain cannot pass them to the tests otherwise.
var (
	shared     Shared
	extensible = Shared{Like: &shared, Variables: Features()}
)

// Features returns the variables of clusterctl that enable feature gates that are off by default: RuntimeSDK, MachineTaintPropagation,
// InPlaceUpdates and ClusterTopologyWorkerVersionPinning.
func Features() map[string]string {
	return map[string]string{
		"EXP_RUNTIME_SDK": "true", "EXP_MACHINE_TAINT_PROPAGATION": "true", "EXP_IN_PLACE_UPDATES": "true",
		"EXP_CLUSTER_TOPOLOGY_WORKER_VERSION_PINNING": "true",
	}
}

// installTime is the timeout for building the programs and installing the providers.
const installTime = 10 * time.Minute

// inMemory is the infrastructure provider of most journeys.
const inMemory = "in-memory"

// Shared is the management cluster that the journeys of a test binary share. The zero value is ready to use.
type Shared struct {
	// Infrastructure is the infrastructure provider that is installed; empty: the in-memory provider.
	Infrastructure string
	// Like is another management cluster, with whose tools this one is installed, and which is started before it. nil: tools are built.
	Like *Shared
	// Variables are further variables of clusterctl, if Like is set.
	Variables map[string]string

	server     testenv.Server
	once       sync.Once
	management *Management
	err        error
}

// Main runs the tests, stops the management cluster and others, and exits the process.
func (s *Shared) Main(m *testing.M, others ...*Shared) {
	servers := []*testenv.Server{&s.server}
	for _, o := range others {
		servers = append(servers, &o.server)
	}
	testenv.Main(m, servers...)
}

// World returns a namespace of the shared management cluster, which the first call starts.
func (s *Shared) World(t testing.TB) *World {
	t.Helper()
	return s.Management(t).World(t)
}

// Management returns the shared management cluster, which the first call starts.
func (s *Shared) Management(t testing.TB) *Management {
	t.Helper()
	if s.Like != nil {
		s.Like.Management(t)
	}
	e := s.server.Start(t)
	s.once.Do(func() { s.err = s.start(e) })
	if s.err != nil {
		t.Fatalf("the management cluster did not start: %v", s.err)
	}
	return s.management
}

func (s *Shared) start(e *testenv.Env) error {
	// Files are in the server's folder, which it removes in the end.
	dir := filepath.Dir(e.Kubeconfig)
	ctx := context.Background()
	building, done := context.WithTimeout(ctx, installTime)
	defer done()
	tools, err := s.tools(building, e.Root, dir)
	if err != nil {
		return err
	}
	tools.Infrastructure = cmp.Or(s.Infrastructure, inMemory)
	if err := tools.install(building, e.Kubeconfig); err != nil {
		return err
	}
	s.management, err = connect(ctx, e.Config, e.Kubeconfig, filepath.Join(dir, "data", "capi.log"), tools)
	return err
}

// tools returns the tools; dir is for their files.
func (s *Shared) tools(ctx context.Context, root, dir string) (*Tools, error) {
	if s.Like != nil {
		return s.Like.management.Tools.with(dir, s.Variables)
	}
	return build(ctx, root, dir)
}

// install installs the providers in the cluster of a kubeconfig.
func (t *Tools) install(ctx context.Context, kubeconfig string) error {
	r := t.Clusterctl(ctx, "", "init", "--kubeconfig", kubeconfig, "--infrastructure", t.Infrastructure, "--wait-providers")
	if r.Failed {
		return errors.New("installing the providers: " + r.String())
	}
	return nil
}
