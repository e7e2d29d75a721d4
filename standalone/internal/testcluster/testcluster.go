// Package testcluster runs the complete control plane with hosted components inside a test binary.
package testcluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	"k8s.io/utils/clock"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"sigs.k8s.io/cluster-api/standalone/internal/controlplane"
	"sigs.k8s.io/cluster-api/standalone/internal/datadir"
	"sigs.k8s.io/cluster-api/standalone/internal/host"
)

// Cluster is a running control plane. There can be one per process.
type Cluster struct {
	Dir     *datadir.Dir
	Control *controlplane.ControlPlane
	// Config is read from the admin kubeconfig, without a rate limit.
	Config *rest.Config

	log    *os.File
	cancel context.CancelFunc
	hosted chan error
}

// Start runs a cluster that hosts programs, without syncing to disk. Its data and log are in folder root. If Start fails,
// what it started is not stopped.
func Start(root string, programs map[string]host.Program) (*Cluster, error) {
	dir, err := datadir.Open(root, controlplane.Version())
	if err != nil {
		return nil, err
	}
	log, err := os.Create(dir.Path("log"))
	if err != nil {
		return nil, err
	}
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(log), textlogger.Verbosity(1)))
	klog.SetLogger(logger)
	ctrllog.SetLogger(logger)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	egress, err := net.Listen("unix", dir.Socket("egress"))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &Cluster{Dir: dir, log: log, cancel: cancel, hosted: make(chan error, 1)}
	c.Control, err = controlplane.Start(ctx, controlplane.Options{
		Dir: dir, Listener: listener, Kubeconfig: dir.Path("kubeconfig"), EgressSocket: dir.Socket("egress"),
		UnsafeNoFsync: true, Log: log, Clock: clock.RealClock{},
	})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("start a test cluster (its log is %s): %w", log.Name(), err)
	}
	options := host.Options{
		Config: c.Control.Config(), Server: c.Control.Server, Programs: programs,
		Egress: egress, DataDir: dir.Path("components"), Logger: logger, Clock: clock.RealClock{},
	}
	if options.CAData, err = os.ReadFile(c.Control.Files.CACert); err != nil {
		return nil, errors.Join(err, c.Control.Stop())
	}
	go func() { c.hosted <- host.Run(ctx, options) }()
	if c.Config, err = clientcmd.BuildConfigFromFlags("", dir.Path("kubeconfig")); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	c.Config.QPS = -1
	return c, nil
}

// Stop stops the components, then the control plane, and returns all errors.
func (c *Cluster) Stop() error {
	c.cancel()
	return errors.Join(<-c.hosted, c.Control.Stop(), c.Dir.Close(), c.log.Close())
}
