package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"

	"sigs.k8s.io/cluster-api/test/managers"
)

// memory is the memory of one manager, in KiB. Heap and stacks are measured after a garbage collection, resident memory
// before it, so that the profile does not change it.
type memory struct {
	program, own      int // resident: mapped files, and anonymous memory
	live, idle, stack int
	goroutines        int // the number of goroutines
}

// profile writes heap profiles of the managers to <name>-<row>.heap, for go tool pprof, goroutine profiles to
// <name>-<row>.goroutines, and prints a summary.
func (w *world) profile(ctx context.Context, out io.Writer, row string) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MANAGER\tOWN MEMORY\tPROGRAM\tLIVE HEAP\tIDLE HEAP\tSTACKS\tGOROUTINES")
	for _, p := range w.managers {
		m, err := w.profileOne(ctx, p, row)
		if err != nil {
			return fmt.Errorf("profiling %s: %w", p.Name, err)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%d\n", p.Name, mib(m.own), mib(m.program), mib(m.live), mib(m.idle),
			mib(m.stack), m.goroutines)
	}
	return table.Flush()
}

func mib(kib int) string { return fmt.Sprintf("%.1f MiB", float64(kib)/1024) }

// profileCPU begins to record where the managers spend CPU time. The function that it returns waits for the profiles,
// <name>-<row>.cpu for go tool pprof.
func (w *world) profileCPU(ctx context.Context, row string, d time.Duration) func() error {
	group, ctx := errgroup.WithContext(ctx)
	for _, p := range w.managers {
		group.Go(func() error {
			return download(ctx, fmt.Sprintf("http://127.0.0.1:%d/debug/pprof/profile?seconds=%d", p.ProfilerPort, int(d.Seconds())),
				w.profileFile(p, row)+".cpu")
		})
	}
	return group.Wait
}

func (w *world) profileFile(p *managers.Manager, row string) string {
	return filepath.Join(w.Dir, p.Name+"-"+strings.NewReplacer(" ", "-", ",", "").Replace(row))
}

func (w *world) profileOne(ctx context.Context, p *managers.Manager, row string) (memory, error) {
	m := memory{}
	m.program, m.own = resident(p.Running.PID())
	at := fmt.Sprintf("http://127.0.0.1:%d/debug/pprof/", p.ProfilerPort)
	file := w.profileFile(p, row)
	if err := download(ctx, at+"heap?gc=1", file+".heap"); err != nil {
		return m, err
	}
	if err := download(ctx, at+"goroutine?debug=1", file+".goroutines"); err != nil {
		return m, err
	}
	if err := download(ctx, at+"heap?debug=1&gc=1", file+".memory"); err != nil {
		return m, err
	}
	raw, err := os.ReadFile(file + ".memory")
	if err != nil {
		return m, err
	}
	m.live, m.idle = statistic(raw, "HeapAlloc"), statistic(raw, "HeapIdle")
	m.stack = statistic(raw, "Stack")
	m.goroutines, err = goroutines(file + ".goroutines")
	return m, err
}

// statistic returns a field of runtime.MemStats, which is at the end of heap profiles in text form.
func statistic(profile []byte, name string) int {
	found := regexp.MustCompile(`(?m)^# ` + name + ` = (\d+)`).FindSubmatch(profile)
	if found == nil {
		return 0
	}
	return kibibytes(found[1])
}

func kibibytes(text []byte) int {
	n, _ := strconv.Atoi(string(text)) // digits
	return n / 1024
}

// goroutines returns the number of goroutines from the first line of a profile in text form.
func goroutines(file string) (int, error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	first, err := bufio.NewReader(f).ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(first[strings.LastIndex(first, " ")+1:]))
}

// resident returns the resident memory of a process, in KiB: file pages, which are mostly the program, and anonymous pages.
func resident(pid int) (file, own int) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0
	}
	return field(raw, "RssFile"), field(raw, "RssAnon")
}

// field returns a value of /proc/PID/status, in KiB.
func field(status []byte, name string) int {
	found := regexp.MustCompile(`(?m)^` + name + `:\s+(\d+) kB$`).FindSubmatch(status)
	if found == nil {
		return 0
	}
	n, _ := strconv.Atoi(string(found[1])) // digits
	return n
}

func download(ctx context.Context, url, file string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, response.Status)
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, response.Body); err != nil {
		_ = out.Close()
		return err
	}
	return out.Close()
}
