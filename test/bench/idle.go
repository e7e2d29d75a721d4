package main

import (
	"context"
	"fmt"
	"io"
	"time"
)

// calm is how long to wait after the last change before measuring idle costs.
const calm = 15 * time.Second

// idle prints what the existing clusters cost while nothing changes.
func (w *world) idle(ctx context.Context, out io.Writer, duration time.Duration) error {
	if err := pause(ctx, calm); err != nil {
		return err
	}
	before, err := w.requests(ctx)
	if err != nil {
		return err
	}
	managers, server := w.cpu()
	if err := pause(ctx, duration); err != nil {
		return err
	}
	managersAfter, serverAfter := w.cpu()
	after, err := w.requests(ctx)
	if err != nil {
		return err
	}
	var r row
	r.count(before, after)
	seconds := duration.Seconds()
	fmt.Fprintf(out, "Idle: %.2f writes/s, %.2f reads/s, managers %.3f cores, API server %.3f cores, managers' memory %d MiB\n",
		r.Writes/seconds, r.Reads/seconds, (managersAfter-managers)/seconds, (serverAfter-server)/seconds, w.memory())
	printDetail(out, row{scenario: scenario{Clusters: 1}, requests: r.requests}, 10)
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
