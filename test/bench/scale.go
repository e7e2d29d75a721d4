package main

import (
	"context"
	"fmt"
	"io"
)

// hundred is the number of clusters that are created at a time.
const hundred = 100

// scale creates clusters of 1+1, a hundred at a time, and prints what each hundred cost: with more clusters, another hundred
// must not take longer.
func (w *world) scale(ctx context.Context, out io.Writer, clusters int) error {
	// Rows are printed as they are measured, so the columns have a fixed width.
	fmt.Fprintln(out, "CLUSTERS  TIME     MANAGERS CPU/CLUSTER  API SERVER CPU/CLUSTER  WRITES/CLUSTER  MANAGERS MEMORY  API SERVER MEMORY")
	total, first, last := 0.0, 0.0, 0.0
	for done := 0; done < clusters; done += hundred {
		n := min(hundred, clusters-done)
		s := scenario{Name: fmt.Sprint(done + n), Clusters: n, ControlPlanes: 1, Workers: 1}
		r, err := w.measure(ctx, s, fmt.Sprintf("s%d-", done/hundred))
		if err != nil {
			return fmt.Errorf("clusters %d to %d: %w", done+1, done+n, err)
		}
		each := float64(n)
		fmt.Fprintf(out, "%8s  %5.1f s  %18.2f s  %20.2f s  %14.1f  %11d MiB  %13d MiB\n",
			r.Name, r.Seconds, r.ManagersCPU/each, r.ServerCPU/each, r.writesPerCluster(), r.ManagersMemory, memoryOf(w.PID()))
		total, last = total+r.Seconds, r.Seconds
		if done == 0 {
			first = r.Seconds
		}
	}
	fmt.Fprintf(out, "%d clusters in %.0f s, the last row in %.2f times the time of the first\n", clusters, total, last/first)
	return nil
}
