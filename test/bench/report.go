package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"text/tabwriter"
)

// tolerance is the maximum ratio of writes to the baseline.
const tolerance = 1.05

func (r row) writesPerCluster() float64 { return r.Writes / float64(r.Clusters) }

func printTable(out io.Writer, rows []row) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "CLUSTERS\tWRITES/CLUSTER\tREADS/CLUSTER\tMANAGERS CPU/CLUSTER\tAPI SERVER CPU/CLUSTER\tTIME\tMANAGERS MEMORY")
	for _, r := range rows {
		n := float64(r.Clusters)
		fmt.Fprintf(t, "%s\t%.1f\t%.1f\t%.2f s\t%.2f s\t%.1f s\t%d MiB\n",
			r.Name, r.writesPerCluster(), r.Reads/n, r.ManagersCPU/n, r.ServerCPU/n, r.Seconds, r.ManagersMemory)
	}
	_ = t.Flush()
}

func printDetail(out io.Writer, r row, n int) {
	keys := slices.SortedFunc(maps.Keys(r.requests), func(a, b request) int { return cmp.Compare(r.requests[b], r.requests[a]) })
	for _, k := range keys[:min(n, len(keys))] {
		fmt.Fprintf(out, "%8.1f  %-6s %s %s\n", r.requests[k]/float64(r.Clusters), k.verb, k.resource, k.code)
	}
}

// compared returns the writes per cluster that are compared with the baseline.
func compared(rows []row) map[string]float64 {
	now := map[string]float64{}
	for _, r := range rows {
		if r.CompareWritesToBaseline {
			now[r.Name] = r.writesPerCluster()
		}
	}
	return now
}

// compare returns an error if writes exceed the baseline; with update, it writes a new baseline.
func compare(file string, now map[string]float64, update bool) error {
	if update {
		raw, err := json.MarshalIndent(now, "", "  ")
		if err != nil {
			return err
		}
		return os.WriteFile(file, append(raw, '\n'), 0o600)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	baseline := map[string]float64{}
	if err := json.Unmarshal(raw, &baseline); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for name, before := range baseline {
		if after, ok := now[name]; ok && after > before*tolerance {
			return fmt.Errorf("%s: %.1f writes, baseline %.1f: find out what writes more (--detail 40), "+
				"or update the baseline (--update) and justify it", name, after, before)
		}
	}
	return nil
}
