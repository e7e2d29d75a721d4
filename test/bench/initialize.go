package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"sigs.k8s.io/cluster-api/clusterctl/command/root"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/test/managers"
)

// initialize measures `clusterctl init --wait-providers`, with a local repository and an empty cluster that runs the providers
// itself: from the start of the command until all four providers are available.
func initialize(ctx context.Context, out io.Writer, o options) error {
	if o.keep == "" {
		var err error
		if o.keep, err = os.MkdirTemp("", "bench-"); err != nil {
			return err
		}
	}
	repository := filepath.Join(o.keep, "repository")
	if err := managers.Release(ctx, o.root, repository); err != nil {
		return err
	}
	var times []time.Duration
	var n *counter
	for i := range o.initialize {
		n = &counter{}
		elapsed, err := initOnce(ctx,
			managers.Options{Root: o.root, Dir: filepath.Join(o.keep, fmt.Sprint("cluster-", i)), Components: true}, repository, n)
		if err != nil {
			return err
		}
		times = append(times, elapsed)
	}
	slices.Sort(times)
	fmt.Fprintln(out, "| clusterctl | requests | of them writes | shortest time | median | longest |\n|---|---|---|---|---|---|")
	fmt.Fprintf(out, "| init, until all providers are available | %d | %d | %.1f s | %.1f s | %.1f s |\n",
		n.requests.Load(), n.writes.Load(), times[0].Seconds(), times[len(times)/2].Seconds(), times[len(times)-1].Seconds())
	return nil
}

// initOnce starts an empty cluster, and runs the command with a connection whose requests are counted.
func initOnce(ctx context.Context, o managers.Options, repository string, n *counter) (elapsed time.Duration, err error) {
	server, err := managers.StartServer(ctx, o)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	var messages bytes.Buffer
	streams := iostreams.New(strings.NewReader(""), io.Discard, &messages)
	environment := map[string]string{"CLUSTERCTL_DISABLE_VERSIONCHECK": "true"}
	f := factory.New(streams, func(name string) (string, bool) { v, ok := environment[name]; return v, ok }, nil)
	f.Connect = func(management.Kubeconfig) (*management.Cluster, error) {
		config := rest.CopyConfig(server.Config)
		config.QPS, config.Burst = 20, 100 // As clusterctl.
		config.Wrap(n.wrap)
		return management.New(config, "default")
	}
	begun := time.Now()
	err = root.Run(ctx, f, []string{
		"init", "--infrastructure", "in-memory", "--wait-providers", "--config", filepath.Join(repository, "clusterctl.yaml"),
	})
	if err != nil {
		return 0, fmt.Errorf("%w: %s", err, &messages)
	}
	return time.Since(begun), nil
}
