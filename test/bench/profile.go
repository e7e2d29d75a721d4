package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// profile writes what the managers keep in memory to <name>-<row>.heap, for go tool pprof.
func (w *world) profile(ctx context.Context, row string) error {
	for _, p := range w.managers {
		file := filepath.Join(w.dir, fmt.Sprintf("%s-%s.heap", p.name, strings.NewReplacer(" ", "-", ",", "").Replace(row)))
		if err := download(ctx, fmt.Sprintf("http://127.0.0.1:%d/debug/pprof/heap?gc=1", p.profiler), file); err != nil {
			return fmt.Errorf("profiling %s: %w", p.name, err)
		}
		fmt.Fprintln(os.Stderr, "profile:", file)
	}
	return nil
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
		return fmt.Errorf("%s answers %s", url, response.Status)
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
