package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
)

// hundred is the number of clusters that are created at a time.
const hundred = 100

// scale creates clusters of 1+1, a hundred at a time, and prints what each hundred cost: with more clusters, another hundred
// must not take longer.
func (w *world) scale(ctx context.Context, out io.Writer, clusters int) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "CLUSTERS\tTIME\tMANAGERS CPU/CLUSTER\tAPI SERVER CPU/CLUSTER\tWRITES/CLUSTER\tMANAGERS MEMORY\tAPI SERVER MEMORY")
	total, first, last := 0.0, 0.0, 0.0
	for done := 0; done < clusters; done += hundred {
		n := min(hundred, clusters-done)
		s := scenario{Name: fmt.Sprint(done + n), Clusters: n, ControlPlanes: 1, Workers: 1}
		r, err := w.measure(ctx, s, fmt.Sprintf("s%d-", done/hundred))
		if err != nil {
			return fmt.Errorf("clusters %d to %d: %w", done+1, done+n, err)
		}
		each := float64(n)
		fmt.Fprintf(t, "%s\t%.1f s\t%.2f s\t%.2f s\t%.1f\t%d MiB\t%d MiB\n",
			r.Name, r.Seconds, r.ManagersCPU/each, r.ServerCPU/each, r.writesPerCluster(), r.ManagersMemory, memoryOf(w.PID()))
		total, last = total+r.Seconds, r.Seconds
		if done == 0 {
			first = r.Seconds
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "%d clusters in %.0f s, the last %d in %.2f times the time of the first\n", clusters, total, hundred, last/first)
	return nil
}
