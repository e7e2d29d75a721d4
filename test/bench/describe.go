package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/clusterctl/explain"
	"sigs.k8s.io/cluster-api/clusterctl/explain/gather"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/overview"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
	"sigs.k8s.io/cluster-api/clusterctl/tree/snapshot"
)

const (
	// describeRuns is how often each command runs; the median time is printed.
	describeRuns = 9
	// maxRequests bounds the requests of a command, discovery included. They depend on the number of kinds only.
	maxRequests = 40
	// maxDescribe is how long describe may take with 500 Machines.
	maxDescribe = time.Second
)

// reader is a command of clusterctl that reads a cluster.
type reader struct {
	name string
	run  func(context.Context, client.WithWatch, types.NamespacedName) error
}

func readers() []reader {
	describe := func(o tree.Options) func(context.Context, client.WithWatch, types.NamespacedName) error {
		return func(ctx context.Context, c client.WithWatch, name types.NamespacedName) error {
			objects, err := snapshot.Read(ctx, c, name, o)
			if err != nil {
				return err
			}
			return tree.Write(io.Discard, tree.Build(name, objects, o), tree.Style{Now: time.Now()})
		}
	}
	return []reader{
		{"describe cluster", describe(tree.Options{Grouping: true})},
		{"describe cluster, with everything", describe(tree.Options{
			ShowConditions: []string{"all"}, MachineSets: true, ResourceSets: true, HealthChecks: true, Templates: true, Echo: true,
		})},
		{"explain", func(ctx context.Context, c client.WithWatch, name types.NamespacedName) error {
			in, err := gather.Read(ctx, c, name, time.Now())
			if err != nil {
				return err
			}
			return explain.Write(io.Discard, explain.Explain(in), time.Now())
		}},
		getClusters(1),
	}
}

// getClusters is the command that lists all Clusters, of which there must be this many.
func getClusters(clusters int) reader {
	return reader{"get clusters", func(ctx context.Context, c client.WithWatch, _ types.NamespacedName) error {
		objects, err := overview.Read(ctx, c, "", nil)
		if err != nil {
			return err
		}
		if rows := overview.Rows(objects); len(rows) < clusters {
			return fmt.Errorf("it lists %d clusters, want %d", len(rows), clusters)
		}
		return nil
	}}
}

// describe creates a cluster with this number of Machines, and measures the commands that read it: requests, bytes and time of a
// whole run, with a new connection and discovery.
func (w *world) describe(ctx context.Context, out io.Writer, machines int) error {
	if err := w.create(ctx, checkedCluster("d0-", machines-1)); err != nil {
		return err
	}
	if err := w.awaitRunning(ctx, "d0-", machines); err != nil {
		return err
	}
	if err := pause(ctx, calm); err != nil {
		return err
	}
	fmt.Fprintf(out, "| clusterctl, %d Machines | requests | response | time |\n|---|---|---|---|\n", machines)
	for _, r := range readers() {
		median, err := w.read(ctx, out, r)
		if err != nil {
			return err
		}
		if strings.HasPrefix(r.name, "describe") && machines <= 500 && median > maxDescribe {
			return fmt.Errorf("%s takes %s, want at most %s", r.name, median, maxDescribe)
		}
	}
	return nil
}

// read runs a command several times, prints what it costs, and returns the median time.
func (w *world) read(ctx context.Context, out io.Writer, r reader) (time.Duration, error) {
	var times []time.Duration
	var last counter
	for range describeRuns {
		last = counter{}
		c, err := w.counted(&last)
		if err != nil {
			return 0, err
		}
		begun := time.Now()
		if err := r.run(ctx, c, types.NamespacedName{Namespace: "default", Name: "d0-c"}); err != nil {
			return 0, fmt.Errorf("%s: %w", r.name, err)
		}
		times = append(times, time.Since(begun))
	}
	slices.Sort(times)
	median := times[len(times)/2]
	fmt.Fprintf(out, "| %s | %d | %.1f MiB | %.2f s |\n", r.name, last.requests.Load(), float64(last.bytes.Load())/(1<<20), median.Seconds())
	if n := last.requests.Load(); n > maxRequests {
		return 0, fmt.Errorf("%s makes %d requests, want at most %d", r.name, n, maxRequests)
	}
	return median, nil
}

// counter counts requests, those of them that write, and bytes of responses.
type counter struct {
	requests, writes, bytes atomic.Int64
}

// counted returns a client like clusterctl's, whose requests are counted.
func (w *world) counted(n *counter) (client.WithWatch, error) {
	config := rest.CopyConfig(w.Config)
	config.QPS, config.Burst = 20, 100 // As clusterctl.
	config.Wrap(n.wrap)
	scheme, err := management.Scheme()
	if err != nil {
		return nil, err
	}
	return client.NewWithWatch(config, client.Options{Scheme: scheme})
}

type counting struct {
	next http.RoundTripper
	*counter
}

// wrap returns a transport whose requests are counted.
func (n *counter) wrap(next http.RoundTripper) http.RoundTripper { return counting{next, n} }

// RoundTrip counts a request and the bytes of its response.
func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.requests.Add(1)
	if r.Method != http.MethodGet {
		c.writes.Add(1)
	}
	response, err := c.next.RoundTrip(r)
	if err == nil {
		response.Body = countingBody{response.Body, c.counter}
	}
	return response, err
}

type countingBody struct {
	io.ReadCloser
	*counter
}

// Read counts bytes.
func (b countingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.bytes.Add(int64(n))
	return n, err
}
