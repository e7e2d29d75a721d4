package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/move"
	"sigs.k8s.io/cluster-api/clusterctl/move/discovery"
	"sigs.k8s.io/cluster-api/clusterctl/move/graph"
	"sigs.k8s.io/cluster-api/clusterctl/move/side"
	"sigs.k8s.io/cluster-api/clusterctl/move/transfer"
	"sigs.k8s.io/cluster-api/packages/lock"
	"sigs.k8s.io/cluster-api/packages/retry"
	"sigs.k8s.io/cluster-api/test/managers"
)

// move creates clusters of 1+1 and measures their move to another management cluster, and for comparison a client that only creates
// the same objects there, and deletes them again, with the same number of requests in flight.
func (w *world) move(ctx context.Context, out io.Writer, clusters int) error {
	target, err := startWorld(ctx,
		managers.Options{Root: w.Root, Dir: filepath.Join(w.Dir, "target"), Stored: w.Stored}, managers.Programs(), client.DryRunAll)
	if err != nil {
		return err
	}
	defer func() { _ = target.stop() }() // Errors no longer affect the results.
	s := scenario{Clusters: clusters, ControlPlanes: 1, Workers: 1}
	if _, err := w.measure(ctx, s, "m-"); err != nil {
		return err
	}
	g, err := w.movable(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "| %d clusters of 1+1, %d objects | reads | writes | API servers CPU | managers CPU | time |\n"+
		"|---|---|---|---|---|---|\n", clusters, len(g.Nodes))
	for _, way := range []struct {
		name string
		run  func(context.Context, *counter) error
	}{
		{"created and deleted by a plain client", func(ctx context.Context, n *counter) error { return target.plain(ctx, g, n) }},
		{"clusterctl move", func(ctx context.Context, n *counter) error { return w.moveTo(ctx, target, n) }},
	} {
		n := &counter{}
		managers, servers := cpu(w, target)
		begun := time.Now()
		if err := way.run(ctx, n); err != nil {
			return fmt.Errorf("%s: %w", way.name, err)
		}
		seconds := time.Since(begun).Seconds()
		managersNow, serversNow := cpu(w, target)
		writes := n.writes.Load()
		fmt.Fprintf(out, "| %s | %d | %d | %.1f s | %.1f s | %.1f s |\n",
			way.name, n.requests.Load()-writes, writes, serversNow-servers, managersNow-managers, seconds)
	}
	begun := time.Now()
	if err := target.awaitRunning(ctx, "m-", clusters*(s.ControlPlanes+s.Workers)); err != nil {
		return err
	}
	fmt.Fprintf(out, "All Machines were running again %.1f s after the move.\n", time.Since(begun).Seconds())
	return nil
}

// cpu returns the CPU time of the managers and of the API servers of both sides, in seconds.
func cpu(source, target *world) (managers, servers float64) {
	managers, servers = source.cpu()
	m, s := target.cpu()
	return managers + m, servers + s
}

// movable reads what a move would move.
func (w *world) movable(ctx context.Context) (*graph.Graph, error) {
	s, err := w.side("source", &counter{})
	if err != nil {
		return nil, err
	}
	kinds, err := discovery.Kinds(ctx, s)
	if err != nil {
		return nil, err
	}
	return (&discovery.Reader{Side: s, Namespace: "default", Kinds: kinds}).Graph(ctx)
}

// side returns one side of a move, whose requests are counted.
func (w *world) side(name string, n *counter) (*side.Side, error) {
	config := rest.CopyConfig(w.Config)
	config.QPS = -1
	config.Wrap(n.wrap)
	c, err := management.New(config, "default")
	if err != nil {
		return nil, err
	}
	return &side.Side{Client: c.Client, Name: name, Host: c.Host, Backoff: retry.Backoff()}, nil
}

// moveTo moves everything to another world, as the command does.
func (w *world) moveTo(ctx context.Context, target *world, n *counter) error {
	from, err := w.side("source", n)
	if err != nil {
		return err
	}
	to, err := target.side("target", n)
	if err != nil {
		return err
	}
	config := rest.CopyConfig(w.Config)
	config.Wrap(n.wrap)
	mover := &move.Mover{
		Source: from, Target: to, Namespace: "default", Progress: quiet{}, BlockBackoff: move.BlockBackoff(), NewID: move.NewID,
		Lock: &lock.Lock{
			Task:      move.Task(),
			Config:    config,
			Namespace: "default",
			Self:      lock.Self(),
			Ended:     lock.Ended,
			Retry:     from.Policy(),
			Clock:     clock.RealClock{},
			Say:       quiet{}.Say,
		},
	}
	return mover.ToCluster(ctx)
}

// plain creates paused copies of the objects, owners first but without owner references and finalizers, then it deletes them.
func (w *world) plain(ctx context.Context, g *graph.Graph, n *counter) error {
	to, err := w.side("target", n)
	if err != nil {
		return err
	}
	levels := g.Levels()
	for _, level := range levels {
		err := side.Each(ctx, level, func(ctx context.Context, n *graph.Node) error {
			return to.Do(ctx, "create "+n.Key().String(), func(ctx context.Context) error { return to.Create(ctx, plainCopy(n)) })
		})
		if err != nil {
			return err
		}
	}
	for i := range levels {
		err := side.Each(ctx, levels[len(levels)-1-i], func(ctx context.Context, n *graph.Node) error {
			return to.Do(ctx, "delete "+n.Key().String(),
				func(ctx context.Context) error { return client.IgnoreNotFound(to.Delete(ctx, plainCopy(n))) })
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func plainCopy(n *graph.Node) *unstructured.Unstructured {
	o := transfer.Desired(n.Object, func(types.UID) (types.UID, bool) { return "", false })
	unstructured.RemoveNestedField(o.Object, "status")
	o.SetFinalizers(nil)
	o.SetAnnotations(map[string]string{clusterv1.PausedAnnotation: ""})
	return o
}

// quiet does not show progress.
type quiet struct{}

// Start does nothing.
func (quiet) Start(string, int) {}

// Done does nothing.
func (quiet) Done() {}

// Say does nothing.
func (quiet) Say(string, ...any) {}

// Warn does nothing.
func (quiet) Warn(string, ...any) {}

// Log does nothing.
func (quiet) Log(string, ...any) {}
